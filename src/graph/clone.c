/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

static void *copy_items(const void *items, int count, size_t size)
{
    void *copy = malloc((size_t)count * size + 1);
    if (copy && count)
        memcpy(copy, items, (size_t)count * size);
    return copy;
}

/* Moves what a node points to into the clone's own arena. */
static bool adopt_node(struct qn_arena *arena, struct qn_node *node)
{
    node->name = qn_arena_strdup(arena, node->name);
    if (node->kind == QN_NODE_OPERATOR)
        node->attr = qn_arena_copy(arena, node->attr, (size_t)node->op->attr_size);
    if (node->kind == QN_NODE_CONSTANT)
        node->values = qn_arena_copy(arena, node->values,
                                     (size_t)qn_shape_count(&node->leaf.shape) * sizeof(float));
    return node->name && (node->kind != QN_NODE_OPERATOR || node->attr) &&
           (node->kind != QN_NODE_CONSTANT || node->values);
}

static bool adopt_all(qn_graph *clone)
{
    for (int n = 0; n < clone->n_nodes; n++)
        if (!adopt_node(&clone->arena, &clone->nodes[n]))
            return false;
    for (int i = 0; i < clone->n_outputs; i++)
        if (!(clone->outputs[i].name = qn_arena_strdup(&clone->arena, clone->outputs[i].name)))
            return false;
    return true;
}

qn_graph *qn_graph_clone(const qn_graph *graph)
{
    qn_graph *clone = malloc(sizeof *clone);
    if (!clone)
        return NULL;
    *clone = *graph;
    clone->arena = (struct qn_arena){0};
    clone->names = (struct qn_node_names){0};
    clone->nodes = copy_items(graph->nodes, graph->n_nodes, sizeof *graph->nodes);
    clone->tensors = copy_items(graph->tensors, graph->n_tensors, sizeof *graph->tensors);
    clone->node_capacity = graph->n_nodes;
    clone->tensor_capacity = graph->n_tensors;
    if (!clone->nodes || !clone->tensors || !adopt_all(clone))
        qn_graph_destroy(&clone);
    return clone;
}
