/* SPDX-License-Identifier: MIT
 *
 * What a task costs, and the kernel variant that it runs.
 */
#ifndef QN_COST_PRICE_H
#define QN_COST_PRICE_H

#include "plan/problem.h"

/* Picks the variant and fills in the costs of a task. */
qn_status qn_task_price(const struct qn_lowering *how, const struct qn_problem *problem,
                        struct qn_task *task);

#endif
