/* SPDX-License-Identifier: MIT
 *
 * Residual networks (He et al., "Deep residual learning for image recognition", CVPR 2016), with
 * torchvision's names. The deep ones are of bottleneck blocks, and where such a block halves the
 * image its 3 x 3 convolution does, as in torchvision, rather than the first 1 x 1 of the paper.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <stdio.h>

enum { NAME_BYTES = 48, STAGES = 4, WIDTH = 64, EXPANSION = 4 };

struct settings {
    double depth, group, stem;
};

static const struct qn_model_key keys[] = {
    {"depth", offsetof(struct settings, depth), 18, 152, true},
    {"group", offsetof(struct settings, group), 1, 65536, true},
    {"stem", offsetof(struct settings, stem), 3, 7, true},
    {0},
};

struct layout {
    int depth;
    bool bottleneck;
    int blocks[STAGES];
};

static const struct layout layouts[] = {
    {18, false, {2, 2, 2, 2}},  {34, false, {3, 4, 6, 3}},  {50, true, {3, 4, 6, 3}},
    {101, true, {3, 4, 23, 3}}, {152, true, {3, 8, 36, 3}},
};

/* One block: where it stands ("layer2.0") and what it does. */
struct block {
    const char *name;
    int64_t width; /* channels of the 3 x 3 convolutions */
    int stride, group;
};

/* Convolution `conv` and batch norm `norm` of a block. */
static qn_tensor part(qn_graph *graph, qn_tensor x, const struct block *block, const char *conv,
                      const char *norm, const struct qn_layer_conv *how)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.24s.%.16s", block->name, conv);
    x = qn_layer_conv(graph, x, name, how);
    snprintf(name, sizeof name, "%.24s.%.16s", block->name, norm);
    return qn_layer_batch_norm(graph, x, name, block->group);
}

/* Where size or channels change, the shortcut is a convolution of 1 x 1. */
static qn_tensor shortcut(qn_graph *graph, qn_tensor x, const struct block *block, int64_t channels)
{
    const struct qn_layer_conv fit = {channels, 1, block->stride, .fan_out = true};
    if (block->stride == 1 && qn_shape_of(graph, x).dim[1] == channels)
        return x;
    return part(graph, x, block, "downsample.0", "downsample.1", &fit);
}

static qn_tensor basic_block(qn_graph *graph, qn_tensor x, const struct block *block)
{
    const struct qn_layer_conv first = {block->width, 3, block->stride, .fan_out = true};
    const struct qn_layer_conv second = {block->width, 3, 1, .fan_out = true};
    qn_tensor y = qn_relu(graph, part(graph, x, block, "conv1", "bn1", &first));
    y = part(graph, y, block, "conv2", "bn2", &second);
    return qn_relu(graph, qn_add(graph, y, shortcut(graph, x, block, block->width)));
}

static qn_tensor bottleneck(qn_graph *graph, qn_tensor x, const struct block *block)
{
    const int64_t channels = EXPANSION * block->width;
    const struct qn_layer_conv first = {block->width, 1, 1, .fan_out = true};
    const struct qn_layer_conv second = {block->width, 3, block->stride, .fan_out = true};
    const struct qn_layer_conv third = {channels, 1, 1, .fan_out = true};
    qn_tensor y = qn_relu(graph, part(graph, x, block, "conv1", "bn1", &first));
    y = qn_relu(graph, part(graph, y, block, "conv2", "bn2", &second));
    y = part(graph, y, block, "conv3", "bn3", &third);
    return qn_relu(graph, qn_add(graph, y, shortcut(graph, x, block, channels)));
}

static qn_tensor stage(qn_graph *graph, qn_tensor x, int number, const struct layout *layout,
                       int group)
{
    for (int i = 0; i < layout->blocks[number]; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "layer%d.%d", number + 1, i);
        const struct block block = {name, (int64_t)WIDTH << number, number && !i ? 2 : 1, group};
        x = layout->bottleneck ? bottleneck(graph, x, &block) : basic_block(graph, x, &block);
    }
    return x;
}

static const struct layout *layout_of(int depth)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].depth == depth)
            return &layouts[i];
    return NULL;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.depth = 18, .group = 16, .stem = 7};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    const struct layout *layout = layout_of((int)s.depth);
    if (!layout)
        return "model.depth: is 18, 34, 50, 101 or 152";
    if (s.stem != 3 && s.stem != 7)
        return "model.stem: is 3 or 7";
    const struct qn_layer_conv stem = {WIDTH, (int)s.stem, s.stem == 7 ? 2 : 1, .fan_out = true};
    qn_tensor x = qn_layer_conv(graph, qn_layer_images(graph, data), "conv1", &stem);
    x = qn_relu(graph, qn_layer_batch_norm(graph, x, "bn1", (int)s.group));
    if (s.stem == 7)
        x = qn_max_pool2d(graph, x,
                          &(qn_pool2d_params){.size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (int i = 0; i < STAGES; i++)
        x = stage(graph, x, i, layout, (int)s.group);
    x = qn_layer_linear(graph, qn_global_avg_pool2d(graph, x), "fc", data->classes, lora);
    qn_layer_classify(graph, x, data, 0);
    return NULL;
}

const struct qn_model qn_model_resnet = {
    "resnet",
    "depth            18, 34, 50, 101 or 152 (18)\n"
    "group            samples that batch norm normalises together (16)\n"
    "stem             the first convolution: 7 x 7 and pooling, or 3 x 3 for small images (7)\n",
    build,
    .head = "fc.*",
};
