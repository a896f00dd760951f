/* SPDX-License-Identifier: MIT
 *
 * Convolution as an implicit matrix product: patches are packed inside the kernels, so each group
 * is one launch for the whole micro-batch. CPUs do 3 x 3 taps of stride 1 in Winograd's way. The
 * gradient of the weights is a long sum with few results: where those would not keep the device
 * busy the pixels are split into parts, each with its own copy of the gradient in scratch, and a
 * second launch adds the copies in order.
 */
#include "op/conv2d.h"
#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/matmul.h"

#include <limits.h>
#include <quern/ops.h>

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, BIAS_GRADIENT };

/* Attributes are at most this, so that the geometry stays inside 32 bits. */
enum { LARGEST_ATTRIBUTE = 1 << 14, LARGEST_IMAGE = 1 << 29 };

/* GPU shape: work-groups of SIDE x SIDE, up to 4 x 4 elements of the result each. */
enum { SIDE = 16, GPU_TILE = 4 };

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

/* A block of the weights' gradient, likewise, for which so many pixels are packed at a time. */
struct weight_block {
    int channels, terms;
};
static const struct weight_block weight_blocks[] = {{128, 144}, {32, 48}};
enum { WEIGHT_BLOCKS = sizeof weight_blocks / sizeof *weight_blocks, BLOCK_PIXELS = 64 };
enum { CPU_LOCAL_BYTES = 32 << 10, MOST_TILES_EACH = 8 };

/* Work-groups for each compute unit that a split aims at, and pixels that a part has at least. */
enum { GROUPS_PER_UNIT = 4, PART_PIXELS = 256 };
/* Most bytes of scratch for parts. */
static const int64_t cpu_scratch = INT64_C(1) << 20, gpu_scratch = INT64_C(4) << 20;

/* Register tiles of the CPU shape for each width of vectors: rows x vectors of the image kernel,
 * and of the weight kernel by how many vectors the output channels fill (one, more). Sums and a
 * line of operands fit the registers that such devices have. */
struct register_tile {
    int rows, vectors;
};
struct cpu_tile {
    int vector;
    struct register_tile image, narrow, wide, winograd;
};
static const struct cpu_tile cpu_tiles[] = {
    {4, {4, 3}, {12, 1}, {6, 2}, {4, 3}},
    {8, {4, 3}, {12, 1}, {6, 2}, {4, 3}},
    {16, {8, 3}, {12, 1}, {12, 2}, {8, 3}},
};

/* Winograd's way, for what has 3 x 3 taps: most channels to make x tiles of 2 x 2 pixels, of which
 * so many channels of the source are transformed at a time. Transformed weights lie in scratch, for
 * as many channels at a time as fit, by multiples of those of every block. Below the least number
 * of channels on either side the transforms cost more than they save. */
struct winograd_block {
    int channels, tiles, depth;
};
static const struct winograd_block winograd_blocks[] = {{64, 48, 64}, {8, 24, 8}};
enum { WINOGRAD_BLOCKS = sizeof winograd_blocks / sizeof *winograd_blocks };
enum { WINOGRAD_POINTS = 16, WINOGRAD_EACH = 16, WINOGRAD_ROWS = 64, LEAST_WINOGRAD = 16 };
static const int64_t winograd_scratch = INT64_C(4) << 20;

/* One product: what a kernel reads patches of, and the plane that it makes or, for the gradient of
 * the weights, walks along. Channels are those of one of the `groups`. */
struct product {
    const struct qn_conv2d_attr *attr;
    int64_t batch, groups, depth, channels;
    int64_t source[2], plane[2], kernel[2];
};

static int64_t result_size(const struct qn_conv2d_attr *attr, int axis, int64_t size, int64_t taps)
{
    int64_t span = size + 2 * (int64_t)attr->padding[axis] - attr->dilation[axis] * (taps - 1) - 1;
    return span < 0 ? 0 : span / attr->stride[axis] + 1;
}

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
        dim[2 + i] = result_size(attr, i, x->dim[2 + i], w->dim[2 + i]);
        if (dim[2 + i] < 1)
            return qn_shape_error(call, "the kernel (%lld, %lld) is larger than the padded image",
                                  (long long)w->dim[2], (long long)w->dim[3]);
    }
    qn_shape_set(&call->out[0], call->storage, 4, dim);
    return QN_OK;
}

static struct product forward_product(const struct qn_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    struct product p = {.attr = attr,
                        .batch = x[0],
                        .groups = attr->groups,
                        .depth = w[1],
                        .channels = w[0] / attr->groups};
    for (int i = 0; i < 2; i++) {
        p.source[i] = x[2 + i];
        p.kernel[i] = w[2 + i];
        p.plane[i] = result_size(attr, i, p.source[i], p.kernel[i]);
    }
    return p;
}

static struct product gradient_product(const struct qn_call *call)
{
    const struct product f = forward_product(call);
    struct product p = f;
    p.depth = f.channels;
    p.channels = f.depth;
    for (int i = 0; i < 2; i++) {
        p.source[i] = f.plane[i];
        p.plane[i] = f.source[i];
    }
    return p;
}

static int64_t terms_of(const struct product *p)
{
    return p->depth * p->kernel[0] * p->kernel[1];
}

static int64_t pixels_of(const struct product *p)
{
    return p->batch * p->plane[0] * p->plane[1];
}

/* --- the split of the weights' gradient --- */

/* Which tile a work-group makes, and the parts of the pixels. Part of the numeric identity: from
 * shapes and facts alone. */
struct split {
    int64_t term_tiles, channel_tiles, parts, part_pixels;
};

static int64_t gpu_tile(int64_t size)
{
    return size > SIDE ? GPU_TILE : 1;
}

static int64_t weight_local_bytes(const struct weight_block *block, int64_t vector)
{
    const int64_t rows = block->channels + block->terms + vector;
    const int64_t floats = rows * BLOCK_PIXELS + block->channels * block->terms + 2 * vector;
    return floats * (int64_t)sizeof(float);
}

static const struct weight_block *weight_block_of(const struct qn_facts *facts)
{
    const struct weight_block *block = weight_blocks;
    while (block < weight_blocks + WEIGHT_BLOCKS - 1 &&
           weight_local_bytes(block, facts->vector_width) > facts->local_bytes)
        block++;
    return block;
}

static struct split split_of(const struct qn_call *call, bool cpu)
{
    const struct product p = forward_product(call);
    const int64_t terms = terms_of(&p), pixels = pixels_of(&p);
    const int64_t tile_terms = cpu ? weight_block_of(call->facts)->terms : SIDE * gpu_tile(terms);
    const int64_t tile_channels =
        cpu ? weight_block_of(call->facts)->channels : SIDE * gpu_tile(p.channels);
    const int64_t copy = qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
    struct split s = {qn_div_up(terms, tile_terms), qn_div_up(p.channels, tile_channels), 1,
                      pixels};
    int64_t wanted = qn_div_up((int64_t)GROUPS_PER_UNIT * call->facts->compute_units,
                               s.term_tiles * s.channel_tiles * p.groups);
    int64_t most = (cpu ? cpu_scratch : gpu_scratch) / copy;
    most = most < pixels / PART_PIXELS ? most : pixels / PART_PIXELS;
    wanted = wanted < most ? wanted : most;
    if (wanted < 2)
        return s;
    s.part_pixels = qn_round_up(qn_div_up(pixels, wanted), BLOCK_PIXELS);
    s.parts = qn_div_up(pixels, s.part_pixels);
    return s;
}

/* --- costs --- */

static void cost_of(const struct qn_call *call, int group, struct qn_cost *cost)
{
    const struct product p = forward_product(call);
    cost->flops =
        2.0 * (double)pixels_of(&p) * (double)(p.groups * p.channels) * (double)terms_of(&p);
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = 1;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, FORWARD, cost);
}

static void input_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, INPUT_GRADIENT, cost);
}

/* Channels that Winograd's way makes in one launch. */
static int64_t winograd_rows(const struct product *p)
{
    const int64_t most = winograd_scratch / (int64_t)sizeof(float) / WINOGRAD_POINTS / p->depth;
    const int64_t rows =
        most < WINOGRAD_ROWS ? WINOGRAD_ROWS : most / WINOGRAD_ROWS * WINOGRAD_ROWS;
    return p->channels < rows ? p->channels : rows;
}

static void winograd_cost(const struct qn_call *call, bool gradient, struct qn_cost *cost)
{
    const struct product p = gradient ? gradient_product(call) : forward_product(call);
    const int64_t rows = winograd_rows(&p);
    cost_of(call, gradient ? INPUT_GRADIENT : FORWARD, cost);
    cost->launches = 2 * (int)qn_div_up(p.channels, rows);
    cost->scratch = qn_round_up(rows, call->facts->vector_width) * WINOGRAD_POINTS * p.depth *
                    (int64_t)sizeof(float);
    cost->bytes += 2.0 * (double)cost->scratch * (double)p.channels / (double)rows;
}

static void forward_cost_winograd(const struct qn_call *call, struct qn_cost *cost)
{
    winograd_cost(call, false, cost);
}

static void input_cost_winograd(const struct qn_call *call, struct qn_cost *cost)
{
    winograd_cost(call, true, cost);
}

static void weight_cost(const struct qn_call *call, bool cpu, struct qn_cost *cost)
{
    const struct split s = split_of(call, cpu);
    cost_of(call, WEIGHT_GRADIENT, cost);
    if (s.parts == 1)
        return;
    cost->launches = 2;
    cost->scratch = s.parts * qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
    cost->bytes += 2 * (double)cost->scratch;
}

static void weight_cost_cpu(const struct qn_call *call, struct qn_cost *cost)
{
    weight_cost(call, true, cost);
}

static void weight_cost_gpu(const struct qn_call *call, struct qn_cost *cost)
{
    weight_cost(call, false, cost);
}

static void bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct product p = forward_product(call);
    cost->flops = (double)pixels_of(&p) * (double)(p.groups * p.channels);
    cost->bytes = qn_group_bytes(call, BIAS_GRADIENT);
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

static const struct cpu_tile *cpu_tile_of(const struct qn_facts *facts)
{
    const struct cpu_tile *tile = cpu_tiles;
    while (tile->vector < facts->vector_width && tile->vector < 16)
        tile++;
    return tile;
}

static int64_t winograd_local_bytes(const struct winograd_block *block, int64_t vector)
{
    const int64_t row = (int64_t)block->tiles * (block->channels + block->depth + 1) + 2 * vector;
    return WINOGRAD_POINTS * row * (int64_t)sizeof(float);
}

/* NULL if there is none for the device. */
static const struct winograd_block *winograd_block_of(const struct qn_facts *facts)
{
    const struct cpu_tile *tile = cpu_tile_of(facts);
    for (int i = 0; i < WINOGRAD_BLOCKS; i++)
        if (winograd_local_bytes(&winograd_blocks[i], tile->vector) <= facts->local_bytes &&
            winograd_blocks[i].tiles % (tile->vector * tile->winograd.vectors) == 0)
            return &winograd_blocks[i];
    return NULL;
}

static bool fits_winograd(const struct qn_call *call, const char **why)
{
    const struct product p = forward_product(call);
    if (!qn_fits_cpu(call, why))
        return false;
    *why = "made for 3 x 3 taps, stride and dilation 1, one group";
    for (int i = 0; i < 2; i++)
        if (p.kernel[i] != 3 || p.attr->stride[i] != 1 || p.attr->dilation[i] != 1)
            return false;
    if (p.groups > 1)
        return false;
    *why = "too few channels";
    if (p.depth < LEAST_WINOGRAD || p.channels < LEAST_WINOGRAD)
        return false;
    *why = "the device has too little local memory";
    return winograd_block_of(call->facts) != NULL;
}

static bool fits_gpu(const struct qn_call *call, const char **why)
{
    *why = "the device's work-groups are too small";
    return call->facts->max_work_group >= SIDE * SIDE;
}

/* --- launches --- */

static void add_argument(struct qn_launch *launch, struct qn_arg arg)
{
    int i = 0;
    while (launch->args[i].kind != QN_ARG_END)
        i++;
    launch->args[i] = arg;
}

static void add_geometry(struct qn_launch *launch, const struct product *p)
{
    const struct qn_conv2d_attr *a = p->attr;
    const int64_t values[] = {p->batch,      p->groups,     p->depth,       p->channels,
                              p->source[0],  p->source[1],  p->plane[0],    p->plane[1],
                              p->kernel[0],  p->kernel[1],  a->stride[0],   a->stride[1],
                              a->padding[0], a->padding[1], a->dilation[0], a->dilation[1]};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        add_argument(launch, (struct qn_arg)QN_INT(values[i]));
}

/* The pixels of one phase of the gradient of the image, or all of the result: the most there are.
 */
static int64_t phase_pixels(const struct product *p, bool gradient)
{
    if (!gradient)
        return pixels_of(p);
    return p->batch * qn_div_up(p->plane[0], p->attr->stride[0]) *
           qn_div_up(p->plane[1], p->attr->stride[1]);
}

static int64_t phases_of(const struct product *p, bool gradient)
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
    while (blocks * others < (int64_t)GROUPS_PER_UNIT * facts->compute_units &&
           channels / blocks > LEAST_CHANNELS)
        blocks++;
    const int64_t each = qn_round_up(qn_div_up(channels, blocks), rows);
    return each < most ? each : most / rows * rows;
}

static void shape_image_cpu(struct qn_launch *launch, const struct qn_call *call,
                            const struct product *p, bool gradient)
{
    const struct cpu_tile *tile = cpu_tile_of(call->facts);
    const struct image_tile *image = image_tile_of(call->facts);
    const int64_t pixels = phase_pixels(p, gradient);
    const struct register_tile *registers = &tile->image;
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
    add_argument(launch, (struct qn_arg)QN_INT(each));
    add_argument(launch, (struct qn_arg)QN_INT(channels));
    add_argument(launch, (struct qn_arg)QN_INT(tile_pixels));
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", image->pixels / tile->vector);
    qn_launch_option(launch, "QN_NR", registers->vectors);
    qn_launch_option(launch, "QN_MR", rows);
    qn_launch_option(launch, "QN_BLOCK", image->channels / rows * rows);
    qn_launch_option(launch, "QN_DEPTH", image->terms);
    qn_launch_option(launch, "QN_STEP", step <= 2 ? step : 0);
}

static void shape_image_gpu(struct qn_launch *launch, const struct product *p, bool gradient)
{
    const int64_t rows = gpu_tile(p->channels);
    const int64_t tiles = qn_div_up(phase_pixels(p, gradient), SIDE * GPU_TILE);
    launch->program = "conv2d_image_gpu";
    launch->global[0] = tiles * SIDE;
    launch->global[1] = qn_div_up(p->channels, SIDE * rows) * SIDE;
    launch->global[2] = p->groups * phases_of(p, gradient);
    launch->local[0] = launch->local[1] = SIDE;
    qn_launch_option(launch, "QN_ROWS", rows);
    qn_launch_option(launch, "QN_COLUMNS", GPU_TILE);
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                            bool gradient)
{
    const struct product p = gradient ? gradient_product(call) : forward_product(call);
    const struct qn_operand *source = gradient ? &call->dout[0] : &call->in[0];
    const struct qn_operand *made = gradient ? &call->din[0] : &call->out[0];
    struct qn_launch launch = {.kernel = "conv2d_image",
                               .args = {QN_BUF(source), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                                        QN_BUF(made), QN_INT(!gradient && qn_present(&call->in[2])),
                                        QN_FLOAT(gradient ? call->beta_in[0] : 0)}};
    add_geometry(&launch, &p);
    qn_launch_option(&launch, "QN_GRADIENT", gradient);
    qn_launch_type(&launch, "S", source);
    qn_launch_type(&launch, "W", &call->in[1]);
    qn_launch_type(&launch, "B", &call->in[2]);
    qn_launch_type(&launch, "D", made);
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

/* Both kernels get all options, so that they are one program. */
static void add_winograd_options(struct qn_launch *launch, const struct qn_call *call,
                                 bool gradient)
{
    const struct cpu_tile *tile = cpu_tile_of(call->facts);
    const struct winograd_block *block = winograd_block_of(call->facts);
    qn_launch_type(launch, "S", gradient ? &call->dout[0] : &call->in[0]);
    qn_launch_type(launch, "W", &call->in[1]);
    qn_launch_type(launch, "B", &call->in[2]);
    qn_launch_type(launch, "D", gradient ? &call->din[0] : &call->out[0]);
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", block->tiles / tile->vector);
    qn_launch_option(launch, "QN_NR", tile->winograd.vectors);
    qn_launch_option(launch, "QN_MR", tile->winograd.rows);
    qn_launch_option(launch, "QN_BLOCK", block->channels);
    qn_launch_option(launch, "QN_DEPTH", block->depth);
    qn_launch_option(launch, "QN_STEP", 2);
    qn_launch_option(launch, "QN_CHANNELS", WINOGRAD_EACH);
}

/* Transforms the weights of `rows` channels from `row0` on. */
static qn_status emit_winograd_weights(struct qn_emit *emit, const struct qn_call *call,
                                       const struct product *p, bool gradient, int64_t row0,
                                       int64_t rows)
{
    const int64_t vector = cpu_tile_of(call->facts)->vector, taps = 9;
    struct qn_launch launch = {
        .program = "conv2d_winograd_cpu",
        .kernel = "conv2d_winograd_weights",
        .args = {QN_BUF(&call->in[1]), QN_BUF(&call->scratch), QN_INT(row0), QN_INT(rows),
                 QN_INT(p->depth), QN_LONG(gradient ? taps : taps * p->depth),
                 QN_LONG(gradient ? taps * p->channels : taps), QN_INT(gradient)},
        .global = {qn_div_up(rows, vector), qn_div_up(p->depth, WINOGRAD_EACH)}};
    add_winograd_options(&launch, call, gradient);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_winograd_rows(struct qn_emit *emit, const struct qn_call *call,
                                    const struct product *p, bool gradient, int64_t row0,
                                    int64_t rows)
{
    const struct qn_conv2d_attr *a = p->attr;
    const struct winograd_block *block = winograd_block_of(call->facts);
    const int64_t tiles = p->batch * qn_div_up(p->plane[0], 2) * qn_div_up(p->plane[1], 2);
    struct qn_launch launch = {
        .program = "conv2d_winograd_cpu",
        .kernel = "conv2d_winograd",
        .args = {QN_BUF(gradient ? &call->dout[0] : &call->in[0]), QN_BUF(&call->scratch),
                 QN_BUF(&call->in[2]), QN_BUF(gradient ? &call->din[0] : &call->out[0]),
                 QN_INT(!gradient && qn_present(&call->in[2])),
                 QN_FLOAT(gradient ? call->beta_in[0] : 0), QN_INT(p->batch), QN_INT(p->depth),
                 QN_INT(p->channels), QN_INT(p->source[0]), QN_INT(p->source[1]),
                 QN_INT(p->plane[0]), QN_INT(p->plane[1]),
                 QN_INT(gradient ? 2 - a->padding[0] : a->padding[0]),
                 QN_INT(gradient ? 2 - a->padding[1] : a->padding[1]), QN_INT(row0), QN_INT(rows)},
        .global = {qn_div_up(tiles, block->tiles), qn_div_up(rows, block->channels)}};
    add_winograd_options(&launch, call, gradient);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_winograd(struct qn_emit *emit, const struct qn_call *call, bool gradient)
{
    const struct product p = gradient ? gradient_product(call) : forward_product(call);
    const int64_t most = winograd_rows(&p);
    for (int64_t row0 = 0; row0 < p.channels; row0 += most) {
        const int64_t rows = p.channels - row0 < most ? p.channels - row0 : most;
        QN_TRY(emit_winograd_weights(emit, call, &p, gradient, row0, rows));
        QN_TRY(emit_winograd_rows(emit, call, &p, gradient, row0, rows));
    }
    return QN_OK;
}

static qn_status forward_winograd(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_winograd(emit, call, false);
}

static qn_status input_winograd(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_winograd(emit, call, true);
}

static void shape_weight_cpu(struct qn_launch *launch, const struct qn_call *call,
                             const struct product *p, const struct split *s)
{
    const struct cpu_tile *tile = cpu_tile_of(call->facts);
    const struct weight_block *block = weight_block_of(call->facts);
    const bool narrow = p->channels <= tile->vector;
    const int64_t step = p->attr->stride[1];
    int64_t vectors = narrow ? 1 : tile->wide.vectors;
    while (vectors * tile->vector < p->channels && vectors * tile->vector < block->channels)
        vectors *= 2;
    launch->program = "conv2d_weight_cpu";
    launch->global[0] = s->term_tiles;
    launch->global[1] = s->channel_tiles * p->groups;
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", BLOCK_PIXELS / tile->vector);
    qn_launch_option(launch, "QN_WIDE", vectors);
    qn_launch_option(launch, "QN_MR", narrow ? tile->narrow.rows : tile->wide.rows);
    qn_launch_option(launch, "QN_NR", narrow ? tile->narrow.vectors : tile->wide.vectors);
    qn_launch_option(launch, "QN_DEPTH", block->terms);
    qn_launch_option(launch, "QN_STEP", step <= 2 ? step : 0);
}

static void shape_weight_gpu(struct qn_launch *launch, const struct product *p,
                             const struct split *s)
{
    launch->program = "conv2d_weight_gpu";
    launch->global[0] = s->term_tiles * SIDE;
    launch->global[1] = s->channel_tiles * p->groups * SIDE;
    launch->local[0] = launch->local[1] = SIDE;
    qn_launch_option(launch, "QN_ROWS", gpu_tile(p->channels));
    qn_launch_option(launch, "QN_COLUMNS", gpu_tile(terms_of(p)));
}

static qn_status emit_weight(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct product p = forward_product(call);
    const struct split s = split_of(call, cpu);
    const struct qn_operand *made = s.parts > 1 ? &call->scratch : &call->din[1];
    struct qn_launch launch = {.kernel = "conv2d_weight",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->dout[0]), QN_BUF(made),
                                        QN_FLOAT(s.parts > 1 ? 0 : call->beta_in[1])},
                               .global = {0, 0, s.parts}};
    add_geometry(&launch, &p);
    add_argument(&launch, (struct qn_arg)QN_LONG(s.part_pixels));
    qn_launch_type(&launch, "S", &call->in[0]);
    qn_launch_type(&launch, "D", &call->dout[0]);
    qn_launch_type(&launch, "W", made);
    if (cpu)
        shape_weight_cpu(&launch, call, &p, &s);
    else
        shape_weight_gpu(&launch, &p, &s);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_add_parts(emit, call,
                        &(struct qn_parts){s.parts, qn_shape_count(&call->in[1].shape),
                                           &call->din[1], call->beta_in[1]});
}

static qn_status weight_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_weight(emit, call, true);
}

static qn_status weight_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_weight(emit, call, false);
}

static qn_status emit_bias(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct product p = forward_product(call);
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

const struct qn_op qn_op_conv2d = {
    .name = "conv2d",
    .attr_size = sizeof(struct qn_conv2d_attr),
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .shape = shape,
    .groups = {
        [FORWARD] = {.name = "forward",
                     .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                     .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
                     .write = {{QN_OUT(0)}},
                     .variant = {{"winograd", fits_winograd, forward_cost_winograd,
                                  forward_winograd},
                                 {"cpu", fits_cpu, forward_cost, forward_cpu, image_settings},
                                 {"gpu", fits_gpu, forward_cost, forward_gpu}}},
        [INPUT_GRADIENT] = {.name = "input gradient",
                            .phase = QN_PHASE_BACKWARD,
                            .read = {{QN_DOUT(0)}, {QN_IN(1)}},
                            .write = {{QN_DIN(0)}},
                            .variant = {{"winograd", fits_winograd, input_cost_winograd,
                                         input_winograd},
                                        {"cpu", fits_cpu, input_cost, input_cpu, image_settings},
                                        {"gpu", fits_gpu, input_cost, input_gpu}}},
        [WEIGHT_GRADIENT] = {.name = "weight gradient",
                             .phase = QN_PHASE_BACKWARD,
                             .read = {{QN_DOUT(0)}, {QN_IN(0)}},
                             .write = {{QN_DIN(1)}},
                             .variant = {{"cpu", fits_cpu, weight_cost_cpu, weight_cpu},
                                         {"gpu", fits_gpu, weight_cost_gpu, weight_gpu}}},
        [BIAS_GRADIENT] = {.name = "bias gradient",
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
