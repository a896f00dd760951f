/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights by Winograd's F(3x3, 2x2) on GPUs.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* As in cl_kernels/lib/winograd_gpu.clh: work-items of a work-group, channels on either side of a
 * block, and tiles of 2 x 2 pixels of a strip. */
enum { ITEMS = 256, BLOCK_CHANNELS = 32, DEPTH = 8 };
/* Tiles that a part has at least; most bytes of scratch for parts. */
enum { PART_TILES = 64 };
static const int64_t most_scratch = INT64_C(4) << 20;

/* Blocks of one image's channels and of the result's. */
static int64_t blocks_of(const struct qn_conv2d_product *p)
{
    return qn_div_up(p->depth, BLOCK_CHANNELS) * qn_div_up(p->channels, BLOCK_CHANNELS);
}

/* The same for all images: what the one needs that has the fewest blocks. */
static struct qn_conv2d_split split_of(const struct qn_call *call,
                                       const struct qn_conv2d_product *p)
{
    int64_t groups = INT64_MAX;
    for (int i = 0; i < qn_conv2d_images(p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(p, i);
        groups = blocks_of(&own) < groups ? blocks_of(&own) : groups;
    }
    return qn_conv2d_split(call,
                           &(struct qn_conv2d_sum){.length = p->batch * qn_div_up(p->plane[0], 2) *
                                                             qn_div_up(p->plane[1], 2),
                                                   .groups = groups,
                                                   .least = PART_TILES,
                                                   .block = DEPTH,
                                                   .scratch = most_scratch});
}

void qn_conv2d_winograd_weight_gpu_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const struct qn_conv2d_split split = split_of(call, &p);
    qn_conv2d_split_cost(call, &p, &split, cost);
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_conv2d_product *p, const struct qn_conv2d_split *split)
{
    struct qn_launch launch = qn_conv2d_split_launch(call, p, split);
    launch.program = "conv2d_winograd_weight_gpu";
    launch.global[0] = qn_div_up(p->depth, BLOCK_CHANNELS) * ITEMS;
    launch.global[1] = qn_div_up(p->channels, BLOCK_CHANNELS);
    launch.local[0] = ITEMS;
    launch.local[1] = launch.local[2] = 1;
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_winograd_weight_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    const struct qn_conv2d_split split = split_of(call, &p);
    for (int i = 0; i < qn_conv2d_images(&p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(&p, i);
        QN_TRY(emit_image(emit, call, &own, &split));
    }
    return qn_conv2d_split_add(emit, call, &split);
}
