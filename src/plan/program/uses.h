/* SPDX-License-Identifier: MIT
 *
 * The tasks that use each value, and the values that may take over its bytes.
 */
#ifndef QN_PROGRAM_USES_H
#define QN_PROGRAM_USES_H

#include "plan/problem.h"

/* Two lists for each value v, each as a range of one array: the tasks that use v are
 * user[users[v]] .. user[users[v + 1] - 1], the values that may take over the bytes of v are
 * heir[heirs[v]] .. heir[heirs[v + 1] - 1]. `users` and `heirs` have n_values + 1 numbers. */
struct qn_uses {
    int *user, *users; /* tasks that write or read v */
    bool *writes;      /* writes[i]: task user[i] writes v */
    int *heir, *heirs; /* heirs: values of life QN_LIFE_MICRO */
};

/* What the task does with a value; a write that accumulates counts as a read. */
enum qn_use_kind { QN_USE_NONE, QN_USE_READ, QN_USE_WRITE };
enum qn_use_kind qn_use_of(const struct qn_task *task, int value);

/* Allocated from `arena`. False when out of memory. */
bool qn_uses_find(struct qn_uses *uses, const struct qn_problem *problem, struct qn_arena *arena);

#endif
