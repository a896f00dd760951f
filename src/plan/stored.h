/* SPDX-License-Identifier: MIT
 *
 * Frontiers on disk: a search is not repeated for the same qn_plan_question, whatever the budget.
 */
#ifndef QN_PLAN_STORED_H
#define QN_PLAN_STORED_H

#include "plan/plan.h"

/* Reads the frontier stored for the plan's question; allocated from the plan's arena. It is not
 * trusted: before a point is used, qn_steps_check must accept its step lists and its program must
 * need point->bytes. False: there is no readable file. */
bool qn_stored_load(struct qn_plan *plan, struct qn_frontier *frontier);

/* Stores plan->frontier. Failures are ignored: the next plan searches again. */
void qn_stored_save(const struct qn_plan *plan);

#endif
