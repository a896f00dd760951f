/* SPDX-License-Identifier: MIT */
#include "form/layers.h"

#include "base/shape.h"

#include <stddef.h>
#include <string.h>

#define MOST_COUNT 0x1p40
#define SIZE(name_, kind_, ...)                                                                    \
    {                                                                                              \
        .name = #name_, .kind = QN_FIELD_##kind_,                                                  \
        .in_params = offsetof(struct qn_form_sizes, name_), .in_node = QN_FIELD_UNKEPT,            \
        __VA_ARGS__                                                                                \
    }
#define COUNT(name_) SIZE(name_, LONG, .least = 1, .most = MOST_COUNT)

static const struct qn_field row_sizes[] = {
    COUNT(features), SIZE(bias, SWITCH, .standard = 0), SIZE(init, INIT, .standard = 0), {0}};
static const struct qn_field image_sizes[] = {COUNT(channels),
                                              SIZE(kernel, PAIR, .least = 1, .most = INT32_MAX),
                                              SIZE(bias, SWITCH, .standard = 0),
                                              SIZE(init, INIT, .standard = 0),
                                              {0}};
static const struct qn_field norm_sizes[] = {{0}};
static const struct qn_field table_sizes[] = {
    COUNT(rows), COUNT(width), SIZE(init, INIT, .standard = 0), {0}};

/* The weight starts as `init` says, and the bias at 0; without it both start as in PyTorch, where
 * `fan_in` numbers go into one of the result. */
static int weight_and_bias(struct qn_form_parameter made[2], const struct qn_form_sizes *sizes,
                           int64_t fan_in, int64_t features)
{
    const bool said = sizes->init.kind != QN_FORM_INIT_NONE;
    qn_shape shape = {.rank = made[0].rank};
    struct qn_form_init init = sizes->init;
    memcpy(shape.dim, made[0].dim, sizeof shape.dim);
    if (said && !init.count)
        init.count = fan_in;
    made[0].what = "weight";
    made[0].init = said ? qn_form_init(&init, &shape) : qn_init_fan_in(fan_in);
    made[1] = (struct qn_form_parameter){
        "bias", 1, {features}, said ? qn_init_constant(0) : qn_init_fan_in(fan_in)};
    return sizes->bias ? 2 : 1;
}

static int64_t dimension(const qn_shape *x, int i)
{
    return i >= 0 && i < x->rank && x->dim[i] > 0 ? x->dim[i] : 1;
}

static int64_t at_least_1(int64_t count)
{
    return count > 0 ? count : 1;
}

static int rows(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                struct qn_form_parameter made[2])
{
    (void)params;
    const int64_t in = dimension(x, x->rank - 1);
    made[0] = (struct qn_form_parameter){.rank = 2, .dim = {sizes->features, in}};
    return weight_and_bias(made, sizes, in, sizes->features);
}

static int images(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                  struct qn_form_parameter made[2])
{
    const int groups = ((const qn_conv2d_params *)params)->groups;
    const int64_t in = dimension(x, 1) / (groups ? groups : 1);
    const int64_t area = (int64_t)sizes->kernel[0] * sizes->kernel[1];
    made[0] = (struct qn_form_parameter){
        .rank = 4, .dim = {sizes->channels, in, sizes->kernel[0], sizes->kernel[1]}};
    return weight_and_bias(made, sizes, at_least_1(qn_mul(in, area)), sizes->channels);
}

static int images_back(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                       struct qn_form_parameter made[2])
{
    const int groups = ((const qn_conv_transpose2d_params *)params)->groups;
    const int64_t out = sizes->channels / (groups ? groups : 1);
    const int64_t area = (int64_t)sizes->kernel[0] * sizes->kernel[1];
    made[0] = (struct qn_form_parameter){
        .rank = 4, .dim = {dimension(x, 1), out, sizes->kernel[0], sizes->kernel[1]}};
    return weight_and_bias(made, sizes, at_least_1(qn_mul(out, area)), sizes->channels);
}

static int scale_and_shift(const qn_shape *shape, int first, int last,
                           struct qn_form_parameter made[2])
{
    made[0] = (struct qn_form_parameter){.what = "weight", .init = qn_init_constant(1)};
    for (int i = first < 0 ? 0 : first; i < last; i++)
        made[0].dim[made[0].rank++] = dimension(shape, i);
    made[1] = made[0];
    made[1].what = "bias";
    made[1].init = qn_init_constant(0);
    return 2;
}

static int channels(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                    struct qn_form_parameter made[2])
{
    (void)params, (void)sizes;
    return scale_and_shift(x, 1, 2, made);
}

static int last(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                struct qn_form_parameter made[2])
{
    (void)sizes;
    const int dims = ((const qn_layer_norm_params *)params)->dims;
    return scale_and_shift(x, x->rank - (dims ? dims : 1), x->rank, made);
}

static int last_scale(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                      struct qn_form_parameter made[2])
{
    (void)params, (void)sizes;
    return scale_and_shift(x, x->rank - 1, x->rank, made) - 1;
}

static int table(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                 struct qn_form_parameter made[2])
{
    (void)x, (void)params;
    qn_shape shape = {2, {sizes->rows, sizes->width}};
    made[0] = (struct qn_form_parameter){
        "weight", 2, {sizes->rows, sizes->width}, {QN_INIT_NORMAL, 0, 1}};
    if (sizes->init.kind != QN_FORM_INIT_NONE)
        made[0].init = qn_form_init(&sizes->init, &shape);
    return 1;
}

const struct qn_form_layer qn_layer_of_rows = {row_sizes, rows};
const struct qn_form_layer qn_layer_of_images = {image_sizes, images};
const struct qn_form_layer qn_layer_of_images_back = {image_sizes, images_back};
const struct qn_form_layer qn_layer_of_channels = {norm_sizes, channels};
const struct qn_form_layer qn_layer_of_last = {norm_sizes, last};
const struct qn_form_layer qn_layer_of_last_scale = {norm_sizes, last_scale};
const struct qn_form_layer qn_layer_of_table = {table_sizes, table};
