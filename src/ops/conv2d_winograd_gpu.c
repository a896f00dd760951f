/* SPDX-License-Identifier: MIT
 *
 * Winograd's F(2x2, 3x3) on GPUs, for the result and the gradient of the image: as on CPUs, but
 * work-groups of many work-items, which multiply all points of a block at once.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* As in cl_kernels/conv2d_winograd_gpu.cl: work-items of a work-group, its channels and tiles of
 * 2 x 2 pixels, and source channels of a strip. */
enum { ITEMS = 256, ROWS = 32, TILES = 32, DEPTH = ITEMS / TILES, POINTS = 16 };
/* Channels whose weights a work-group transforms. */
enum { WEIGHTS_GROUP = ROWS };
static const int64_t most_scratch = INT64_C(16) << 20;

/* Source channels of the transformed weights: whole strips, from wherever a source begins. */
static int64_t deep_of(const struct qn_conv2d_product *p)
{
    return qn_round_up(p->depth, DEPTH) + (p->front < p->depth ? DEPTH : 0);
}

/* Bytes of the transformed weights of one channel. */
static int64_t row_bytes(const struct qn_conv2d_product *p)
{
    return deep_of(p) * POINTS * (int64_t)sizeof(float);
}

/* Channels that one launch makes: as many as have room in scratch, blocks of ROWS. */
static int64_t rows_of(const struct qn_conv2d_product *p)
{
    const int64_t most = most_scratch / row_bytes(p) / ROWS * ROWS;
    const int64_t rows = most < ROWS ? ROWS : most;
    return p->channels < rows ? p->channels : rows;
}

/* The gradient of the weights counts the rows of all planes in 32 bits. With a wider padding tiles
 * would meet rows of nothing else, for which the nearest row is multiplied by 0: what is not finite
 * there would reach them. */
static bool rows_fit(const struct qn_conv2d_product *p, const char **why)
{
    *why = "made for a padding of at most 2";
    if (p->attr->padding[0] > 2)
        return false;
    *why = "the planes have too many rows";
    return p->batch * p->depth * p->source[0] <= UINT32_MAX &&
           p->batch * p->channels * p->plane[0] <= UINT32_MAX;
}

bool qn_conv2d_winograd_fits_gpu(const struct qn_call *call, const char **why)
{
    const int64_t strips = POINTS * DEPTH * (ROWS + TILES) * (int64_t)sizeof(float);
    *why = "made for GPUs: a work-item a transform";
    if (call->facts->cpu || !qn_conv2d_winograd_is_for(call, why))
        return false;
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    if (!rows_fit(&p, why))
        return false;
    *why = call->facts->max_work_group < ITEMS ? "the device's work-groups are too small"
                                               : "the device has too little local memory";
    return call->facts->max_work_group >= ITEMS && call->facts->local_bytes >= strips;
}

void qn_conv2d_winograd_gpu_cost(const struct qn_call *call, const struct qn_conv2d_product *p,
                                 int group, struct qn_cost *cost)
{
    const int64_t rows = rows_of(p);
    qn_conv2d_cost(call, p, group, cost);
    cost->launches = 2 * (int)qn_div_up(p->channels, rows);
    cost->scratch = qn_round_up(rows, ROWS) * row_bytes(p);
    cost->bytes += 2.0 * (double)cost->scratch * (double)p->channels / (double)rows;
}

/* Both kernels get all options, so that they are one program. */
static void set_types(struct qn_launch *launch, const struct qn_conv2d_product *p)
{
    launch->program = "conv2d_winograd_gpu";
    qn_launch_type(launch, "S", p->s);
    qn_launch_type(launch, "W", p->w);
    qn_launch_type(launch, "B", p->b);
    qn_launch_type(launch, "D", p->d);
}

static qn_status transform_weights(struct qn_emit *emit, const struct qn_call *call,
                                   const struct qn_conv2d_product *p, int64_t row0, int64_t rows)
{
    const int64_t taps = p->kernel[0] * p->kernel[1], row_step = taps * p->inputs;
    struct qn_launch launch = {
        .kernel = "conv2d_winograd_weights",
        .args = {QN_BUF(p->w), QN_BUF(&call->scratch), QN_INT(p->input0 + row0), QN_INT(rows),
                 QN_INT(p->depth), QN_LONG(p->gradient ? taps : row_step),
                 QN_LONG(p->gradient ? row_step : taps), QN_INT(p->gradient)},
        .global = {qn_round_up(rows, ROWS), deep_of(p)},
        .local = {WEIGHTS_GROUP, 1}};
    set_types(&launch, p);
    return qn_emit_launch(emit, &launch);
}

static qn_status make_rows(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_conv2d_product *p, int64_t row0, int64_t rows)
{
    const struct qn_conv2d_attr *a = p->attr;
    const int64_t tiles = qn_conv2d_winograd_tiles(p);
    struct qn_launch launch = {.kernel = "conv2d_winograd",
                               .args = {QN_BUF(p->s),
                                        QN_BUF(p->t),
                                        QN_BUF(&call->scratch),
                                        QN_BUF(p->b),
                                        QN_BUF(p->d),
                                        QN_INT(qn_present(p->b)),
                                        QN_FLOAT(p->beta),
                                        QN_INT(p->batch),
                                        QN_INT(p->depth),
                                        QN_INT(p->front),
                                        QN_INT(p->channels),
                                        QN_INT(p->source[0]),
                                        QN_INT(p->source[1]),
                                        QN_INT(p->plane[0]),
                                        QN_INT(p->plane[1]),
                                        QN_INT(p->gradient ? 2 - a->padding[0] : a->padding[0]),
                                        QN_INT(p->gradient ? 2 - a->padding[1] : a->padding[1]),
                                        QN_INT(row0),
                                        QN_INT(rows),
                                        QN_INT(deep_of(p))},
                               .global = {qn_div_up(tiles, TILES) * ITEMS, qn_div_up(rows, ROWS)},
                               .local = {ITEMS, 1}};
    set_types(&launch, p);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_winograd_gpu(struct qn_emit *emit, const struct qn_call *call,
                                 const struct qn_conv2d_product *p)
{
    const int64_t most = rows_of(p);
    for (int64_t row0 = 0; row0 < p->channels; row0 += most) {
        const int64_t rows = p->channels - row0 < most ? p->channels - row0 : most;
        QN_TRY(transform_weights(emit, call, p, row0, rows));
        QN_TRY(make_rows(emit, call, p, row0, rows));
    }
    return QN_OK;
}
