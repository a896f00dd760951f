/* SPDX-License-Identifier: MIT
 *
 * U-Net (Ronneberger, Fischer, Brox, "U-Net: convolutional networks for biomedical image
 * segmentation", MICCAI 2015) with convolutions that keep the size and with a norm behind them, as
 * it is used today. Images may have any size: where a side that was halved was odd, the transposed
 * convolution makes one row or column more. Large images leave few to a batch: the norm is that of
 * groups of channels then, since an evaluation with running averages would be far from what batch
 * norm of a few samples trained with.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <stdio.h>

enum { NAME_BYTES = 32, MOST_LEVELS = 8 };
enum { ENOUGH = 8 }; /* samples for batch norm; with fewer qn_batch_norm warns */

enum norm { NORM_AUTO, NORM_BATCH, NORM_GROUP };
static const char *const norms[] = {"auto", "batch", "group", NULL};

struct settings {
    double depth, width, group, norm;
};

static const struct qn_model_key keys[] = {
    {"depth", offsetof(struct settings, depth), 2, MOST_LEVELS, true},
    {"width", offsetof(struct settings, width), 1, 1024, true},
    {"group", offsetof(struct settings, group), 1, 65536, true},
    {"norm", offsetof(struct settings, norm), .words = norms},
    {0},
};

/* One level on the way down or up: "down2" or "up2". */
struct level {
    const char *way;
    int number, group; /* samples of batch norm; 0: group norm */
    int64_t channels;
};

static const char *name_of(const struct level *level, const char *layer, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%d.%s", level->way, level->number, layer);
    return name;
}

/* Of x and, where there is one, of the image behind it. */
static qn_tensor layer(qn_graph *graph, qn_tensor x, qn_tensor behind, const struct level *level,
                       int number)
{
    static const char *const names[][3] = {{"conv1", "bn1", "gn1"}, {"conv2", "bn2", "gn2"}};
    char name[NAME_BYTES];
    const struct qn_layer_conv how = {
        .channels = level->channels, .kernel = 3, .stride = 1, .behind = behind};
    x = qn_layer_conv(graph, x, name_of(level, names[number][0], name), &how);
    x = level->group
            ? qn_layer_batch_norm(graph, x, name_of(level, names[number][1], name), level->group)
            : qn_layer_group_norm(graph, x, name_of(level, names[number][2], name));
    return qn_relu(graph, x);
}

static qn_tensor both_layers(qn_graph *graph, qn_tensor x, qn_tensor behind,
                             const struct level *level)
{
    const qn_tensor none = {0};
    x = layer(graph, x, behind, level, 0);
    return layer(graph, x, none, level, 1);
}

/* To the size of `beside`, which was halved to that of x. */
static qn_tensor enlarge(qn_graph *graph, qn_tensor x, qn_tensor beside, const struct level *level)
{
    char name[NAME_BYTES];
    const qn_shape size = qn_shape_of(graph, beside);
    const struct qn_layer_double how = {level->channels,
                                        {(int)(size.dim[2] % 2), (int)(size.dim[3] % 2)}};
    return qn_layer_double(graph, x, name_of(level, "double", name), &how);
}

static qn_tensor pass(qn_graph *graph, qn_tensor x, const struct settings *s)
{
    const int depth = (int)s->depth;
    const bool by_group = s->norm == NORM_GROUP || (s->norm == NORM_AUTO && s->group < ENOUGH);
    const qn_tensor none = {0};
    qn_tensor beside[MOST_LEVELS];
    struct level level = {"down", 0, by_group ? 0 : (int)s->group, (int64_t)s->width};
    for (; level.number < depth; level.number++, level.channels *= 2) {
        if (level.number)
            x = qn_max_pool2d(graph, x, &(qn_pool2d_params){.size = {2, 2}});
        x = beside[level.number] = both_layers(graph, x, none, &level);
    }
    level = (struct level){"up", depth - 2, level.group, level.channels / 4};
    for (; level.number >= 0; level.number--, level.channels /= 2) {
        x = enlarge(graph, x, beside[level.number], &level);
        x = both_layers(graph, beside[level.number], x, &level);
    }
    return x;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    (void)lora; /* it has no linear layer */
    struct settings s = {.depth = 5, .width = 64, .group = 1};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    const int least = 1 << ((int)s.depth - 1);
    if (data->height < least || data->width < least) {
        snprintf(error, 200, "model.depth: images of %d x %d cannot be halved %d times",
                 data->height, data->width, (int)s.depth - 1);
        return error;
    }
    const struct qn_layer_conv head = {
        .channels = data->classes, .kernel = 1, .stride = 1, .bias = true};
    qn_tensor x = pass(graph, qn_layer_images(graph, data), &s);
    qn_layer_segment(graph, qn_layer_conv(graph, x, "head", &head), data);
    return NULL;
}

const struct qn_model qn_model_unet = {
    "unet",
    "depth            levels of the image, each half as large as the one above (5)\n"
    "width            channels of the first level; each has twice those of the one above (64)\n"
    "group            samples that batch norm normalises together (1)\n"
    "norm             batch, group (of channels), or auto: batch where group is 8 or more (auto)\n",
    build,
    .head = "head.*",
    .masks = true,
};
