/* SPDX-License-Identifier: MIT
 *
 * A plan as a page: the map of its memory, in which a pointer names what lives where and why, and
 * what other budgets would give.
 */
#ifndef QUERN_TOOL_PLAN_PAGE_H
#define QUERN_TOOL_PLAN_PAGE_H

#include "failure.h"

#include <quern/plan.h>

/* `name`: of the recipe. The file of that path is replaced whole or not at all. */
int plan_page_write(const qn_plan *plan, const char *name, const char *path,
                    struct failure *failure);

#endif
