/* SPDX-License-Identifier: MIT
 *
 * Residual networks of basic blocks (He et al., "Deep residual learning for image recognition",
 * CVPR 2016), with torchvision's names.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <stdio.h>

enum { NAME_BYTES = 48, STAGES = 4, WIDTH = 64 };

struct settings {
    double depth, group, stem;
};

static const struct qn_model_key keys[] = {
    {"depth", offsetof(struct settings, depth), 18, 34, true},
    {"group", offsetof(struct settings, group), 1, 65536, true},
    {"stem", offsetof(struct settings, stem), 3, 7, true},
    {0},
};

static const struct {
    int depth;
    int blocks[STAGES];
} depths[] = {{18, {2, 2, 2, 2}}, {34, {3, 4, 6, 3}}};

/* One block: where it stands ("layer2.0") and what it does. */
struct block {
    const char *name;
    int64_t channels;
    int stride, group;
};

/* Convolution `conv` and batch norm `norm` of a block. */
static qn_tensor part(qn_graph *graph, qn_tensor x, const struct block *block, const char *conv,
                      const char *norm, const struct qn_layer_conv *how)
{
    char names[2][NAME_BYTES];
    snprintf(names[0], NAME_BYTES, "%.24s.%.16s", block->name, conv);
    snprintf(names[1], NAME_BYTES, "%.24s.%.16s", block->name, norm);
    return qn_layer_conv_norm(graph, x, names[0], names[1], how);
}

/* Where size or channels change, the shortcut is a convolution of 1 x 1. */
static qn_tensor basic_block(qn_graph *graph, qn_tensor x, const struct block *block)
{
    const struct qn_layer_conv first = {block->channels, 3, block->stride, block->group};
    const struct qn_layer_conv second = {block->channels, 3, 1, block->group};
    const struct qn_layer_conv fit = {block->channels, 1, block->stride, block->group};
    qn_tensor shortcut = x;
    qn_tensor y = qn_relu(graph, part(graph, x, block, "conv1", "bn1", &first));
    y = part(graph, y, block, "conv2", "bn2", &second);
    if (block->stride != 1 || qn_shape_of(graph, x).dim[1] != block->channels)
        shortcut = part(graph, x, block, "downsample.0", "downsample.1", &fit);
    return qn_relu(graph, qn_add(graph, y, shortcut));
}

static qn_tensor stage(qn_graph *graph, qn_tensor x, int number, int blocks, int group)
{
    for (int i = 0; i < blocks; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "layer%d.%d", number + 1, i);
        const struct block block = {name, (int64_t)WIDTH << number, number && !i ? 2 : 1, group};
        x = basic_block(graph, x, &block);
    }
    return x;
}

static const int *blocks_of(int depth)
{
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        if (depths[i].depth == depth)
            return depths[i].blocks;
    return NULL;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, char error[200])
{
    struct settings s = {.depth = 18, .group = 16, .stem = 7};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    const int *blocks = blocks_of((int)s.depth), group = (int)s.group;
    if (!blocks)
        return "model.depth: is 18 or 34";
    if (s.stem != 3 && s.stem != 7)
        return "model.stem: is 3 or 7";
    const struct qn_layer_conv stem = {WIDTH, (int)s.stem, s.stem == 7 ? 2 : 1, group};
    qn_tensor x = qn_layer_images(graph, data);
    x = qn_relu(graph, qn_layer_conv_norm(graph, x, "conv1", "bn1", &stem));
    if (s.stem == 7)
        x = qn_max_pool2d(graph, x,
                          &(qn_pool2d_params){.size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (int i = 0; i < STAGES; i++)
        x = stage(graph, x, i, blocks[i], group);
    x = qn_layer_linear(graph, qn_global_avg_pool2d(graph, x), "fc", data->classes);
    qn_layer_classify(graph, x, 0);
    return NULL;
}

const struct qn_model qn_model_resnet = {
    "resnet",
    "depth            18 or 34 (18)\n"
    "group            samples that batch norm normalises together (16)\n"
    "stem             the first convolution: 7 x 7 and pooling, or 3 x 3 for small images (7)\n",
    build,
};
