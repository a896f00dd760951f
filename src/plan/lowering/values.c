/* SPDX-License-Identifier: MIT
 *
 * Which value an operand of a node is. Values are found by root tensor: a view and the tensor that
 * it views are one value, and so are their gradients.
 */
#include "plan/lowering/lowering.h"

int qn_lower_add_value(struct lowering *l, const char *name, const struct qn_operand *operand,
                       enum qn_tag tag)
{
    struct qn_value value = {.name = name,
                             .operand = *operand,
                             .tag = tag,
                             .life = QN_LIFE_MICRO,
                             .bytes = qn_operand_bytes(operand),
                             .block = -1};
    l->problem->values[l->problem->n_values] = value;
    return l->problem->n_values++;
}

int qn_lower_add_slice(struct lowering *l, int whole, int64_t first, int64_t count)
{
    const struct qn_value of = l->problem->values[whole];
    struct qn_operand operand = of.operand;
    const int64_t unit = of.bytes / operand.shape.dim[0];
    operand.shape.dim[0] = count;
    const int value = qn_lower_add_value(l, of.name, &operand, of.tag);
    l->problem->values[value].life = of.life;
    l->problem->values[value].block = whole;
    l->problem->values[value].block_offset = first * unit;
    return value;
}

uint32_t qn_lower_root_of(const struct lowering *l, uint32_t tensor)
{
    return qn_graph_root(l->graph, tensor);
}

/* The persistent value of a leaf; -1: it has none. Evaluations read averages where there are. */
static int leaf_value(const struct lowering *l, uint32_t n)
{
    const struct qn_bound *bound = l->problem->bound;
    const bool evaluates = l->run && l->run->what == QN_RUN_EVALUATE;
    const int parameter = evaluates ? bound->parameter[n] : -1;
    const int average =
        parameter < 0 ? -1 : l->problem->persist->parameters[parameter].working_average;
    return average < 0 ? bound->leaf[n] : average;
}

int qn_lower_forward_value(struct lowering *l, uint32_t tensor)
{
    uint32_t root = qn_lower_root_of(l, tensor);
    uint32_t n = l->graph->tensors[root].node;
    const int leaf = leaf_value(l, n);
    if (leaf >= 0)
        return leaf;
    if (l->forward[root] < 0) {
        const struct qn_node *node = &l->graph->nodes[n];
        l->forward[root] =
            qn_lower_add_value(l, node->name, &l->shapes.tensors[root],
                               node->kind == QN_NODE_INPUT ? QN_TAG_INPUTS : QN_TAG_KEPT);
    }
    return l->forward[root];
}

int qn_lower_gradient_value(struct lowering *l, uint32_t tensor)
{
    uint32_t root = qn_lower_root_of(l, tensor);
    const struct qn_tensor_entry *entry = &l->graph->tensors[root];
    if (l->problem->bound->gradient[entry->node] >= 0)
        return l->problem->bound->gradient[entry->node];
    if (l->gradient[root] < 0)
        l->gradient[root] =
            qn_lower_add_value(l, l->graph->nodes[entry->node].name, &l->shapes.tensors[root],
                               QN_TAG_ACTIVATION_GRADIENTS);
    return l->gradient[root];
}

static int inner_value(struct lowering *l, int *number, int n, const struct qn_operand *operand,
                       enum qn_tag tag)
{
    if (*number < 0)
        *number = qn_lower_add_value(l, l->graph->nodes[n].name, operand, tag);
    return *number;
}

int qn_lower_value_of(struct lowering *l, int n, struct qn_ref ref)
{
    const struct qn_node *node = &l->graph->nodes[n];
    const struct qn_shape_call *call = &l->shapes.calls[n];
    int i = ref.index;
    switch (ref.kind) {
    case QN_REF_IN:
        return node->in[i] ? qn_lower_forward_value(l, node->in[i]) : -1;
    case QN_REF_OUT:
        return i < node->op->n_out ? qn_lower_forward_value(l, node->out + (uint32_t)i) : -1;
    case QN_REF_DIN:
        return node->in[i] && !(node->op->no_gradient >> i & 1u) && l->wanted[node->in[i]]
                   ? qn_lower_gradient_value(l, node->in[i])
                   : -1;
    case QN_REF_DOUT:
        return i < node->op->n_out ? qn_lower_gradient_value(l, node->out + (uint32_t)i) : -1;
    case QN_REF_SAVED:
        return qn_present(&call->saved[i])
                   ? inner_value(l, &l->saved[n][i], n, &call->saved[i], QN_TAG_KEPT)
                   : -1;
    case QN_REF_TEMP:
        return qn_present(&call->temp[i])
                   ? inner_value(l, &l->temp[n][i], n, &call->temp[i], QN_TAG_ACTIVATION_GRADIENTS)
                   : -1;
    case QN_REF_STATE:
        return l->problem->bound->state[n][i];
    case QN_REF_GATHER:
        return l->problem->bound->gather[n][i];
    default:
        return -1;
    }
}
