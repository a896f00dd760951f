/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution: a long sum with few results. Where those would not
 * keep the device busy the pixels are split into parts, each with its own copy of the gradient in
 * scratch, and a second launch adds the copies in order.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/matmul.h"

/* CPU shape: most channels and terms of a block, for which so many pixels are packed at a time. */
struct weight_block {
    int channels, terms;
};
static const struct weight_block weight_blocks[] = {{256, 288}, {128, 144}, {32, 48}};
enum { WEIGHT_BLOCKS = sizeof weight_blocks / sizeof *weight_blocks, BLOCK_PIXELS = 64 };

/* Pixels that a part has at least. */
enum { PART_PIXELS = 256 };
/* Most bytes of scratch for parts. */
static const int64_t cpu_scratch = INT64_C(1) << 20, gpu_scratch = INT64_C(4) << 20;

/* --- the split of the weights' gradient --- */

/* Which tile a work-group makes, and the parts of the pixels. Part of the numeric identity: from
 * shapes and facts alone. */
struct split {
    int64_t term_tiles, channel_tiles, parts, part_pixels;
};

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
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    const int64_t terms = qn_conv2d_terms(&p), pixels = qn_conv2d_pixels(&p);
    const int64_t tile_terms =
        cpu ? weight_block_of(call->facts)->terms : QN_CONV2D_SIDE * qn_conv2d_gpu_tile(terms);
    const int64_t tile_channels = cpu ? weight_block_of(call->facts)->channels
                                      : QN_CONV2D_SIDE * qn_conv2d_gpu_tile(p.channels);
    const int64_t copy = qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
    struct split s = {qn_div_up(terms, tile_terms), qn_div_up(p.channels, tile_channels), 1,
                      pixels};
    int64_t wanted = qn_div_up((int64_t)QN_CONV2D_GROUPS_PER_UNIT * call->facts->compute_units,
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

static void weight_cost(const struct qn_call *call, bool cpu, struct qn_cost *cost)
{
    const struct split s = split_of(call, cpu);
    qn_conv2d_cost(call, QN_CONV2D_WEIGHT, cost);
    if (s.parts == 1)
        return;
    cost->launches = 2;
    cost->scratch = s.parts * qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
    cost->bytes += 2 * (double)cost->scratch;
}

void qn_conv2d_weight_cost_cpu(const struct qn_call *call, struct qn_cost *cost)
{
    weight_cost(call, true, cost);
}

void qn_conv2d_weight_cost_gpu(const struct qn_call *call, struct qn_cost *cost)
{
    weight_cost(call, false, cost);
}

/* --- launches --- */

static void shape_weight_cpu(struct qn_launch *launch, const struct qn_call *call,
                             const struct qn_conv2d_product *p, const struct split *s)
{
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(call->facts);
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
    qn_launch_option(launch, "QN_INSIDE", qn_conv2d_is_inside(p, false));
}

static void shape_weight_gpu(struct qn_launch *launch, const struct qn_conv2d_product *p,
                             const struct split *s)
{
    launch->program = "conv2d_weight_gpu";
    launch->global[0] = s->term_tiles * QN_CONV2D_SIDE;
    launch->global[1] = s->channel_tiles * p->groups * QN_CONV2D_SIDE;
    launch->local[0] = launch->local[1] = QN_CONV2D_SIDE;
    qn_launch_option(launch, "QN_ROWS", qn_conv2d_gpu_tile(p->channels));
    qn_launch_option(launch, "QN_COLUMNS", qn_conv2d_gpu_tile(qn_conv2d_terms(p)));
}

static qn_status emit_weight(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    const struct split s = split_of(call, cpu);
    const struct qn_operand *made = s.parts > 1 ? &call->scratch : &call->din[1];
    struct qn_launch launch =
        qn_conv2d_weight_launch(call, &p, made, s.parts > 1 ? 0 : call->beta_in[1]);
    launch.kernel = "conv2d_weight";
    launch.global[2] = s.parts;
    qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(s.part_pixels));
    if (cpu)
        shape_weight_cpu(&launch, call, &p, &s);
    else
        shape_weight_gpu(&launch, &p, &s);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_add_parts(emit, call,
                        &(struct qn_parts){s.parts, qn_shape_count(&call->in[1].shape),
                                           &call->din[1], call->beta_in[1]});
}

qn_status qn_conv2d_weight_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_weight(emit, call, true);
}

qn_status qn_conv2d_weight_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_weight(emit, call, false);
}
