/* SPDX-License-Identifier: MIT
 *
 * Frontiers on disk: what a search found is read again by whoever asks the same question with
 * another budget, or once more.
 */
#ifndef QN_PLAN_STORED_H
#define QN_PLAN_STORED_H

#include "plan/plan.h"

/* What was stored for the plan's graph, facts and params, its budget aside; allocated from the
 * plan's arena. Untrusted: whoever builds a point asks qn_steps_check first, and compares the
 * bytes. False: there is nothing that can be read. */
bool qn_stored_load(struct qn_plan *plan, struct qn_frontier *frontier);

/* Stores plan->frontier. A failure is none: it will be searched for again. */
void qn_stored_save(const struct qn_plan *plan);

#endif
