/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights by Winograd's F(3x3, 2x2) on CPUs. Where its blocks would not keep
 * the device busy the tiles are split into parts, each with its own copy of the gradient in
 * scratch, and a second launch adds the copies in order.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/matmul.h"

/* Channels on either side of a block, and tiles of 2 x 2 pixels that are transformed at a time. */
enum { BLOCK_CHANNELS = 64, BLOCK_TILES = 16, POINTS = 16 };
/* Tiles that a part has at least; most bytes of scratch for parts. */
enum { PART_TILES = 64 };
static const int64_t most_scratch = INT64_C(4) << 20;

/* Part of the numeric identity: from shapes and facts alone. */
struct split {
    int64_t blocks[2], parts, part_tiles;
};

static int64_t copy_bytes(const struct qn_call *call)
{
    return qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
}

static struct split split_of(const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    const int64_t tiles = p.batch * qn_div_up(p.plane[0], 2) * qn_div_up(p.plane[1], 2);
    struct split s = {
        {qn_div_up(p.depth, BLOCK_CHANNELS), qn_div_up(p.channels, BLOCK_CHANNELS)}, 1, tiles};
    int64_t wanted = qn_div_up((int64_t)QN_CONV2D_GROUPS_PER_UNIT * call->facts->compute_units,
                               s.blocks[0] * s.blocks[1]);
    int64_t most = most_scratch / copy_bytes(call);
    most = most < tiles / PART_TILES ? most : tiles / PART_TILES;
    wanted = wanted < most ? wanted : most;
    if (wanted < 2)
        return s;
    s.part_tiles = qn_round_up(qn_div_up(tiles, wanted), BLOCK_TILES);
    s.parts = qn_div_up(tiles, s.part_tiles);
    return s;
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
    if (!qn_conv2d_winograd_is_for(call, why))
        return false;
    *why = "the image and the result are of different types";
    if (call->in[0].dtype != call->out[0].dtype)
        return false;
    *why = "the device has too little local memory";
    return local_bytes(qn_conv2d_tile_of(call->facts)->vector) <= call->facts->local_bytes;
}

void qn_conv2d_winograd_weight_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct split s = split_of(call);
    qn_conv2d_cost(call, QN_CONV2D_WEIGHT, cost);
    if (s.parts == 1)
        return;
    cost->launches = 2;
    cost->scratch = s.parts * copy_bytes(call);
    cost->bytes += 2 * (double)cost->scratch;
}

qn_status qn_conv2d_winograd_weight(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    const struct split s = split_of(call);
    const struct qn_operand *made = s.parts > 1 ? &call->scratch : &call->din[1];
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector;
    struct qn_launch launch =
        qn_conv2d_weight_launch(call, &p, made, s.parts > 1 ? 0 : call->beta_in[1]);
    launch.program = "conv2d_winograd_weight_cpu";
    launch.kernel = "conv2d_weight";
    launch.global[0] = s.blocks[0];
    launch.global[1] = s.blocks[1];
    launch.global[2] = s.parts;
    qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(s.part_tiles));
    qn_launch_option(&launch, "QN_V", vector);
    qn_launch_option(&launch, "QN_NV", BLOCK_TILES / vector);
    qn_launch_option(&launch, "QN_WIDE", BLOCK_CHANNELS / vector);
    qn_launch_option(&launch, "QN_MR", vector == 16 ? 8 : 4);
    qn_launch_option(&launch, "QN_NR", 2);
    qn_launch_option(&launch, "QN_DEPTH", BLOCK_CHANNELS);
    qn_launch_option(&launch, "QN_STEP", 2);
    qn_launch_option(&launch, "QN_INSIDE", 0);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_add_parts(emit, call,
                        &(struct qn_parts){s.parts, qn_shape_count(&call->in[1].shape),
                                           &call->din[1], call->beta_in[1]});
}
