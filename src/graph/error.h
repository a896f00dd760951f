/* SPDX-License-Identifier: MIT
 *
 * Sticky errors of a graph.
 */
#ifndef QN_GRAPH_ERROR_H
#define QN_GRAPH_ERROR_H

#include "graph/graph.h"

/* Keeps the first error and logs it; gives no tensor. */
qn_tensor qn_graph_fail(qn_graph *graph, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
