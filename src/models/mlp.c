/* SPDX-License-Identifier: MIT
 *
 * A multi-layer perceptron: linear layers with ReLU between them.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

struct settings {
    double hidden1, hidden2, dropout, label_smoothing;
};

static const struct qn_model_key keys[] = {
    {"hidden1", offsetof(struct settings, hidden1), 1, 65536, true},
    {"hidden2", offsetof(struct settings, hidden2), 0, 65536, true},
    {"dropout", offsetof(struct settings, dropout), 0, 0.95, false},
    {"label_smoothing", offsetof(struct settings, label_smoothing), 0, 0.99, false},
    {0},
};

static qn_tensor hidden(qn_graph *graph, qn_tensor x, const char *name, const struct settings *s,
                        double features, const struct qn_lora *lora)
{
    x = qn_layer_linear_relu(graph, x, name, (int64_t)features, lora);
    return s->dropout > 0 ? qn_dropout(graph, x, s->dropout) : x;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.hidden1 = 256, .hidden2 = 128};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    qn_tensor x = qn_flatten(graph, qn_layer_images(graph, data));
    x = hidden(graph, x, "fc1", &s, s.hidden1, lora);
    if (s.hidden2 > 0)
        x = hidden(graph, x, "fc2", &s, s.hidden2, lora);
    qn_layer_classify(graph, qn_layer_linear(graph, x, "fc", data->classes, lora), data,
                      s.label_smoothing);
    return NULL;
}

const struct qn_model qn_model_mlp = {
    "mlp",
    "hidden1          features of the first hidden layer (256)\n"
    "hidden2          of the second; 0: there is none (128)\n"
    "dropout          after each hidden layer (0)\n"
    "label_smoothing  of the cross entropy (0)\n",
    build,
    .head = "fc.*",
};
