/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"

#include <stdlib.h>

uint32_t qn_graph_root(const qn_graph *graph, uint32_t tensor)
{
    for (;;) {
        const struct qn_node *node = &graph->nodes[graph->tensors[tensor].node];
        if (node->kind != QN_NODE_OPERATOR || !node->op->view)
            return tensor;
        tensor = node->in[0];
    }
}

int *qn_graph_uses(const qn_graph *graph)
{
    int *uses = calloc((size_t)graph->n_tensors + 1, sizeof *uses);
    for (int n = 0; uses && n < graph->n_nodes; n++)
        for (int i = 0; i < QN_MAX_IN; i++)
            uses[graph->nodes[n].in[i]]++;
    for (int i = 0; uses && i < graph->n_outputs; i++)
        uses[graph->outputs[i].tensor]++;
    return uses;
}

/* Building order is a topological order, so one walk from the end marks all ancestors. */
void qn_graph_mark_ancestors(const qn_graph *graph, bool *used)
{
    for (int n = graph->n_nodes - 1; n >= 0; n--) {
        const struct qn_node *node = &graph->nodes[n];
        if (!used[n] || node->kind != QN_NODE_OPERATOR)
            continue;
        for (int i = 0; i < node->op->n_in; i++)
            if (node->in[i])
                used[graph->tensors[node->in[i]].node] = true;
    }
}

void qn_graph_mark_training(const qn_graph *graph, bool *used)
{
    for (int i = 0; i < graph->n_losses; i++)
        used[graph->losses[i].node] = true;
    qn_graph_mark_ancestors(graph, used);
}

void qn_graph_mark_evaluation(const qn_graph *graph, bool *used)
{
    for (int i = 0; i < graph->n_outputs; i++)
        used[graph->tensors[graph->outputs[i].tensor].node] = true;
    qn_graph_mark_ancestors(graph, used);
}

static bool any_input_wanted(const struct qn_node *node, const bool *wanted)
{
    for (int i = 0; i < node->op->n_in; i++)
        if (node->in[i] && !(node->op->no_gradient >> i & 1u) && wanted[node->in[i]])
            return true;
    return false;
}

void qn_graph_mark_gradients(const qn_graph *graph, const int *gradient, bool *wanted)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        bool want =
            node->kind == QN_NODE_OPERATOR ? any_input_wanted(node, wanted) : gradient[n] >= 0;
        int n_out = node->kind == QN_NODE_OPERATOR ? node->op->n_out : 1;
        for (int i = 0; i < n_out; i++)
            wanted[node->out + (uint32_t)i] = want;
    }
}
