/* SPDX-License-Identifier: MIT
 *
 * The tasks of a plan that are worth timing, each once.
 */
#ifndef QN_TUNE_TASKS_H
#define QN_TUNE_TASKS_H

#include "plan/plan.h"

struct qn_tune_task {
    const struct qn_problem *problem;
    const struct qn_task *task;
    const char *key;
    double seconds; /* predicted, of all the task's steps in one update */
    bool timed;     /* an entry was noted for it in this call of qn_tune */
};

struct qn_tune_tasks {
    struct qn_tune_task *list; /* the slowest first */
    int count;
};

/* Lists the tasks with kernels, one for each pair of key and batch. False when out of memory. */
bool qn_tune_tasks_of(const struct qn_plan *plan, struct qn_arena *arena,
                      struct qn_tune_tasks *tasks);

#endif
