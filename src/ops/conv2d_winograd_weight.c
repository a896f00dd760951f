/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights by Winograd's F(3x3, 2x2).
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* Channels on either side of a block, and tiles of 2 x 2 pixels that are transformed at a time; of
 * GPUs as in cl_kernels/lib/winograd_gpu.clh, with so many work-items of a work-group. */
struct block {
    int64_t channels, tiles;
};
static const struct block cpu_blocks[] = {{128, 16}, {64, 16}}, gpu_block = {32, 8};
enum { CPU_BLOCKS = sizeof cpu_blocks / sizeof *cpu_blocks, POINTS = 16, GPU_ITEMS = 256 };
/* Tiles that a part has at least; most bytes of scratch for parts. */
enum { PART_TILES = 64 };
static const int64_t most_scratch = INT64_C(4) << 20;

static int64_t local_bytes(const struct block *block, int64_t vector)
{
    const int64_t both = block->tiles * block->channels + vector;
    const int64_t floats = POINTS * (2 * both + block->channels * block->channels) +
                           4 * vector * (block->tiles + vector);
    return floats * (int64_t)sizeof(float);
}

/* The larger where the device holds it and a half would not hold the channels of either side. */
static const struct block *cpu_block_of(const struct qn_facts *facts,
                                        const struct qn_conv2d_product *p)
{
    const int64_t vector = qn_conv2d_tile_of(facts)->vector;
    const int64_t least = p->inputs < p->channels ? p->inputs : p->channels;
    const struct block *block = cpu_blocks;
    while (block < cpu_blocks + CPU_BLOCKS - 1 &&
           (least <= block->channels / 2 || local_bytes(block, vector) > facts->local_bytes))
        block++;
    return block;
}

static const struct block *block_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    return call->cpu ? cpu_block_of(call->facts, p) : &gpu_block;
}

/* Blocks of the channels of one image, and of the result. */
struct blocks {
    int64_t inputs, outputs;
};

static struct blocks blocks_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    const int64_t channels = block_of(call, p)->channels;
    return (struct blocks){qn_div_up(p->depth, channels), qn_div_up(p->channels, channels)};
}

/* The same for all images: what the one needs that has the fewest blocks. */
static struct qn_conv2d_split split_of(const struct qn_call *call,
                                       const struct qn_conv2d_product *p)
{
    int64_t groups = INT64_MAX;
    for (int i = 0; i < qn_conv2d_images(p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(p, i);
        const struct blocks b = blocks_of(call, &own);
        groups = b.inputs * b.outputs < groups ? b.inputs * b.outputs : groups;
    }
    return qn_conv2d_split(call, &(struct qn_conv2d_sum){.length = qn_conv2d_winograd_tiles(p),
                                                         .groups = groups,
                                                         .least = PART_TILES,
                                                         .block = block_of(call, p)->tiles,
                                                         .scratch = most_scratch});
}

bool qn_conv2d_winograd_weight_fits(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why) || !qn_conv2d_winograd_is_for(call, why))
        return false;
    *why = "the image and the result are of different types";
    if (call->in[0].dtype != call->out[0].dtype)
        return false;
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector;
    *why = "the device has too little local memory";
    return local_bytes(cpu_block_of(call->facts, &p), vector) <= call->facts->local_bytes;
}

void qn_conv2d_winograd_weight_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const struct qn_conv2d_split split = split_of(call, &p);
    qn_conv2d_split_cost(call, &p, QN_CONV2D_WEIGHT, &split, cost);
}

static void shape_cpu(struct qn_launch *launch, const struct qn_call *call,
                      const struct qn_conv2d_product *p)
{
    const struct block *block = cpu_block_of(call->facts, p);
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector;
    launch->program = "conv2d_winograd_weight_cpu";
    qn_launch_option(launch, "QN_V", vector);
    qn_launch_option(launch, "QN_NV", block->tiles / vector);
    qn_launch_option(launch, "QN_WIDE", block->channels / vector);
    qn_launch_option(launch, "QN_MR", vector == 16 ? 8 : 4);
    qn_launch_option(launch, "QN_NR", 2);
    qn_launch_option(launch, "QN_DEPTH", block->channels);
    qn_launch_option(launch, "QN_STEP", 2);
    qn_launch_option(launch, "QN_INSIDE", 0);
    qn_launch_option(
        launch, "QN_NARROW",
        qn_conv2d_winograd_narrow(call->facts, p, block->tiles, local_bytes(block, vector)));
}

static void shape_gpu(struct qn_launch *launch)
{
    launch->program = "conv2d_winograd_weight_gpu";
    launch->global[0] *= GPU_ITEMS;
    launch->local[0] = GPU_ITEMS;
    launch->local[1] = launch->local[2] = 1;
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_conv2d_product *p, const struct qn_conv2d_split *split)
{
    const struct blocks b = blocks_of(call, p);
    struct qn_launch launch = qn_conv2d_split_launch(call, p, split);
    launch.global[0] = b.inputs;
    launch.global[1] = b.outputs;
    if (call->cpu)
        shape_cpu(&launch, call, p);
    else
        shape_gpu(&launch);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_winograd_weight(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const struct qn_conv2d_split split = split_of(call, &p);
    for (int i = 0; i < qn_conv2d_images(&p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(&p, i);
        QN_TRY(emit_image(emit, call, &own, &split));
    }
    return qn_conv2d_split_add(emit, call, &split);
}
