/* SPDX-License-Identifier: MIT
 *
 * How the parameters of a graph train, by patterns of their names.
 */
#include "base/glob.h"
#include "graph/error.h"

#include <math.h>
#include <stdio.h>

const char *qn_graph_parameter(const qn_graph *graph, int index, qn_tensor *tensor)
{
    for (int n = 0; graph && index >= 0 && n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind != QN_NODE_PARAMETER || index-- > 0)
            continue;
        if (tensor)
            *tensor = (qn_tensor){node->out};
        return node->name;
    }
    return NULL;
}

bool qn_frozen(const qn_graph *graph, qn_tensor parameter)
{
    if (!graph || parameter.id == 0 || parameter.id >= (uint32_t)graph->n_tensors)
        return false;
    const struct qn_node *node = &graph->nodes[graph->tensors[parameter.id].node];
    return node->kind == QN_NODE_PARAMETER && node->frozen;
}

/* The names nearest to the pattern; where none is near, the first ones. */
static void refuse(qn_graph *graph, const char *what, const char *pattern, size_t length)
{
    char written[QN_GRAPH_MAX_NAME + 1], hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = written};
    const char *name, *first = qn_graph_parameter(graph, 0, NULL);
    snprintf(written, sizeof written, "%.*s", (int)length, pattern);
    for (int i = 0; (name = qn_graph_parameter(graph, i, NULL)); i++)
        qn_nearest_offer(&nearest, name);
    qn_nearest_hint(&nearest, hint);
    qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: no parameter is called '%s'%s%s", what, written,
                  *hint   ? hint
                  : first ? "; the first is "
                          : "",
                  *hint || !first ? "" : first);
}

/* What becomes of the parameters that a pattern names. */
struct change {
    const char *what; /* the function, for messages */
    bool frozen;
    const float *rate, *decay; /* NULL: as they were */
};

static bool change_named(qn_graph *graph, const struct change *change, const char *pattern,
                         size_t length)
{
    bool found = false;
    for (int n = 0; n < graph->n_nodes; n++) {
        struct qn_node *node = &graph->nodes[n];
        if (node->kind != QN_NODE_PARAMETER || !qn_glob(pattern, length, node->name))
            continue;
        found = true;
        node->frozen |= change->frozen;
        node->rate = change->rate ? *change->rate : node->rate;
        node->decay = change->decay ? *change->decay : node->decay;
    }
    return found;
}

static void change_all(qn_graph *graph, const struct change *change, const char *patterns)
{
    size_t length;
    if (!graph || graph->status != QN_OK)
        return;
    for (const char *pattern; (pattern = qn_glob_next(&patterns, &length));)
        if (!change_named(graph, change, pattern, length)) {
            refuse(graph, change->what, pattern, length);
            return;
        }
}

/* As f32; below 0: no factor. */
static float factor_of(qn_graph *graph, const char *what, double factor)
{
    if (factor >= 0 && (float)factor <= 1e6F)
        return (float)factor;
    if (graph)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: the factor %g is not from 0 to 1e6", what,
                      factor);
    return -1;
}

void qn_freeze_named(qn_graph *graph, const char *patterns)
{
    change_all(graph, &(struct change){.what = "qn_freeze_named", .frozen = true}, patterns);
}

void qn_scale_rate(qn_graph *graph, const char *patterns, double factor)
{
    const float rate = factor_of(graph, "qn_scale_rate", factor);
    change_all(graph, &(struct change){.what = "qn_scale_rate", .rate = &rate}, patterns);
}

void qn_scale_decay(qn_graph *graph, const char *patterns, double factor)
{
    const float decay = factor_of(graph, "qn_scale_decay", factor);
    change_all(graph, &(struct change){.what = "qn_scale_decay", .decay = &decay}, patterns);
}
