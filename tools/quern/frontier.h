/* SPDX-License-Identifier: MIT
 *
 * What other budgets would give.
 */
#ifndef QUERN_TOOL_FRONTIER_H
#define QUERN_TOOL_FRONTIER_H

#include "failure.h"

#include <quern/plan.h>
#include <stdio.h>

struct frontier {
    qn_plan_point *points; /* (count); freed by the caller */
    int count;             /* one at least */
};

int frontier_read(struct frontier *frontier, const qn_plan *plan, struct failure *failure);
/* Whether a point is what a budget gives: the last one that fits. */
bool frontier_is_at(const struct frontier *frontier, int point, int64_t budget);
/* A list of objects, without a line end. */
void frontier_json(FILE *out, const struct frontier *frontier);

#endif
