/* SPDX-License-Identifier: MIT
 *
 * What the nodes of a graph are and cost: shapes, parameters, operations and bytes of one sample.
 */
#include "form/summary.h"
#include "graph/graph.h"
#include "op/op.h"

#include <quern/device.h>
#include <quern/graph_file.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations of the forward groups of a training, as their first variant that fits counts them. */
static double flops_of(const struct qn_node *node, const struct qn_shape_call *shape,
                       const qn_facts *facts)
{
    double flops = 0;
    for (const struct qn_group *group = node->op->groups; group->name; group++) {
        struct qn_call call = {
            .op = node->op, .attr = node->attr, .facts = facts, .name = node->name, .batch = 1};
        const struct qn_variant *variant = group->variant, *end = variant + QN_MAX_VARIANTS;
        struct qn_cost cost = {0};
        const char *why;
        if (!(group->phase & QN_PHASE_TRAIN))
            continue;
        memcpy(call.in, shape->in, sizeof call.in);
        memcpy(call.out, shape->out, sizeof call.out);
        memcpy(call.saved, shape->saved, sizeof call.saved);
        memcpy(call.state, shape->state, sizeof call.state);
        memcpy(call.gather, shape->gather, sizeof call.gather);
        while (variant < end && variant->name && !qn_call_fits(&call, variant, 0, &why))
            variant++;
        if (variant < end && variant->name)
            variant->cost(&call, &cost);
        flops += cost.flops;
    }
    return flops;
}

static const char *kind_of(const struct qn_node *node)
{
    switch (node->kind) {
    case QN_NODE_INPUT:
        return node->cell ? "cell" : "input";
    case QN_NODE_PARAMETER:
        return "parameter";
    case QN_NODE_CONSTANT:
        return "constant";
    default:
        return node->op->name;
    }
}

static void describe(const qn_graph *graph, const struct qn_node *node, const qn_facts *facts,
                     qn_node_info *info)
{
    const struct qn_operand *symbolic = &graph->tensors[node->out].symbolic;
    struct qn_operand one;
    struct qn_shape_call shape;
    *info = (qn_node_info){.name = node->name,
                           .kind = kind_of(node),
                           .dtype = symbolic->dtype,
                           .shape = symbolic->shape};
    if (node->kind == QN_NODE_OPERATOR && qn_graph_node_shape(graph, node, 1, &shape) == QN_OK)
        info->flops = flops_of(node, &shape, facts);
    if (node->kind == QN_NODE_PARAMETER) {
        info->parameters = qn_operand_count(&node->leaf);
        info->frozen = node->frozen;
    }
    qn_operand_at(symbolic, 1, &one);
    if (node->kind != QN_NODE_OPERATOR || !node->op->view)
        info->bytes = qn_operand_bytes(&one);
}

qn_node_info *qn_graph_nodes(const qn_graph *graph, int *count)
{
    qn_facts facts;
    *count = 0;
    if (!graph || qn_graph_status(graph) != QN_OK)
        return NULL;
    qn_facts_default(&facts, true);
    qn_node_info *nodes = calloc((size_t)graph->n_nodes + 1, sizeof *nodes);
    for (int n = 0; nodes && n < graph->n_nodes; n++)
        describe(graph, &graph->nodes[n], &facts, &nodes[n]);
    *count = nodes ? graph->n_nodes : 0;
    return nodes;
}

/* --- for people --- */

enum { WIDEST = 88, NUMBER_BYTES = 32 };

/* "1.23 G": in thousands. */
static const char *scaled(double value, char text[NUMBER_BYTES])
{
    static const char units[] = {0, 'k', 'M', 'G', 'T', 'P'};
    int unit = 0;
    for (; value >= 999.5 && unit < 5; unit++)
        value /= 1000;
    if (unit)
        snprintf(text, NUMBER_BYTES, "%.3g %c", value, units[unit]);
    else
        snprintf(text, NUMBER_BYTES, "%.0f", value);
    return text;
}

static void put_info(struct qn_text *text, const qn_node_info *info)
{
    char flops[NUMBER_BYTES], bytes[NUMBER_BYTES];
    struct qn_text shape = {0};
    if (info->parameters) {
        qn_text_add(text, "# %" PRId64 " parameters", info->parameters);
        return;
    }
    qn_form_put_shape(&shape, &info->shape);
    qn_text_add(text, "# %-16s %8s flops", shape.bytes ? shape.bytes : "",
                scaled(info->flops, flops));
    if (info->bytes)
        qn_text_add(text, " %10s", qn_size_text(info->bytes, bytes, sizeof bytes));
    text->failed |= shape.failed;
    qn_text_free(&shape);
}

/* Its line says its shape. */
static bool is_input(const qn_node_info *info)
{
    return strcmp(info->kind, "input") == 0 || strcmp(info->kind, "cell") == 0;
}

static size_t width_of(const char *line)
{
    const size_t length = strcspn(line, "\n");
    return length < WIDEST ? length : WIDEST;
}

static void put_totals(struct qn_text *text, const qn_node_info *nodes, const bool *written,
                       int count)
{
    int64_t parameters = 0, frozen = 0, bytes = 0;
    double flops = 0;
    char number[NUMBER_BYTES];
    for (int n = 0; n < count; n++) {
        const qn_node_info *info = &nodes[n];
        parameters += info->parameters;
        frozen += info->frozen ? info->parameters : 0;
        flops += written[n] ? info->flops : 0;
        bytes += written[n] && !info->parameters ? info->bytes : 0;
    }
    qn_text_add(text, "#\n# %" PRId64 " parameters, of which %" PRId64 " are frozen\n", parameters,
                frozen);
    qn_text_add(text, "# of one sample: %s flops forward, ", scaled(flops, number));
    qn_text_add(text, "%s of inputs and results\n", qn_size_text(bytes, number, sizeof number));
}

void qn_form_summary(struct qn_text *text, const qn_graph *graph, const bool *written)
{
    struct qn_text all = {0};
    int count, n = 0;
    if (text->failed)
        return;
    qn_node_info *nodes = qn_graph_nodes(graph, &count);
    size_t width = 0;
    for (const char *line = text->bytes; line && *line; line = strchr(line, '\n') + 1)
        width = width_of(line) > width ? width_of(line) : width;
    for (const char *line = text->bytes; nodes && line && *line; line = strchr(line, '\n') + 1) {
        while (n < count && !written[n])
            n++;
        qn_text_add(&all, "%.*s", (int)strcspn(line, "\n"), line);
        if (n < count && !is_input(&nodes[n])) {
            qn_text_add(&all, "%*s", (int)(width - width_of(line)) + 2, "");
            put_info(&all, &nodes[n]);
        }
        n++;
        qn_text_add(&all, "\n");
    }
    if (nodes)
        put_totals(&all, nodes, written, count);
    all.failed |= !nodes;
    free(nodes);
    qn_text_free(text);
    *text = all;
}
