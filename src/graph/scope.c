/* SPDX-License-Identifier: MIT
 *
 * Networks inside larger ones: what their names begin with.
 */
#include "graph/error.h"

#include <stdio.h>
#include <string.h>

static bool is_short(const char *text, size_t least)
{
    const size_t length = text ? strlen(text) : 0;
    return length >= least && length <= QN_GRAPH_MAX_NAME;
}

void qn_graph_begin_scope(qn_graph *graph, const qn_scope *scope)
{
    if (!graph || graph->status != QN_OK)
        return;
    if (!scope || !is_short(scope->prefix, 1) || !is_short(scope->parameters, 0) ||
        scope->each < 0) {
        qn_graph_fail(graph, QN_ERR_ARGUMENT,
                      "qn_graph_begin_scope: a prefix has from 1 to %d bytes", QN_GRAPH_MAX_NAME);
        return;
    }
    if (*graph->scope.prefix) {
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_graph_begin_scope: %s: %s has not ended",
                      scope->prefix, graph->scope.prefix);
        return;
    }
    graph->scope.each = scope->each;
    graph->scope.shared = scope->parameters != NULL;
    strcpy(graph->scope.prefix, scope->prefix);
    strcpy(graph->scope.parameters, scope->parameters ? scope->parameters : "");
}

void qn_graph_end_scope(qn_graph *graph)
{
    if (graph)
        graph->scope = (struct qn_graph_scope){.shared = false};
}

static const char *join(const char *prefix, const char *name, char text[QN_SCOPED_BYTES])
{
    if (!name || !*prefix)
        return name;
    snprintf(text, QN_SCOPED_BYTES, "%s%s", prefix, name);
    return text;
}

const char *qn_graph_scoped(const qn_graph *graph, const char *name, char text[QN_SCOPED_BYTES])
{
    return graph ? join(graph->scope.prefix, name, text) : name;
}

const char *qn_graph_scoped_parameter(const qn_graph *graph, const char *name,
                                      char text[QN_SCOPED_BYTES])
{
    const struct qn_graph_scope *scope = graph ? &graph->scope : NULL;
    return scope ? join(scope->shared ? scope->parameters : scope->prefix, name, text) : name;
}

/* Where a sample has several rows, the node behind an input's makes each of them a sample. */
static bool has_rows(const qn_graph *graph, const struct qn_node *input)
{
    return graph->scope.each > 1 && input->kind == QN_NODE_INPUT && !input->cell &&
           input + 1 < graph->nodes + graph->n_nodes && input[1].in[0] == input->out;
}

qn_tensor qn_graph_scoped_tensor(qn_graph *graph, const char *name)
{
    char scoped[QN_SCOPED_BYTES];
    int number = qn_graph_named(graph, qn_graph_scoped(graph, name, scoped));
    if (number >= 0)
        return (qn_tensor){graph->nodes[number + has_rows(graph, &graph->nodes[number])].out};
    number = qn_graph_named(graph, qn_graph_scoped_parameter(graph, name, scoped));
    return number >= 0 && graph->nodes[number].kind == QN_NODE_PARAMETER
               ? (qn_tensor){graph->nodes[number].out}
               : (qn_tensor){0};
}

qn_tensor qn_graph_take_output(qn_graph *graph, const char *name)
{
    char scoped[QN_SCOPED_BYTES];
    name = qn_graph_scoped(graph, name, scoped);
    for (int i = 0; graph && name && i < graph->n_outputs; i++) {
        const qn_tensor tensor = {graph->outputs[i].tensor};
        if (strcmp(graph->outputs[i].name, name) != 0)
            continue;
        graph->n_outputs--;
        memmove(&graph->outputs[i], &graph->outputs[i + 1],
                (size_t)(graph->n_outputs - i) * sizeof *graph->outputs);
        return tensor;
    }
    return (qn_tensor){0};
}
