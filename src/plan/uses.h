/* SPDX-License-Identifier: MIT
 *
 * The tasks that use each value, and the values that may take over its bytes.
 */
#ifndef QN_PLAN_USES_H
#define QN_PLAN_USES_H

#include "plan/problem.h"

/* Lists lie one after another; where each begins is in the array with the name of many, which has
 * one number more than there are values. */
struct qn_uses {
    int *user, *users; /* tasks that write or read each value */
    bool *writes;      /* beside user: it writes the value */
    int *heir, *heirs; /* values that live between steps and may take over the bytes of each */
};

/* What the task does with a value: a write that adds is a read. */
enum qn_use_kind { QN_USE_NONE, QN_USE_READ, QN_USE_WRITE };
enum qn_use_kind qn_use_of(const struct qn_task *task, int value);

/* Allocated from `arena`. False when out of memory. */
bool qn_uses_find(struct qn_uses *uses, const struct qn_problem *problem, struct qn_arena *arena);

#endif
