/* SPDX-License-Identifier: MIT
 *
 * A multi-layer perceptron: linear layers with ReLU between them, of images or of rows of
 * numbers.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

struct settings {
    double hidden1, hidden2, dropout, label_smoothing;
    double loss; /* of targets; below 0: not named */
};

enum { LOSS_SQUARED, LOSS_ABSOLUTE };
static const char *const losses[] = {"squared_error", "absolute_error", NULL};

static const struct qn_model_key keys[] = {
    {"hidden1", offsetof(struct settings, hidden1), 1, 65536, true},
    {"hidden2", offsetof(struct settings, hidden2), 0, 65536, true},
    {"dropout", offsetof(struct settings, dropout), 0, 0.95, false},
    {"label_smoothing", offsetof(struct settings, label_smoothing), 0, 0.99, false},
    {"loss", offsetof(struct settings, loss), .words = losses},
    {0},
};

static qn_tensor hidden(qn_graph *graph, qn_tensor x, const char *name, const struct settings *s,
                        double features, const struct qn_lora *lora)
{
    x = qn_layer_linear_relu(graph, x, name, (int64_t)features, lora);
    return s->dropout > 0 ? qn_dropout(graph, x, s->dropout) : x;
}

static qn_tensor rows(qn_graph *graph, const qn_model_data *data)
{
    if (!data->features)
        return qn_flatten(graph, qn_layer_images(graph, data));
    return qn_input(graph, "features", QN_F32, 2, (int64_t[]){QN_BATCH, data->features});
}

static const char *refuse(const struct settings *s, const qn_model_data *data)
{
    if (s->loss >= 0 && (!data->targets || data->binary))
        return "model.loss: is one of targets that are numbers (data.target)";
    return s->label_smoothing > 0 && data->targets ? "model.label_smoothing: is one of classes"
                                                   : NULL;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.hidden1 = 256, .hidden2 = 128, .loss = -1};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    const char *wrong = refuse(&s, data);
    if (wrong)
        return wrong;
    qn_tensor x = rows(graph, data);
    x = hidden(graph, x, "fc1", &s, s.hidden1, lora);
    if (s.hidden2 > 0)
        x = hidden(graph, x, "fc2", &s, s.hidden2, lora);
    x = qn_layer_linear(graph, x, "fc", data->targets ? data->targets : data->classes, lora);
    if (data->targets)
        qn_layer_tell_targets(graph, x, data, s.loss == LOSS_ABSOLUTE);
    else
        qn_layer_classify(graph, x, data, s.label_smoothing);
    return NULL;
}

const struct qn_model qn_model_mlp = {
    "mlp",
    "hidden1          features of the first hidden layer (256)\n"
    "hidden2          of the second; 0: there is none (128)\n"
    "dropout          after each hidden layer (0)\n"
    "label_smoothing  of the cross entropy (0)\n"
    "loss             of data.target: squared_error or absolute_error (squared_error)\n",
    build,
    .features = true,
    .head = "fc.*",
};
