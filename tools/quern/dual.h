/* SPDX-License-Identifier: MIT
 *
 * The dual encoder of a recipe with [contrastive]: its towers, and the program that trains them.
 */
#ifndef QUERN_TOOL_DUAL_H
#define QUERN_TOOL_DUAL_H

#include "session.h"

#include <quern/drift.h>

/* Builds s->graph, the towers with the outputs "queries" and "passages", and the program. */
int dual_graph(struct session *session);
/* After a plan that fits no budget: makes the program one of gradcache where the recipe leaves the
 * choice, and says whether it did. */
bool dual_falls_back(struct session *session);
/* The parameters of the plan as the program needs them. */
qn_plan_params dual_plan(const struct session *session, const qn_plan_params *params);
/* The scopes of the towers that are of settings.model, ended by NULL; NULL: there are none. */
const char *const *dual_scopes(const struct session *session);
/* Whether drift of the banks is to be measured after so many updates. */
bool dual_drift_is_due(const struct session *session, int64_t updates);
/* Measures it, and limits the banks where the recipe says so; between two updates. */
int dual_drift(struct session *session, qn_drift *drift);
/* The number of the loss of a micro-step's own queries among those of its metrics; below 0: it is
 * the loss itself. */
int dual_local_loss(const struct session *session);

#endif
