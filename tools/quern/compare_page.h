/* SPDX-License-Identifier: MIT
 *
 * The page of a comparison: tables, curves and bytes of all its runs.
 */
#ifndef QUERN_TOOL_COMPARE_PAGE_H
#define QUERN_TOOL_COMPARE_PAGE_H

#include "compare_runs.h"

/* Of what the runs wrote so far; the file of that name is replaced whole or not at all. */
int compare_page(const struct comparison *comparison, const char *path, struct failure *failure);

#endif
