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
    int recomputed; /* steps that are repetitions */
    double seconds;
};

/* What to drop and how long to hold what was made again. */
struct qn_policy {
    const bool *drop; /* by task; matters for repeatable forward tasks only. NULL: nothing */
    int window; /* a recomputed value stays if a backward task among the next `window` reads it,
                   otherwise it is made once more when its time comes; 0: always stays */
};

/* Forward tasks in order, then backward tasks in order; before each backward task, whatever it
 * reads and the policy dropped is made again from what is still there. Allocated from `arena`.
 * False when out of memory. steps->count is 0 when the policy would run the forward pass more than
 * a few times over. */
bool qn_steps_make(const struct qn_problem *problem, const struct qn_policy *policy,
                   struct qn_arena *arena, struct qn_steps *steps);

/* Whether the list is one: every task runs, those that cannot be repeated once, and for the first
 * time when all that it reads or adds to is as it would be in the order of the tasks.
 * QN_ERR_FORMAT: it is none; QN_ERR_MEMORY: out of memory. */
qn_status qn_steps_check(const struct qn_problem *problem, const struct qn_steps *steps);

#endif
