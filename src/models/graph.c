/* SPDX-License-Identifier: MIT
 *
 * A network from a graph file (quern/graph_file.h): it makes inputs, loss and outputs itself.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <quern/graph_file.h>
#include <stdio.h>
#include <string.h>

struct settings {
    const char *path, *text;
};

static const struct qn_model_key keys[] = {
    {"path", offsetof(struct settings, path), .text = true},
    {"text", offsetof(struct settings, text), .text = true},
    {0},
};

static qn_status read_whole(qn_graph *graph, const struct settings *s)
{
    return s->text ? qn_graph_read(graph, s->text, s->path) : qn_graph_load(graph, s->path);
}

/* An output and all parameters: read once for what the output follows from. */
static void read_for_output(qn_graph *graph, const struct settings *s, const char *output)
{
    const qn_graph_write_params params = {.output = output};
    qn_graph *whole = NULL;
    char *text = NULL;
    if (qn_graph_create(&whole, NULL) != QN_OK)
        return;
    if (read_whole(whole, s) != QN_OK)
        read_whole(graph, s); /* which fails with the same line */
    else if ((text = qn_graph_write(whole, &params)))
        qn_graph_read(graph, text, s->path);
    else
        qn_graph_refuse(graph, "%s", qn_last_error());
    qn_free(text);
    qn_graph_destroy(&whole);
}

static bool find_output(const qn_graph *graph, const char *name, qn_shape *shape)
{
    const char *output;
    qn_tensor tensor;
    for (int i = 0; (output = qn_graph_output(graph, i, &tensor)); i++)
        if (strcmp(output, name) == 0) {
            *shape = qn_shape_of(graph, tensor);
            return true;
        }
    return false;
}

/* The file must have what evaluations look for, and a logit for each class of the data. */
static const char *refuse_outputs(const qn_graph *graph, const qn_model_data *data,
                                  const struct settings *s, char error[200])
{
    const int needed = data->classes ? data->classes : data->tokens;
    const char *file = s->path ? s->path : "graph";
    qn_shape shape;
    if (!data->predict && !find_output(graph, "loss", &shape)) {
        snprintf(error, 200, "%.100s: no output is called loss: output loss = ROWS", file);
        return error;
    }
    if (!find_output(graph, "logits", &shape))
        return NULL;
    const int dim = data->masks ? 1 : shape.rank - 1;
    if (dim < shape.rank && shape.dim[dim] >= needed)
        return NULL;
    snprintf(error, 200, "%.100s: logits: %lld for a sample, but the data has %d %s", file,
             (long long)(dim < shape.rank ? shape.dim[dim] : 1), needed,
             data->classes ? "classes" : "tokens");
    return error;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {0};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    if (!s.path && !s.text)
        return "model graph: model.path: missing: the file of the graph";
    if (lora->rank > 0)
        return "model.lora_rank: a graph file has its adapters itself: quern model prints those "
               "of the models that ship";
    if (data->longest)
        return "model graph: has samples of one length alone";
    if (data->embedding || data->predict)
        read_for_output(graph, &s, data->embedding ? "embedding" : "logits");
    else
        read_whole(graph, &s);
    return qn_graph_status(graph) == QN_OK && !data->embedding
               ? refuse_outputs(graph, data, &s, error)
               : NULL;
}

const struct qn_model qn_model_graph = {
    "graph",
    "path             file of the graph (docs/graph-file.md), whose inputs are columns of the "
    "data\n"
    "text             instead, the text of such a file\n",
    build,
    .any = true,
};
