/* SPDX-License-Identifier: MIT
 *
 * Shapes and costs behind the lines of a graph file.
 */
#ifndef QN_FORM_SUMMARY_H
#define QN_FORM_SUMMARY_H

#include "form/field.h"

/* Adds a comment to each line of `text`, of which there is one for each node that is `written`, and
 * the sums behind the last. */
void qn_form_summary(struct qn_text *text, const qn_graph *graph, const bool *written);

#endif
