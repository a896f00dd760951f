/* SPDX-License-Identifier: MIT
 *
 * Convolution as an implicit matrix product: patches are packed inside the kernels, so each group
 * is one launch for the whole micro-batch. CPUs do 3 x 3 taps of stride 1 in Winograd's way. Groups
 * of one input channel have kernels of their own.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/conv2d_product.h"

#include <limits.h>
#include <quern/ops.h>

/* Attributes are at most this, so that the geometry stays inside 32 bits. */
enum { LARGEST_ATTRIBUTE = 1 << 14, LARGEST_IMAGE = 1 << 29 };

/* CPU shape: most channels and pixels of a tile of the image kernel, of which so many terms are
 * packed at a time. The largest that fits the local memory is taken. */
struct image_tile {
    int channels, pixels, terms; /* pixels: a multiple of the vectors of a register tile */
};
static const struct image_tile image_tiles[] = {{256, 192, 144}, {64, 96, 72}, {32, 96, 32}};
enum { IMAGE_TILES = sizeof image_tiles / sizeof *image_tiles, LEAST_CHANNELS = 64 };
enum { MOST_ROWS = 8 }; /* of its register tiles */
/* The most channels of its tiles, or half of them; changes no bit. */
static const char *const image_settings[] = {"large", "small", NULL};

enum { CPU_LOCAL_BYTES = 32 << 10, MOST_TILES_EACH = 8 };

/* --- shapes --- */

static qn_status check_attributes(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    for (int i = 0; i < 2; i++)
        if (attr->stride[i] < 1 || attr->dilation[i] < 1 || attr->padding[i] < 0 ||
            attr->stride[i] > LARGEST_ATTRIBUTE || attr->dilation[i] > LARGEST_ATTRIBUTE ||
            attr->padding[i] > LARGEST_ATTRIBUTE)
            return qn_shape_error(call, "stride %d, padding %d, dilation %d: out of range",
                                  attr->stride[i], attr->padding[i], attr->dilation[i]);
    if (attr->groups < 1)
        return qn_shape_error(call, "%d groups", attr->groups);
    return QN_OK;
}

static qn_status check_channels(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    if (x[1] % attr->groups || w[0] % attr->groups)
        return qn_shape_error(call, "%d groups do not divide %lld input and %lld output channels",
                              attr->groups, (long long)x[1], (long long)w[0]);
    if (w[1] != x[1] / attr->groups)
        return qn_shape_error(call,
                              "the weight takes %lld channels, but the image has %lld in %d "
                              "groups",
                              (long long)w[1], (long long)x[1], attr->groups);
    if (qn_present(&call->in[2]) && !qn_is_row_of(&call->in[2], w[0]))
        return qn_shape_error(call, "the bias must have %lld elements, one an output channel",
                              (long long)w[0]);
    return QN_OK;
}

/* The kernels count channels, rows, columns and terms in 32 bits, and elements of a tensor in 64.
 */
static qn_status check_sizes(struct qn_shape_call *call)
{
    const int64_t *x = call->in[0].shape.dim;
    const int64_t weights = qn_shape_count(&call->in[1].shape);
    for (int i = 0; i < 4; i++)
        if (x[i] < 1 || x[i] > LARGEST_IMAGE || call->in[1].shape.dim[i] < 1)
            return qn_shape_error(call, "a dimension is out of range");
    if (weights < 0 || weights > INT_MAX)
        return qn_shape_error(call, "the weight is too large");
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const struct qn_shape *x = &call->in[0].shape, *w = &call->in[1].shape;
    if (!qn_is_float(&call->in[0]) || x->rank != 4 || !qn_is_float(&call->in[1]) || w->rank != 4)
        return qn_shape_error(call,
                              "conv2d takes an image (b, c, h, w) and a weight (o, c / groups, "
                              "kh, kw) of float types");
    QN_TRY(check_attributes(call));
    QN_TRY(check_sizes(call));
    QN_TRY(check_channels(call));
    int64_t dim[4] = {x->dim[0], w->dim[0]};
    for (int i = 0; i < 2; i++) {
        dim[2 + i] = qn_conv2d_size(attr, i, x->dim[2 + i], w->dim[2 + i]);
        if (dim[2 + i] < 1)
            return qn_shape_error(call, "the kernel (%lld, %lld) is larger than the padded image",
                                  (long long)w->dim[2], (long long)w->dim[3]);
    }
    qn_shape_set(&call->out[0], call->storage, 4, dim);
    return QN_OK;
}

/* --- costs --- */

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_conv2d_cost(call, QN_CONV2D_FORWARD, cost);
}

static void input_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_conv2d_cost(call, QN_CONV2D_INPUT, cost);
}

static void weight_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_conv2d_cost(call, QN_CONV2D_WEIGHT, cost);
}

static void bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    cost->flops = (double)qn_conv2d_pixels(&p) * (double)(p.groups * p.channels);
    cost->bytes = qn_group_bytes(call, QN_CONV2D_BIAS);
    cost->launches = 1;
}

static int64_t image_local_bytes(const struct image_tile *tile, int64_t vector)
{
    const int64_t floats =
        (int64_t)tile->pixels * (tile->channels + tile->terms) + MOST_ROWS * tile->terms + vector;
    return floats * (int64_t)sizeof(float);
}

static const struct image_tile *image_tile_of(const struct qn_facts *facts)
{
    const struct image_tile *tile = image_tiles;
    while (tile < image_tiles + IMAGE_TILES - 1 &&
           image_local_bytes(tile, facts->vector_width) > facts->local_bytes)
        tile++;
    return tile;
}

static bool fits_cpu(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why))
        return false;
    *why = "the device has too little local memory";
    return call->facts->local_bytes >= CPU_LOCAL_BYTES;
}

static bool fits_gpu(const struct qn_call *call, const char **why)
{
    *why = "the device's work-groups are too small";
    return call->facts->max_work_group >= QN_CONV2D_SIDE * QN_CONV2D_SIDE;
}

/* --- launches --- */

/* The pixels of one phase of the gradient of the image, or all of the result: the most there are.
 */
static int64_t phase_pixels(const struct qn_conv2d_product *p, bool gradient)
{
    if (!gradient)
        return qn_conv2d_pixels(p);
    return p->batch * qn_div_up(p->plane[0], p->attr->stride[0]) *
           qn_div_up(p->plane[1], p->attr->stride[1]);
}

static int64_t phases_of(const struct qn_conv2d_product *p, bool gradient)
{
    int64_t phases = 1;
    for (int i = 0; i < 2 && gradient; i++)
        phases *= p->attr->stride[i] < p->plane[i] ? p->attr->stride[i] : p->plane[i];
    return phases;
}

/* Channels of a tile: the most, or fewer where there would be too few work-groups. A multiple of
 * the rows of a register tile; changes no bit. */
static int64_t image_channels(const struct qn_facts *facts, int64_t channels, int64_t others,
                              int64_t most, int64_t rows)
{
    int64_t blocks = qn_div_up(channels, most);
    while (blocks * others < (int64_t)QN_CONV2D_GROUPS_PER_UNIT * facts->compute_units &&
           channels / blocks > LEAST_CHANNELS)
        blocks++;
    const int64_t each = qn_round_up(qn_div_up(channels, blocks), rows);
    return each < most ? each : most / rows * rows;
}

static void shape_image_cpu(struct qn_launch *launch, const struct qn_call *call,
                            const struct qn_conv2d_product *p, bool gradient)
{
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(call->facts);
    const struct image_tile *image = image_tile_of(call->facts);
    const int64_t pixels = phase_pixels(p, gradient);
    const struct qn_register_tile *registers = &tile->image;
    const int64_t rows = p->channels > 1 ? registers->rows : 1;
    const int64_t tile_pixels = qn_round_up(qn_div_up(pixels, qn_div_up(pixels, image->pixels)),
                                            tile->vector * registers->vectors);
    const int64_t step = gradient ? 1 : p->attr->stride[1];
    const int64_t tiles = qn_div_up(pixels, tile_pixels);
    const int64_t channels = image_channels(call->facts, p->channels, tiles * p->groups,
                                            image->channels >> call->setting, rows);
    const int64_t blocks = qn_div_up(p->channels, channels);
    int64_t each = tiles * blocks * p->groups / (call->facts->compute_units * 16 + 1);
    each = each < 1 ? 1 : each > MOST_TILES_EACH ? MOST_TILES_EACH : each;
    launch->program = "conv2d_image_cpu";
    launch->global[0] = qn_div_up(tiles, each);
    launch->global[1] = blocks;
    launch->global[2] = p->groups;
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(each));
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(channels));
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(tile_pixels));
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", image->pixels / tile->vector);
    qn_launch_option(launch, "QN_NR", registers->vectors);
    qn_launch_option(launch, "QN_MR", rows);
    qn_launch_option(launch, "QN_BLOCK", image->channels / rows * rows);
    qn_launch_option(launch, "QN_DEPTH", image->terms);
    qn_launch_option(launch, "QN_STEP", step <= 2 ? step : 0);
    qn_launch_option(launch, "QN_INSIDE", qn_conv2d_is_inside(p, gradient));
}

static void shape_image_gpu(struct qn_launch *launch, const struct qn_conv2d_product *p,
                            bool gradient)
{
    const int64_t rows = qn_conv2d_gpu_tile(p->channels);
    const int64_t tiles = qn_div_up(phase_pixels(p, gradient), QN_CONV2D_SIDE * QN_CONV2D_GPU_TILE);
    launch->program = "conv2d_image_gpu";
    launch->global[0] = tiles * QN_CONV2D_SIDE;
    launch->global[1] = qn_div_up(p->channels, QN_CONV2D_SIDE * rows) * QN_CONV2D_SIDE;
    launch->global[2] = p->groups * phases_of(p, gradient);
    launch->local[0] = launch->local[1] = QN_CONV2D_SIDE;
    qn_launch_option(launch, "QN_ROWS", rows);
    qn_launch_option(launch, "QN_COLUMNS", QN_CONV2D_GPU_TILE);
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                            bool gradient)
{
    const struct qn_conv2d_product p =
        gradient ? qn_conv2d_gradient(call) : qn_conv2d_forward(call);
    struct qn_launch launch = qn_conv2d_image_launch(call, &p, gradient);
    launch.kernel = "conv2d_image";
    if (cpu)
        shape_image_cpu(&launch, call, &p, gradient);
    else
        shape_image_gpu(&launch, &p, gradient);
    return qn_emit_launch(emit, &launch);
}

static qn_status forward_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_image(emit, call, true, false);
}

static qn_status forward_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_image(emit, call, false, false);
}

static qn_status input_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_image(emit, call, true, true);
}

static qn_status input_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_image(emit, call, false, true);
}

static qn_status emit_bias(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    const int64_t channels = p.groups * p.channels, positions = p.plane[0] * p.plane[1];
    const struct qn_walk walk = qn_walk_rows(call->facts, cpu, positions);
    struct qn_launch launch = {.program = "conv2d",
                               .kernel = "conv2d_bias",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->din[2]),
                                        QN_FLOAT(call->beta_in[2]), QN_INT(p.batch),
                                        QN_INT(channels), QN_LONG(positions), QN_INT(walk.lanes)},
                               .global = {channels * walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_type(&launch, "D", &call->dout[0]);
    qn_launch_type(&launch, "G", &call->din[2]);
    return qn_emit_launch(emit, &launch);
}

static qn_status bias_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_bias(emit, call, true);
}

static qn_status bias_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_bias(emit, call, false);
}

const struct qn_op qn_op_conv2d =
    {.name = "conv2d",
     .attr_size = sizeof(struct qn_conv2d_attr),
     .n_in = 3,
     .n_required = 2,
     .n_out = 1,
     .shape = shape,
     .groups = {
         [QN_CONV2D_FORWARD] =
             {.name = "forward",
              .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
              .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
              .write = {{QN_OUT(0)}},
              .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, forward_cost,
                           qn_conv2d_depthwise_forward_cpu},
                          {"winograd", qn_conv2d_winograd_fits, qn_conv2d_winograd_forward_cost,
                           qn_conv2d_winograd_forward},
                          {"cpu", fits_cpu, forward_cost, forward_cpu, image_settings},
                          {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu, forward_cost,
                           qn_conv2d_depthwise_forward_gpu},
                          {"gpu", fits_gpu, forward_cost, forward_gpu}}},
         [QN_CONV2D_INPUT] = {.name = "input gradient",
                              .phase = QN_PHASE_BACKWARD,
                              .read = {{QN_DOUT(0)}, {QN_IN(1)}},
                              .write = {{QN_DIN(0)}},
                              .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, input_cost,
                                           qn_conv2d_depthwise_input_cpu},
                                          {"winograd", qn_conv2d_winograd_fits,
                                           qn_conv2d_winograd_input_cost, qn_conv2d_winograd_input},
                                          {"cpu", fits_cpu, input_cost, input_cpu, image_settings},
                                          {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu,
                                           input_cost, qn_conv2d_depthwise_input_gpu},
                                          {"gpu", fits_gpu, input_cost, input_gpu}}},
         [QN_CONV2D_WEIGHT] =
             {.name = "weight gradient",
              .phase = QN_PHASE_BACKWARD,
              .read = {{QN_DOUT(0)}, {QN_IN(0)}},
              .write = {{QN_DIN(1)}},
              .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, weight_cost,
                           qn_conv2d_depthwise_weight_cpu},
                          {"winograd", qn_conv2d_winograd_weight_fits,
                           qn_conv2d_winograd_weight_cost, qn_conv2d_winograd_weight},
                          {"cpu", fits_cpu, qn_conv2d_weight_cost_cpu, qn_conv2d_weight_cpu},
                          {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu, weight_cost,
                           qn_conv2d_depthwise_weight_gpu},
                          {"gpu", fits_gpu, qn_conv2d_weight_cost_gpu, qn_conv2d_weight_gpu}}},
         [QN_CONV2D_BIAS] = {.name = "bias gradient",
                             .phase = QN_PHASE_BACKWARD,
                             .read = {{QN_DOUT(0)}},
                             .write = {{QN_DIN(2)}},
                             .variant = {{"cpu", qn_fits_cpu, bias_cost, bias_cpu},
                                         {"gpu", qn_fits_row_group, bias_cost, bias_gpu}}},
     }};

qn_tensor qn_conv2d(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                    const qn_conv2d_params *params)
{
    const qn_conv2d_params none = {0};
    params = params ? params : &none;
    struct qn_conv2d_attr attr = {.groups = params->groups ? params->groups : 1};
    for (int i = 0; i < 2; i++) {
        attr.stride[i] = params->stride[i] ? params->stride[i] : 1;
        attr.padding[i] = params->padding[i];
        attr.dilation[i] = params->dilation[i] ? params->dilation[i] : 1;
    }
    return qn_op_apply(graph, &qn_op_conv2d, (const qn_tensor[]){x, weight, bias}, &attr);
}
