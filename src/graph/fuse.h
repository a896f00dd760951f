/* SPDX-License-Identifier: MIT
 *
 * The kinds of fusion that qn_graph_fuse is made of, in their order.
 */
#ifndef QN_GRAPH_FUSE_H
#define QN_GRAPH_FUSE_H

#include "graph/graph.h"

/* A batch norm and the ReLU that alone reads it. False when out of memory. */
bool qn_graph_fuse_norms(qn_graph *graph);

/* Chains of elementwise operators. False when out of memory. */
bool qn_graph_fuse_chains(qn_graph *graph);

#endif
