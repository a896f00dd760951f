/* SPDX-License-Identifier: MIT
 *
 * The writer: one line for each node in their order, then the outputs.
 */
#include "base/log.h"
#include "form/forms.h"
#include "form/summary.h"

#include <quern/graph_file.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    const qn_graph *graph;
    const qn_log *log;
    struct qn_text text;
    bool *written; /* by node: it has a line */
    int only;      /* the one output that is written; -1: all are */
};

static bool refuse(const struct writer *w, const struct qn_node *node, const char *why)
{
    qn_fail(w->log, QN_ERR_ARGUMENT, "%s: cannot be written: %s", node->name, why);
    return false;
}

static const struct qn_node *node_of(const qn_graph *graph, uint32_t tensor)
{
    return &graph->nodes[graph->tensors[tensor].node];
}

/* --- leaves --- */

static void put_parameter(struct qn_text *text, const struct qn_node *node)
{
    const qn_shape *shape = &node->leaf.shape;
    qn_text_add(text, "parameter %s ", node->name);
    qn_form_put_shape(text, shape);
    qn_text_add(text, " init=");
    qn_form_put_init(text, &node->init, shape);
    if (node->frozen)
        qn_text_add(text, " frozen=yes");
    if (node->rate != 1) {
        qn_text_add(text, " rate=");
        qn_form_put(text, (double)node->rate, true);
    }
    if (node->decay != (float)(shape->rank >= 2)) {
        qn_text_add(text, " decay=");
        qn_form_put(text, (double)node->decay, true);
    }
}

static void put_input(struct qn_text *text, const struct qn_node *node)
{
    qn_text_add(text, "%s %s %s ", node->cell ? "cell" : "input", node->name,
                qn_dtype_name(node->leaf.dtype));
    qn_form_put_shape(text, &node->leaf.shape);
}

static bool is_finite(const struct qn_node *constant)
{
    for (int64_t i = 0; i < constant->leaf.shape.dim[0]; i++)
        if (!isfinite(constant->values[i]))
            return false;
    return true;
}

static bool put_constant(struct writer *w, const struct qn_node *node)
{
    const size_t before = w->text.length;
    qn_text_add(&w->text, "constant %s ", node->name);
    qn_form_put_floats(&w->text, node->values, node->leaf.shape.dim[0], ' ');
    return w->text.length - before < QN_GRAPH_FILE_LINE
               ? true
               : refuse(w, node, "its numbers do not fit into a line");
}

/* --- operators --- */

/* The operands up to the last that is there; one that could make its parameters says that it has
 * none. */
static void put_operands(struct writer *w, const struct qn_form *form, const struct qn_node *node)
{
    int required, last = 0;
    const int count = qn_form_operands(form, &required);
    for (int i = 0; i < count; i++)
        if (node->in[qn_form_input(form, i)])
            last = i;
    if (form->layer && last == 0)
        last = 1;
    qn_text_add(&w->text, "(");
    for (int i = 0; i <= last; i++) {
        const uint32_t in = node->in[qn_form_input(form, i)];
        qn_text_add(&w->text, "%s%s", i ? ", " : "", in ? node_of(w->graph, in)->name : "-");
    }
    qn_text_add(&w->text, ")");
}

static const void *kept_of(const qn_graph *graph, const struct qn_node *node)
{
    for (int i = 0; i < graph->n_losses; i++)
        if (&graph->nodes[graph->losses[i].node] == node)
            return &graph->losses[i];
    return node->attr;
}

static bool put_operator(struct writer *w, const struct qn_node *node)
{
    const struct qn_form *form = qn_form_of(node);
    const void *kept = kept_of(w->graph, node);
    const size_t before = w->text.length;
    if (!form)
        return refuse(w, node, "its operator has no written form");
    qn_text_add(&w->text, "%s = %s", node->name, form->name);
    put_operands(w, form, node);
    for (const struct qn_field *field = form->fields; field && field->name; field++)
        qn_field_write(&w->text, field, w->graph, node, kept);
    if (node->recompute)
        qn_text_add(&w->text, " recompute=yes");
    return w->text.length - before < QN_GRAPH_FILE_LINE
               ? true
               : refuse(w, node, "its attributes do not fit into a line");
}

/* --- the whole --- */

static bool put_node(struct writer *w, const struct qn_node *node)
{
    if (!qn_form_is_name(node->name))
        return refuse(w, node, "its name is none of a graph file");
    if (node->kind == QN_NODE_PARAMETER)
        put_parameter(&w->text, node);
    else if (node->kind == QN_NODE_INPUT)
        put_input(&w->text, node);
    else if (node->kind == QN_NODE_CONSTANT ? !put_constant(w, node) : !put_operator(w, node))
        return false;
    qn_text_add(&w->text, "\n");
    return true;
}

static bool put_outputs(struct writer *w)
{
    for (int i = 0; i < w->graph->n_outputs; i++) {
        const struct qn_graph_output *output = &w->graph->outputs[i];
        const struct qn_node *node = node_of(w->graph, output->tensor);
        if (w->only >= 0 && w->only != i)
            continue;
        if (!qn_form_is_name(output->name))
            return refuse(w, node, "the name of its output is none of a graph file");
        qn_text_add(&w->text, "output %s", output->name);
        if (strcmp(output->name, node->name) != 0)
            qn_text_add(&w->text, " = %s", node->name);
        qn_text_add(&w->text, "\n");
    }
    return true;
}

/* Constants that an attribute of their only reader says have no line; they are finite. */
static bool hide_constants(struct writer *w)
{
    for (int n = 0; n < w->graph->n_nodes; n++) {
        const struct qn_node *node = &w->graph->nodes[n];
        const struct qn_form *form = node->kind == QN_NODE_OPERATOR ? qn_form_of(node) : NULL;
        for (int i = 0; form && i < node->op->n_in; i++)
            if (node->in[i] && qn_form_constant(form, i))
                w->written[w->graph->tensors[node->in[i]].node] = false;
        if (node->kind == QN_NODE_CONSTANT && !is_finite(node))
            return refuse(w, node, "it has a number that is not finite");
    }
    return true;
}

/* What has a line: all nodes, or the parameters and what one output is computed from. */
static bool choose(struct writer *w, const char *output)
{
    const qn_graph *graph = w->graph;
    for (int i = 0; output && i < graph->n_outputs; i++)
        if (strcmp(graph->outputs[i].name, output) == 0)
            w->only = i;
    if (output && w->only < 0) {
        qn_fail(w->log, QN_ERR_ARGUMENT, "%s: no output has this name", output);
        return false;
    }
    for (int n = 0; n < graph->n_nodes; n++)
        w->written[n] = !output || graph->nodes[n].kind == QN_NODE_PARAMETER;
    if (output) {
        w->written[graph->tensors[graph->outputs[w->only].tensor].node] = true;
        qn_graph_mark_ancestors(graph, w->written);
    }
    return hide_constants(w);
}

static bool put_all(struct writer *w, const qn_graph_write_params *params)
{
    if (!choose(w, params->output))
        return false;
    for (int n = 0; n < w->graph->n_nodes; n++)
        if (w->written[n] && !put_node(w, &w->graph->nodes[n]))
            return false;
    if (!put_outputs(w))
        return false;
    if (params->summary)
        qn_form_summary(&w->text, w->graph, w->written);
    return true;
}

char *qn_graph_write(const qn_graph *graph, const qn_graph_write_params *params)
{
    const qn_graph_write_params none = {0};
    params = params ? params : &none;
    if (!graph || qn_graph_status(graph) != QN_OK || !graph->n_nodes) {
        qn_fail(&params->log, QN_ERR_ARGUMENT, "graph: has no node, or an error");
        return NULL;
    }
    struct writer w = {.graph = graph, .log = &params->log, .only = -1};
    w.written = calloc((size_t)graph->n_nodes, sizeof *w.written);
    const bool whole = !w.written || put_all(&w, params);
    const bool failed = !w.written || w.text.failed;
    free(w.written);
    if (whole && failed)
        qn_fail(&params->log, QN_ERR_MEMORY, "graph: out of host memory");
    if (whole && !failed)
        return qn_text_take(&w.text);
    qn_text_free(&w.text);
    return NULL;
}
