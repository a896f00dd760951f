/* SPDX-License-Identifier: MIT
 *
 * Step lists: in which order the tasks of a problem run, and which forward tasks run again.
 */
#ifndef QN_PROGRAM_SCHEDULE_H
#define QN_PROGRAM_SCHEDULE_H

#include "plan/problem.h"

/* An order of tasks. A task that appears again is recomputed. */
struct qn_steps {
    int *task;
    int count;
    int recomputed; /* steps whose task ran before */
    double seconds;
};

/* Which forward tasks to run again, and how long to hold what they make. */
struct qn_policy {
    const bool *drop; /* by task: what it writes is dropped after the forward pass; counts for
                         repeatable forward tasks only. NULL: nothing is dropped */
    int window; /* a recomputed value is held if one of the next `window` backward tasks reads it,
                   else it is dropped and made again before its next reader; 0: always held */
};

/* Forward tasks in order, then backward tasks in order; before each backward task, the dropped
 * values that it reads are made again from values still there. Allocated from `arena`. False when
 * out of memory. steps->count is 0 when the list would have more than 6 times the tasks. */
bool qn_steps_make(const struct qn_problem *problem, const struct qn_policy *policy,
                   struct qn_arena *arena, struct qn_steps *steps);

/* Whether the list begins with all forward tasks in their order, so that the steps of other runs
 * may come behind these, as in a kept micro-step. */
bool qn_steps_part(const struct qn_problem *problem, const struct qn_steps *steps);

/* Whether the list is valid: every required task runs, non-repeatable ones exactly once, and the
 * first run of each finds every value that it reads or adds to written as often as in the order of
 * the tasks. QN_ERR_FORMAT: it is not valid; QN_ERR_MEMORY: out of memory. */
qn_status qn_steps_check(const struct qn_problem *problem, const struct qn_steps *steps);

#endif
