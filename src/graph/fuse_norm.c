/* SPDX-License-Identifier: MIT
 *
 * A ReLU that alone reads a batch norm becomes part of it. Nothing more is kept for that: backward
 * reads the norm's input as before, and no result.
 */
#include "graph/fuse.h"
#include "op/batch_norm.h"

#include <stdlib.h>
#include <string.h>

static bool is(const struct qn_node *node, const char *op)
{
    return node->kind == QN_NODE_OPERATOR && strcmp(node->op->name, op) == 0;
}

/* The norm stays in its place and keeps its name, which is that of its running averages. It gives
 * what the ReLU gave, and the ReLU what the norm gave: nobody reads that. A ReLU that was joined
 * before reads the norm's result as it did, so that nodes still follow what they read. */
static bool join(qn_graph *graph, uint32_t norm, uint32_t relu)
{
    struct qn_node *stays = &graph->nodes[norm], *leaves = &graph->nodes[relu];
    struct qn_batch_norm_attr attr = *(const struct qn_batch_norm_attr *)stays->attr;
    const uint32_t between = stays->out, result = leaves->out;
    attr.relu = 1;
    stays->attr = qn_arena_copy(&graph->arena, &attr, sizeof attr);
    stays->recompute = stays->recompute || leaves->recompute;
    for (uint32_t n = norm + 1; n <= relu; n++)
        if (graph->nodes[n].in[0] == between)
            graph->nodes[n].in[0] = result;
    stays->out = result;
    leaves->out = between;
    graph->tensors[result].node = norm;
    graph->tensors[between].node = relu;
    return stays->attr;
}

/* Joining counts no other norm's readers anew. */
bool qn_graph_fuse_norms(qn_graph *graph)
{
    int *uses = qn_graph_uses(graph);
    bool done = uses;
    for (int n = 0; done && n < graph->n_nodes; n++) {
        if (!is(&graph->nodes[n], "relu"))
            continue;
        const uint32_t between = graph->nodes[n].in[0], norm = graph->tensors[between].node;
        if (is(&graph->nodes[norm], "batch_norm") && uses[between] == 1)
            done = join(graph, norm, (uint32_t)n);
    }
    free(uses);
    return done;
}
