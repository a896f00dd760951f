/* SPDX-License-Identifier: MIT
 *
 * A small convolutional network in the manner of VGG: pairs of 3 x 3 convolutions with batch norm
 * and ReLU, the image halved between them, then the average over the image and one linear layer.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

struct settings {
    double width, group, dropout, label_smoothing;
};

static const struct qn_model_key keys[] = {
    {"width", offsetof(struct settings, width), 1, 4096, true},
    {"group", offsetof(struct settings, group), 1, 65536, true},
    {"dropout", offsetof(struct settings, dropout), 0, 0.95, false},
    {"label_smoothing", offsetof(struct settings, label_smoothing), 0, 0.99, false},
    {0},
};

static qn_tensor halve(qn_graph *graph, qn_tensor x)
{
    return qn_max_pool2d(graph, x, &(qn_pool2d_params){.size = {2, 2}});
}

static qn_tensor layer(qn_graph *graph, qn_tensor x, const char *name, const char *norm,
                       int64_t channels, int group)
{
    const struct qn_layer_conv conv = {.channels = channels, .kernel = 3, .stride = 1};
    x = qn_layer_conv(graph, x, name, &conv);
    return qn_relu(graph, qn_layer_batch_norm(graph, x, norm, group));
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.width = 32, .group = 16};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    int64_t width = (int64_t)s.width;
    int group = (int)s.group;
    qn_tensor x = qn_layer_images(graph, data);
    x = layer(graph, x, "conv1", "bn1", width, group);
    x = layer(graph, x, "conv2", "bn2", width, group);
    x = halve(graph, x);
    x = layer(graph, x, "conv3", "bn3", 2 * width, group);
    x = layer(graph, x, "conv4", "bn4", 2 * width, group);
    x = halve(graph, x);
    x = layer(graph, x, "conv5", "bn5", 4 * width, group);
    x = qn_global_avg_pool2d(graph, x);
    if (s.dropout > 0)
        x = qn_dropout(graph, x, s.dropout);
    x = qn_layer_linear(graph, x, "fc", data->classes, lora);
    qn_layer_classify(graph, x, data, s.label_smoothing);
    return NULL;
}

const struct qn_model qn_model_cnn = {
    "cnn",
    "width            channels of the first layers, doubled at each halving (32)\n"
    "group            samples that batch norm normalises together (16)\n"
    "dropout          before the last layer (0)\n"
    "label_smoothing  of the cross entropy (0)\n",
    build,
    .head = "fc.*",
};
