/* SPDX-License-Identifier: MIT
 *
 * An evaluation as a page: its figures, each class, what was taken for what, the worst mistakes.
 */
#ifndef QUERN_TOOL_EVAL_REPORT_H
#define QUERN_TOOL_EVAL_REPORT_H

#include "evaluate.h"

struct eval_report {
    const struct session *session;
    const struct evaluation *evaluation;
    const struct detail *detail;
    const char *const *names; /* of the classes; NULL: they are numbered */
    const char *weights;      /* as they were named */
};

/* Writes the page. */
int eval_report_write(const struct eval_report *report, const char *path);

#endif
