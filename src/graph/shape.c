/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "graph/error.h"

void qn_operand_at(const struct qn_operand *symbolic, int64_t batch, struct qn_operand *concrete)
{
    *concrete = *symbolic;
    for (int d = 0; d < symbolic->shape.rank; d++)
        if (symbolic->shape.dim[d] < 0)
            concrete->shape.dim[d] = qn_mul(-symbolic->shape.dim[d], batch);
}

qn_status qn_graph_node_shape(const qn_graph *graph, const struct qn_node *node, int64_t batch,
                              struct qn_shape_call *call)
{
    *call = (struct qn_shape_call){.attr = node->attr, .storage = graph->storage, .batch = batch};
    for (int i = 0; i < node->op->n_in; i++)
        if (node->in[i])
            qn_operand_at(&graph->tensors[node->in[i]].symbolic, batch, &call->in[i]);
    return node->op->shape(call);
}

/* Every operand must be countable: sizes beyond 63 bits end here, not in a kernel. */
static bool countable(const struct qn_operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        if (qn_present(&operands[i]) && qn_operand_bytes(&operands[i]) < 0)
            return false;
    return true;
}

static bool all_countable(const struct qn_shape_call *call)
{
    return countable(call->out, QN_MAX_OUT) && countable(call->saved, QN_MAX_SAVED) &&
           countable(call->temp, QN_MAX_TEMP) && countable(call->state, QN_MAX_STATE) &&
           countable(call->gather, QN_MAX_STATE);
}

static qn_status operator_shapes(const qn_graph *graph, int number, int64_t batch,
                                 const struct qn_log *log, struct qn_shapes *shapes)
{
    const struct qn_node *node = &graph->nodes[number];
    struct qn_shape_call *call = &shapes->calls[number];
    *call = (struct qn_shape_call){.attr = node->attr, .storage = graph->storage, .batch = batch};
    for (int i = 0; i < node->op->n_in; i++)
        if (node->in[i])
            call->in[i] = shapes->tensors[node->in[i]];
    qn_status status = node->op->shape(call);
    if (status != QN_OK)
        return qn_fail(log, status, "%s: %s", node->name, call->reason);
    if (!all_countable(call))
        return qn_fail(log, QN_ERR_SHAPE, "%s: a tensor of it is too large to count", node->name);
    for (int i = 0; i < node->op->n_out; i++)
        shapes->tensors[node->out + (uint32_t)i] = call->out[i];
    return QN_OK;
}

qn_status qn_graph_shapes(const qn_graph *graph, int64_t batch, struct qn_arena *arena,
                          const struct qn_log *log, struct qn_shapes *shapes)
{
    shapes->tensors = qn_arena_new(arena, struct qn_operand, (size_t)graph->n_tensors + 1);
    shapes->calls = qn_arena_new(arena, struct qn_shape_call, (size_t)graph->n_nodes + 1);
    if (!shapes->tensors || !shapes->calls)
        return qn_fail(log, QN_ERR_MEMORY, "shapes: out of host memory");
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind == QN_NODE_OPERATOR)
            QN_TRY(operator_shapes(graph, n, batch, log, shapes));
        else
            qn_operand_at(&node->leaf, batch, &shapes->tensors[node->out]);
        if (node->kind == QN_NODE_INPUT && !countable(&shapes->tensors[node->out], 1))
            return qn_fail(log, QN_ERR_SHAPE, "%s: too large to count", node->name);
    }
    return QN_OK;
}

int64_t qn_common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return qn_mul(a / x, b);
}

int64_t qn_graph_batch_group(const qn_graph *graph)
{
    int64_t group = 1;
    for (int n = 0; n < graph->n_nodes && group > 0 && !graph->evaluated; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind != QN_NODE_OPERATOR || !node->op->batch_group)
            continue;
        group = qn_common_multiple(group, node->op->batch_group(node->attr));
    }
    return group;
}
