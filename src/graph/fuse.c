/* SPDX-License-Identifier: MIT
 *
 * Chains of elementwise operators, each read by the next alone, become one node in the place of
 * their last.
 */
#include "graph/fuse.h"

#include "base/shape.h"
#include "op/chain.h"

#include <stdlib.h>
#include <string.h>

struct chain {
    int node[QN_CHAIN_STEPS]; /* in building order; the last one stays, as a chain */
    int count;
};

struct fusion {
    qn_graph *graph;
    const struct qn_op *op; /* the operator chain */
    int *uses;              /* by tensor: operands and outputs of the graph that it is */
};

static struct qn_node *node_at(const struct fusion *f, const struct chain *c, int step)
{
    return &f->graph->nodes[c->node[step]];
}

/* --- one node --- */

static bool link_of(const qn_graph *graph, const struct qn_node *node, struct qn_chain_link *link)
{
    struct qn_shape_call call;
    *link = (struct qn_chain_link){0};
    return node->kind == QN_NODE_OPERATOR && node->op->link &&
           qn_graph_node_shape(graph, node, 1, &call) == QN_OK && node->op->link(&call, link);
}

/* Tensors of the forward pass, parameters apart, that backward groups of a node read. */
struct kept {
    uint32_t tensor[4 * QN_MAX_IN];
    int count;
};

static void keep(const qn_graph *graph, uint32_t tensor, struct kept *kept)
{
    const struct qn_node *maker = &graph->nodes[graph->tensors[tensor].node];
    if (!tensor || maker->kind == QN_NODE_PARAMETER || maker->kind == QN_NODE_CONSTANT)
        return;
    for (int i = 0; i < kept->count; i++)
        if (kept->tensor[i] == tensor)
            return;
    kept->tensor[kept->count++] = tensor;
}

static void keep_reads(const qn_graph *graph, const struct qn_node *node,
                       const struct qn_group *group, struct kept *kept)
{
    for (int i = 0; i < QN_MAX_READS && group->read[i].ref.kind; i++) {
        const struct qn_read *read = &group->read[i];
        const struct qn_ref ref = read->or_.kind ? read->or_ : read->ref;
        if (!qn_group_reads(group, node->attr, i))
            continue;
        if (ref.kind == QN_REF_IN)
            keep(graph, node->in[ref.index], kept);
        if (ref.kind == QN_REF_OUT)
            keep(graph, node->out + ref.index, kept);
    }
}

static void keep_for(const qn_graph *graph, const struct qn_node *node, struct kept *kept)
{
    for (int g = 0; g < QN_MAX_GROUPS && node->op->groups[g].name; g++)
        if (node->op->groups[g].phase & QN_PHASE_BACKWARD)
            keep_reads(graph, node, &node->op->groups[g], kept);
}

/* --- a chain --- */

static bool is_row(const qn_graph *graph, const struct qn_node *node, uint32_t tensor)
{
    return graph->tensors[tensor].symbolic.shape.rank <
           graph->tensors[node->out].symbolic.shape.rank;
}

/* The number under which the chain knows the tensor; it becomes an input if it is none yet; -1:
 * there is no room. */
static int value_of(const struct fusion *f, const struct chain *c, uint32_t tensor, uint32_t *in)
{
    for (int k = 0; k < c->count; k++)
        if (node_at(f, c, k)->out == tensor)
            return QN_CHAIN_STEP + k;
    const bool row = is_row(f->graph, node_at(f, c, 0), tensor);
    for (int i = row ? QN_CHAIN_BIAS : 0; i < (row ? QN_CHAIN_INPUTS : QN_CHAIN_BIAS); i++) {
        if (!in[i])
            in[i] = tensor;
        if (in[i] == tensor)
            return i;
    }
    return -1;
}

/* The chain as a node with the name and the output of its last one; false: it has too many
 * inputs. */
static bool assemble(const struct fusion *f, const struct chain *c, struct qn_chain_attr *attr,
                     struct qn_node *node)
{
    *node = *node_at(f, c, c->count - 1);
    *attr = (struct qn_chain_attr){.count = c->count};
    node->op = f->op;
    node->attr = attr;
    memset(node->in, 0, sizeof node->in);
    for (int k = 0; k < c->count; k++) {
        const struct qn_node *step = node_at(f, c, k);
        struct qn_chain_link *link = &attr->step[k];
        link_of(f->graph, step, link);
        node->recompute = node->recompute || step->recompute;
        link->a = value_of(f, c, step->in[0], node->in);
        link->b = qn_chain_is_binary(link->op) ? value_of(f, c, step->in[1], node->in) : 0;
        if (link->a < 0 || link->b < 0)
            return false;
    }
    return true;
}

static bool gives_the_same(const struct fusion *f, const struct qn_node *node)
{
    struct qn_shape_call call;
    struct qn_operand before;
    qn_operand_at(&f->graph->tensors[node->out].symbolic, 1, &before);
    return qn_graph_node_shape(f->graph, node, 1, &call) == QN_OK &&
           call.out[0].dtype == before.dtype && qn_shape_equal(&call.out[0].shape, &before.shape);
}

static int arrays_of(const struct qn_node *node)
{
    int count = 0;
    while (count < QN_CHAIN_BIAS && node->in[count])
        count++;
    return count;
}

/* --- growing --- */

static bool holds(const struct chain *c, int n)
{
    for (int k = 0; k < c->count; k++)
        if (c->node[k] == n)
            return true;
    return false;
}

static bool all_uses_inside(const struct fusion *f, const struct chain *c, uint32_t tensor)
{
    int inside = 0;
    for (int k = 0; k < c->count; k++)
        for (int i = 0; i < QN_MAX_IN; i++)
            inside += node_at(f, c, k)->in[i] == tensor;
    return inside == f->uses[tensor];
}

/* Whether operators run between node p and the chain. */
static bool is_apart(const struct fusion *f, const struct chain *c, int p)
{
    for (int n = p + 1; n < c->node[c->count - 1]; n++)
        if (f->graph->nodes[n].kind == QN_NODE_OPERATOR && !holds(c, n))
            return true;
    return false;
}

/* A longer chain must not keep more for the backward pass, nor more through what runs between. */
static bool costs_memory(const struct fusion *f, const struct chain *c, const struct qn_node *chain,
                         int p, const struct qn_node *longer)
{
    struct kept before = {.count = 0}, after = {.count = 0};
    keep_for(f->graph, chain, &before);
    keep_for(f->graph, &f->graph->nodes[p], &before);
    keep_for(f->graph, longer, &after);
    return after.count > before.count ||
           (arrays_of(longer) > arrays_of(chain) && is_apart(f, c, p));
}

static struct chain with(const struct chain *c, int p)
{
    struct chain longer = *c;
    int k = longer.count++;
    for (; k > 0 && longer.node[k - 1] > p; k--)
        longer.node[k] = longer.node[k - 1];
    longer.node[k] = p;
    return longer;
}

/* Takes in the node that makes the tensor, if it may. */
static bool absorb(const struct fusion *f, struct chain *c, uint32_t tensor)
{
    const int p = (int)f->graph->tensors[tensor].node;
    struct qn_chain_link link;
    if (!tensor || c->count == QN_CHAIN_STEPS || holds(c, p) || !all_uses_inside(f, c, tensor) ||
        !link_of(f->graph, &f->graph->nodes[p], &link))
        return false;
    const struct chain longer = with(c, p);
    struct qn_chain_attr attrs[2];
    struct qn_node now, then;
    if (!assemble(f, c, &attrs[0], &now) || !assemble(f, &longer, &attrs[1], &then) ||
        !gives_the_same(f, &then) || costs_memory(f, c, &now, p, &then))
        return false;
    *c = longer;
    return true;
}

static bool grow(const struct fusion *f, struct chain *c)
{
    for (int k = 0; k < c->count; k++)
        for (int i = 0; i < node_at(f, c, k)->op->n_in; i++)
            if (absorb(f, c, node_at(f, c, k)->in[i]))
                return true;
    return false;
}

/* The longest chain that ends at node n takes its place; false when out of memory. */
static bool fuse_at(struct fusion *f, int n)
{
    struct chain c = {.node = {n}, .count = 1};
    struct qn_chain_attr attr;
    struct qn_node node;
    while (grow(f, &c))
        ;
    if (c.count == 1 || !assemble(f, &c, &attr, &node))
        return true;
    for (int i = 0; i < QN_MAX_IN; i++) {
        f->uses[f->graph->nodes[n].in[i]]--;
        f->uses[node.in[i]]++;
    }
    node.attr = qn_arena_copy(&f->graph->arena, &attr, sizeof attr);
    f->graph->nodes[n] = node;
    return node.attr;
}

bool qn_graph_fuse_chains(qn_graph *graph)
{
    struct qn_chain_link link;
    struct fusion f = {.graph = graph, .op = qn_op_find("chain"), .uses = qn_graph_uses(graph)};
    bool done = f.uses;
    for (int n = graph->n_nodes - 1; done && n >= 0; n--)
        if (link_of(graph, &graph->nodes[n], &link))
            done = fuse_at(&f, n);
    free(f.uses);
    return done;
}

bool qn_graph_fuse(qn_graph *graph)
{
    if (!graph->fused)
        graph->fused = qn_graph_fuse_norms(graph) && qn_graph_fuse_chains(graph);
    return graph->fused;
}
