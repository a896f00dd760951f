/* SPDX-License-Identifier: MIT
 *
 * Very deep networks of 3 x 3 convolutions (Simonyan and Zisserman, "Very deep convolutional
 * networks for large-scale image recognition", ICLR 2015), with torchvision's names.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <stdio.h>

enum { NAME_BYTES = 32, STAGES = 5 };

struct settings {
    double depth, batch_norm, group, pool, hidden, dropout;
};

static const struct qn_model_key keys[] = {
    {"depth", offsetof(struct settings, depth), 11, 19, true},
    {"batch_norm", offsetof(struct settings, batch_norm), 0, 1, true},
    {"group", offsetof(struct settings, group), 1, 65536, true},
    {"pool", offsetof(struct settings, pool), 1, 64, true},
    {"hidden", offsetof(struct settings, hidden), 1, 65536, true},
    {"dropout", offsetof(struct settings, dropout), 0, 0.95, false},
    {0},
};

static const int64_t widths[STAGES] = {64, 128, 256, 512, 512};

struct layout {
    int depth;
    int layers[STAGES];
};

static const struct layout layouts[] = {
    {11, {1, 1, 2, 2, 2}},
    {13, {2, 2, 2, 2, 2}},
    {16, {2, 2, 3, 3, 3}},
    {19, {2, 2, 4, 4, 4}},
};

/* The layers as torchvision counts them: ReLU and pooling have a number, too. */
struct features {
    qn_graph *graph;
    int next;
    int group; /* 0: no batch norm */
};

static const char *number(struct features *f, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "features.%d", f->next++);
    return name;
}

static qn_tensor layer(struct features *f, qn_tensor x, int64_t channels)
{
    char name[NAME_BYTES];
    const struct qn_layer_conv conv = {channels, 3, 1, .bias = true, .fan_out = true};
    x = qn_layer_conv(f->graph, x, number(f, name), &conv);
    if (f->group)
        x = qn_layer_batch_norm(f->graph, x, number(f, name), f->group);
    x = qn_relu(f->graph, x);
    qn_name(f->graph, x, number(f, name));
    return x;
}

static qn_tensor stage(struct features *f, qn_tensor x, int layers, int64_t channels)
{
    char name[NAME_BYTES];
    for (int i = 0; i < layers; i++)
        x = layer(f, x, channels);
    x = qn_max_pool2d(f->graph, x, &(qn_pool2d_params){.size = {2, 2}});
    qn_name(f->graph, x, number(f, name));
    return x;
}

/* torchvision pools adaptively: where the sides divide, windows of one size do that. */
static qn_tensor pool(qn_graph *graph, qn_tensor x, int side)
{
    qn_shape shape = qn_shape_of(graph, x);
    const int height = (int)shape.dim[2] / side, width = (int)shape.dim[3] / side;
    if (height == 1 && width == 1)
        return x;
    return qn_avg_pool2d(graph, x, &(qn_pool2d_params){.size = {height, width}});
}

static qn_tensor classifier(qn_graph *graph, qn_tensor x, const struct settings *s, int classes,
                            const struct qn_lora *lora)
{
    static const char *const hidden[] = {"classifier.0", "classifier.3"};
    struct qn_layer_dense dense = {
        .features = (int64_t)s->hidden, .relu = true, .deviation = 0.01, .lora = lora};
    for (int i = 0; i < 2; i++) {
        x = qn_layer_dense(graph, x, hidden[i], &dense);
        if (s->dropout > 0)
            x = qn_dropout(graph, x, s->dropout);
    }
    dense = (struct qn_layer_dense){.features = classes, .deviation = 0.01, .lora = lora};
    return qn_layer_dense(graph, x, "classifier.6", &dense);
}

static const struct layout *layout_of(int depth)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].depth == depth)
            return &layouts[i];
    return NULL;
}

static bool divides(int side, int size)
{
    return size >= side && size % side == 0;
}

/* Gives NULL, or what is wrong with the images. */
static const char *check_images(const qn_model_data *data, int side, char error[200])
{
    const int height = data->height >> STAGES, width = data->width >> STAGES;
    if (divides(side, height) && divides(side, width))
        return NULL;
    snprintf(error, 200,
             "model.pool: images of %d x %d are %d x %d after five halvings, which cannot be "
             "averaged to %d x %d: pool divides both",
             data->height, data->width, height, width, side, side);
    return error;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.depth = 16, .group = 16, .pool = 7, .hidden = 4096, .dropout = 0.5};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    const struct layout *layout = layout_of((int)s.depth);
    if (!layout)
        return "model.depth: is 11, 13, 16 or 19";
    if (check_images(data, (int)s.pool, error))
        return error;
    struct features f = {graph, 0, s.batch_norm > 0 ? (int)s.group : 0};
    qn_tensor x = qn_layer_images(graph, data);
    for (int i = 0; i < STAGES; i++)
        x = stage(&f, x, layout->layers[i], widths[i]);
    x = qn_flatten(graph, pool(graph, x, (int)s.pool));
    qn_layer_classify(graph, classifier(graph, x, &s, data->classes, lora), data, 0);
    return NULL;
}

const struct qn_model qn_model_vgg = {
    "vgg",
    "depth            11, 13, 16 or 19 (16)\n"
    "batch_norm       1: after every convolution (0)\n"
    "group            samples that batch norm normalises together (16)\n"
    "pool             side of the averages that the classifier gets; divides the sides of the\n"
    "                 images after five halvings (7)\n"
    "hidden           features of its hidden layers (4096)\n"
    "dropout          after each of them (0.5)\n",
    build,
    .head = "classifier.6.*",
};
