/* SPDX-License-Identifier: MIT
 *
 * A ReLU that alone reads a batch norm becomes part of it. Nothing more is kept for that: backward
 * reads the norm's input as before, and no result.
 */
#include "graph/fuse.h"
#include "op/batch_norm.h"

#include <string.h>

static bool is(const struct qn_node *node, const char *op)
{
    return node->kind == QN_NODE_OPERATOR && strcmp(node->op->name, op) == 0;
}

/* Whether it is an operand once and no output of the graph. */
static bool has_one_reader(const qn_graph *graph, uint32_t tensor)
{
    int readers = 0;
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < QN_MAX_IN; i++)
            readers += graph->nodes[n].in[i] == tensor;
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i].tensor == tensor)
            return false;
    return readers == 1;
}

/* The norm stays in its place and keeps its name, which is that of its running averages. It gives
 * what the ReLU gave, and the ReLU what the norm gave: nobody reads that. */
static bool join(qn_graph *graph, uint32_t norm, uint32_t relu)
{
    struct qn_node *stays = &graph->nodes[norm], *leaves = &graph->nodes[relu];
    struct qn_batch_norm_attr attr = *(const struct qn_batch_norm_attr *)stays->attr;
    const uint32_t between = stays->out, result = leaves->out;
    attr.relu = 1;
    stays->attr = qn_arena_copy(&graph->arena, &attr, sizeof attr);
    stays->recompute = leaves->recompute;
    stays->out = leaves->in[0] = result;
    leaves->out = between;
    graph->tensors[result].node = norm;
    graph->tensors[between].node = relu;
    return stays->attr;
}

bool qn_graph_fuse_norms(qn_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        if (!is(&graph->nodes[n], "relu"))
            continue;
        const uint32_t between = graph->nodes[n].in[0], norm = graph->tensors[between].node;
        if (is(&graph->nodes[norm], "batch_norm") && has_one_reader(graph, between) &&
            !join(graph, norm, (uint32_t)n))
            return false;
    }
    return true;
}
