/* SPDX-License-Identifier: MIT
 *
 * The curves of a report: a chart for each figure, with a line for each training that has it.
 */
#ifndef QUERN_TOOL_REPORT_CURVES_H
#define QUERN_TOOL_REPORT_CURVES_H

#include "report_page.h"

void report_curves(struct page *page, const struct report *report);

/* How a figure is called that is told under the name it has in the metrics. NULL: it is known under
 * another one or is not told, or a training before this one has it, too. */
const char *report_figure_title(const struct report *report, int training, int figure,
                                char text[FIGURE_NAME_BYTES]);
/* "test_accuracy" as "test accuracy". Gives `text`. */
const char *report_readable(const char *name, char text[FIGURE_NAME_BYTES]);

#endif
