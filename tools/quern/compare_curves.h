/* SPDX-License-Identifier: MIT
 *
 * The curves of a comparison: a chart for each figure, with a line for each run, in the colour of
 * its variant; of several seeds these are pale, and their mean is drawn on top of them.
 */
#ifndef QUERN_TOOL_COMPARE_CURVES_H
#define QUERN_TOOL_COMPARE_CURVES_H

#include "compare_runs.h"
#include "page.h"

/* Losses and evaluations over samples and over the seconds of the updates alone; norms of gradients
 * over samples; drift of banks over the age of what they hold. */
void compare_curves(struct page *page, const struct comparison *comparison);

#endif
