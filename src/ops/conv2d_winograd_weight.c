/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights by Winograd's F(3x3, 2x2) on CPUs.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* Channels on either side of a block, and tiles of 2 x 2 pixels that are transformed at a time. */
enum { BLOCK_CHANNELS = 64, BLOCK_TILES = 16, POINTS = 16 };
/* Tiles that a part has at least; most bytes of scratch for parts. */
enum { PART_TILES = 64 };
static const int64_t most_scratch = INT64_C(4) << 20;

/* Blocks of the channels of one image, and of the result. */
struct blocks {
    int64_t inputs, outputs;
};

static struct blocks blocks_of(const struct qn_conv2d_product *p)
{
    return (struct blocks){qn_div_up(p->depth, BLOCK_CHANNELS),
                           qn_div_up(p->channels, BLOCK_CHANNELS)};
}

/* The same for all images: what the one needs that has the fewest blocks. */
static struct qn_conv2d_split split_of(const struct qn_call *call,
                                       const struct qn_conv2d_product *p)
{
    int64_t groups = INT64_MAX;
    for (int i = 0; i < qn_conv2d_images(p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(p, i);
        const struct blocks b = blocks_of(&own);
        groups = b.inputs * b.outputs < groups ? b.inputs * b.outputs : groups;
    }
    return qn_conv2d_split(call,
                           &(struct qn_conv2d_sum){.length = p->batch * qn_div_up(p->plane[0], 2) *
                                                             qn_div_up(p->plane[1], 2),
                                                   .groups = groups,
                                                   .least = PART_TILES,
                                                   .block = BLOCK_TILES,
                                                   .scratch = most_scratch});
}

static int64_t local_bytes(int64_t vector)
{
    const int64_t both = BLOCK_TILES * BLOCK_CHANNELS + vector;
    const int64_t floats =
        POINTS * (2 * both + BLOCK_CHANNELS * BLOCK_CHANNELS) + 4 * vector * (BLOCK_TILES + vector);
    return floats * (int64_t)sizeof(float);
}

bool qn_conv2d_winograd_weight_fits(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why) || !qn_conv2d_winograd_is_for(call, why))
        return false;
    *why = "the image and the result are of different types";
    if (call->in[0].dtype != call->out[0].dtype)
        return false;
    *why = "the device has too little local memory";
    return local_bytes(qn_conv2d_tile_of(call->facts)->vector) <= call->facts->local_bytes;
}

void qn_conv2d_winograd_weight_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const struct qn_conv2d_split split = split_of(call, &p);
    qn_conv2d_split_cost(call, &p, &split, cost);
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_conv2d_product *p, const struct qn_conv2d_split *split)
{
    const struct blocks b = blocks_of(p);
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector;
    struct qn_launch launch = qn_conv2d_split_launch(call, p, split);
    launch.program = "conv2d_winograd_weight_cpu";
    launch.global[0] = b.inputs;
    launch.global[1] = b.outputs;
    qn_launch_option(&launch, "QN_V", vector);
    qn_launch_option(&launch, "QN_NV", BLOCK_TILES / vector);
    qn_launch_option(&launch, "QN_WIDE", BLOCK_CHANNELS / vector);
    qn_launch_option(&launch, "QN_MR", vector == 16 ? 8 : 4);
    qn_launch_option(&launch, "QN_NR", 2);
    qn_launch_option(&launch, "QN_DEPTH", BLOCK_CHANNELS);
    qn_launch_option(&launch, "QN_STEP", 2);
    qn_launch_option(&launch, "QN_INSIDE", 0);
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
