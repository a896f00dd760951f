/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution as one product: a sum over the pixels.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

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

/* --- tiles --- */

/* How many of them, each a work-group for each part of the pixels. */
struct tiles {
    int64_t terms, channels;
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

/* For one image. */
static struct tiles tiles_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    const int64_t terms = qn_conv2d_terms(p);
    if (!call->cpu) {
        const struct qn_conv2d_grid grid = qn_conv2d_gpu_grid(call, p->channels, terms);
        return (struct tiles){grid.wide, grid.tall};
    }
    const struct weight_block *block = weight_block_of(call->facts);
    return (struct tiles){qn_div_up(terms, block->terms), qn_div_up(p->channels, block->channels)};
}

/* The same for all images: what the one needs that has the fewest tiles. */
static struct qn_conv2d_split split_of(const struct qn_call *call,
                                       const struct qn_conv2d_product *p)
{
    int64_t groups = INT64_MAX;
    for (int i = 0; i < qn_conv2d_images(p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(p, i);
        const struct tiles t = tiles_of(call, &own);
        const int64_t here = t.terms * t.channels * p->groups;
        groups = here < groups ? here : groups;
    }
    return qn_conv2d_split(
        call, &(struct qn_conv2d_sum){.length = qn_conv2d_pixels(p),
                                      .groups = groups,
                                      .least = PART_PIXELS,
                                      .block = BLOCK_PIXELS,
                                      .scratch = call->cpu ? cpu_scratch : gpu_scratch});
}

/* --- costs --- */

void qn_conv2d_weight_cost(const struct qn_call *call, const struct qn_conv2d_product *p, int group,
                           struct qn_cost *cost)
{
    const struct qn_conv2d_split split = split_of(call, p);
    qn_conv2d_split_cost(call, p, group, &split, cost);
}

/* --- launches --- */

static void shape_weight_cpu(struct qn_launch *launch, const struct qn_call *call,
                             const struct qn_conv2d_product *p)
{
    const struct tiles t = tiles_of(call, p);
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(call->facts);
    const struct weight_block *block = weight_block_of(call->facts);
    const bool narrow = p->channels <= tile->vector;
    const int64_t step = p->attr->stride[1];
    int64_t vectors = narrow ? 1 : tile->wide.vectors;
    while (vectors * tile->vector < p->channels && vectors * tile->vector < block->channels)
        vectors *= 2;
    launch->program = "conv2d_weight_cpu";
    launch->global[0] = t.terms;
    launch->global[1] = t.channels * p->groups;
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", BLOCK_PIXELS / tile->vector);
    qn_launch_option(launch, "QN_WIDE", vectors);
    qn_launch_option(launch, "QN_MR", narrow ? tile->narrow.rows : tile->wide.rows);
    qn_launch_option(launch, "QN_NR", narrow ? tile->narrow.vectors : tile->wide.vectors);
    qn_launch_option(launch, "QN_DEPTH", block->terms);
    qn_launch_option(launch, "QN_STEP", step <= 2 ? step : 0);
    qn_launch_option(launch, "QN_INSIDE", qn_conv2d_is_inside(p));
    qn_launch_option(launch, "QN_SHORT", qn_conv2d_is_short(p, tile->vector));
}

static void shape_weight_gpu(struct qn_launch *launch, const struct qn_call *call,
                             const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_grid grid = qn_conv2d_gpu_grid(call, p->channels, qn_conv2d_terms(p));
    launch->program = "conv2d_weight_gpu";
    qn_conv2d_gpu_shape(launch, &grid);
    launch->global[1] *= p->groups;
}

qn_status qn_conv2d_weight(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_split split = split_of(call, p);
    for (int i = 0; i < qn_conv2d_images(p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(p, i);
        struct qn_launch launch = qn_conv2d_split_launch(call, &own, &split);
        if (call->cpu)
            shape_weight_cpu(&launch, call, &own);
        else
            shape_weight_gpu(&launch, call, &own);
        QN_TRY(qn_emit_launch(emit, &launch));
    }
    return qn_conv2d_split_add(emit, call, &split);
}
