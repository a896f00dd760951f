/* SPDX-License-Identifier: MIT
 *
 * Maximum flow and minimum cut by Dinic's algorithm ("Algorithm for solution of a problem of
 * maximum flow in a network with power estimation", 1970).
 */
#ifndef QN_SEARCH_FLOW_H
#define QN_SEARCH_FLOW_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct qn_flow {
    int nodes;
    struct qn_pipe {
        int to, next; /* node that it leads to; next pipe of the same node, -1: none */
        int64_t room; /* capacity left; that of the reverse direction is in pipe i ^ 1 */
    } * pipes;
    int n_pipes;
    int *first; /* by node: pipe; -1: none */
    int *level; /* by node: length of the shortest path with room from the source; -1: none */
    int *at;    /* by node: the first pipe that fill_paths() has not ruled out */
    int *queue;
};

/* Node 0 is the source, node 1 the sink. Allocated from `arena`. False when out of memory. */
bool qn_flow_open(struct qn_flow *flow, int nodes, int most_pipes, struct qn_arena *arena);

/* Removes all pipes. */
void qn_flow_clear(struct qn_flow *flow);

void qn_flow_add(struct qn_flow *flow, int from, int to, int64_t capacity);

/* Finds the maximum flow. qn_flow_reaches then tells whether a node is on the source's side of the
 * minimum cut; of several minimum cuts, the one nearest to the source. */
void qn_flow_run(struct qn_flow *flow);

static inline bool qn_flow_reaches(const struct qn_flow *flow, int node)
{
    return flow->level[node] >= 0;
}

#endif
