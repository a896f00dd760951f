/* SPDX-License-Identifier: MIT
 *
 * Winograd's F(2x2, 3x3) on CPUs, for the result and the gradient of the image: the weights are
 * transformed into scratch, as many channels at a time as it holds, and a second launch makes those
 * channels.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* What a work-group makes: most channels x tiles of 2 x 2 pixels, of which so many channels of the
 * source are transformed at a time. Transformed weights lie in scratch, for as many channels at a
 * time as fit, by multiples of WINOGRAD_ROWS. Below the least number of channels on either side the
 * transforms cost more than they save. */
struct winograd_block {
    int channels, tiles, depth;
};
static const struct winograd_block winograd_blocks[] = {{128, 48, 64}, {64, 48, 64}, {8, 24, 8}};
/* Packing and transforming the source takes as long as so many channels of a block, measured. */
enum { WINOGRAD_PACKED = 48 };
enum { WINOGRAD_BLOCKS = sizeof winograd_blocks / sizeof *winograd_blocks };
enum { WINOGRAD_POINTS = 16, WINOGRAD_EACH = 16, WINOGRAD_ROWS = 64, LEAST_WINOGRAD = 16 };
/* Planes are narrow where a row of tiles fills so small a share of a vector; pixels staged then. */
enum { NARROW_SHARE = 4, NARROW_PIXELS = 320 };
static const int64_t winograd_scratch = INT64_C(4) << 20;

/* Channels that Winograd's way makes in one launch. */
static int64_t winograd_rows(const struct qn_conv2d_product *p)
{
    const int64_t most = winograd_scratch / (int64_t)sizeof(float) / WINOGRAD_POINTS / p->depth;
    const int64_t rows =
        most < WINOGRAD_ROWS ? WINOGRAD_ROWS : most / WINOGRAD_ROWS * WINOGRAD_ROWS;
    return p->channels < rows ? p->channels : rows;
}

void qn_conv2d_winograd_cost(const struct qn_call *call, const struct qn_conv2d_product *p,
                             int group, struct qn_cost *cost)
{
    const int64_t rows = winograd_rows(p);
    qn_conv2d_cost(call, p, group, cost);
    cost->launches = 2 * (int)qn_div_up(p->channels, rows);
    cost->scratch = qn_round_up(rows, call->facts->vector_width) * WINOGRAD_POINTS * p->depth *
                    (int64_t)sizeof(float);
    cost->bytes += 2.0 * (double)cost->scratch * (double)p->channels / (double)rows;
}

static int64_t winograd_local_bytes(const struct winograd_block *block, int64_t vector)
{
    const int64_t row = (int64_t)block->tiles * (block->channels + block->depth + 1) + 2 * vector;
    return WINOGRAD_POINTS * row * (int64_t)sizeof(float);
}

int64_t qn_conv2d_winograd_tiles(const struct qn_conv2d_product *p)
{
    return p->batch * qn_div_up(p->plane[0], 2) * qn_div_up(p->plane[1], 2);
}

/* Images that so many tiles are in, at most. */
static int64_t winograd_images(const struct qn_conv2d_product *p, int64_t tiles)
{
    const int64_t each = qn_conv2d_winograd_tiles(p) / p->batch;
    const int64_t most = tiles % each == 0 ? tiles / each : (tiles - 2) / each + 2;
    return most < p->batch ? most : p->batch;
}

int64_t qn_conv2d_winograd_narrow(const struct qn_facts *facts, const struct qn_conv2d_product *p,
                                  int64_t tiles, int64_t used)
{
    const int64_t vector = qn_conv2d_tile_of(facts)->vector,
                  pixel = vector * (int64_t)sizeof(float);
    const int64_t from = p->source[0] * p->source[1], to = p->plane[0] * p->plane[1];
    const int64_t staged = winograd_images(p, tiles) * (from > to ? from : to);
    const bool narrow = qn_div_up(p->plane[1], 2) <= vector / NARROW_SHARE;
    return narrow && from >= vector && to >= vector && staged <= NARROW_PIXELS &&
                   used + (NARROW_PIXELS + 1) * pixel <= facts->local_bytes
               ? NARROW_PIXELS
               : 0;
}

static bool winograd_block_fits(const struct winograd_block *block, const struct qn_facts *facts)
{
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(facts);
    return winograd_local_bytes(block, tile->vector) <= facts->local_bytes &&
           block->tiles % (tile->vector * tile->winograd.vectors) == 0;
}

/* How long a launch takes: work-groups that a compute unit makes, and what one of them costs. */
static int64_t winograd_work(const struct winograd_block *block, const struct qn_facts *facts,
                             const struct qn_conv2d_product *p)
{
    const int64_t rows = winograd_rows(p), each = rows < block->channels ? rows : block->channels;
    const int64_t groups =
        qn_div_up(qn_conv2d_winograd_tiles(p), block->tiles) * qn_div_up(rows, block->channels);
    return qn_div_up(groups, facts->compute_units) * block->tiles * (each + WINOGRAD_PACKED);
}

/* The fastest that fits; it changes no bit. NULL if there is none for the device. */
static const struct winograd_block *winograd_block_of(const struct qn_facts *facts,
                                                      const struct qn_conv2d_product *p)
{
    const struct winograd_block *best = NULL;
    for (const struct winograd_block *b = winograd_blocks; b < winograd_blocks + WINOGRAD_BLOCKS;
         b++)
        if (winograd_block_fits(b, facts) &&
            (!best || winograd_work(b, facts, p) < winograd_work(best, facts, p)))
            best = b;
    return best;
}

bool qn_conv2d_winograd_is_for(const struct qn_call *call, const char **why)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    *why = "made for 3 x 3 taps, stride and dilation 1, one group";
    for (int i = 0; i < 2; i++)
        if (p.kernel[i] != 3 || p.attr->stride[i] != 1 || p.attr->dilation[i] != 1)
            return false;
    if (p.groups > 1)
        return false;
    *why = "too few channels";
    return p.depth >= LEAST_WINOGRAD && p.channels >= LEAST_WINOGRAD;
}

bool qn_conv2d_winograd_fits(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why) || !qn_conv2d_winograd_is_for(call, why))
        return false;
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    *why = "the device has too little local memory";
    return winograd_block_of(call->facts, &p) != NULL;
}

/* --- launches --- */

/* Both kernels get all options, so that they are one program. */
static void add_winograd_options(struct qn_launch *launch, const struct qn_call *call,
                                 const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(call->facts);
    const struct winograd_block *block = winograd_block_of(call->facts, p);
    qn_launch_type(launch, "S", p->s);
    qn_launch_type(launch, "W", p->w);
    qn_launch_type(launch, "B", p->b);
    qn_launch_type(launch, "D", p->d);
    qn_launch_option(launch, "QN_V", tile->vector);
    qn_launch_option(launch, "QN_NV", block->tiles / tile->vector);
    qn_launch_option(launch, "QN_NR", tile->winograd.vectors);
    qn_launch_option(launch, "QN_MR", tile->winograd.rows);
    qn_launch_option(launch, "QN_BLOCK", block->channels);
    qn_launch_option(launch, "QN_DEPTH", block->depth);
    qn_launch_option(launch, "QN_STEP", 2);
    qn_launch_option(launch, "QN_INSIDE", 0);
    qn_launch_option(launch, "QN_CHANNELS", WINOGRAD_EACH);
    qn_launch_option(launch, "QN_NARROW",
                     qn_conv2d_winograd_narrow(call->facts, p, block->tiles,
                                               winograd_local_bytes(block, tile->vector)));
}

/* Transforms the weights of `rows` channels from `row0` on. */
static qn_status emit_winograd_weights(struct qn_emit *emit, const struct qn_call *call,
                                       const struct qn_conv2d_product *p, int64_t row0,
                                       int64_t rows)
{
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector, taps = 9;
    const int64_t row_step = taps * p->inputs;
    struct qn_launch launch = {
        .program = "conv2d_winograd_cpu",
        .kernel = "conv2d_winograd_weights",
        .args = {QN_BUF(p->w), QN_BUF(&call->scratch), QN_INT(p->input0 + row0), QN_INT(rows),
                 QN_INT(p->depth), QN_LONG(p->gradient ? taps : row_step),
                 QN_LONG(p->gradient ? row_step : taps), QN_INT(p->gradient)},
        .global = {qn_div_up(rows, vector), qn_div_up(p->depth, WINOGRAD_EACH)}};
    add_winograd_options(&launch, call, p);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_winograd_rows(struct qn_emit *emit, const struct qn_call *call,
                                    const struct qn_conv2d_product *p, int64_t row0, int64_t rows)
{
    const struct qn_conv2d_attr *a = p->attr;
    const struct winograd_block *block = winograd_block_of(call->facts, p);
    struct qn_launch launch = {
        .program = "conv2d_winograd_cpu",
        .kernel = "conv2d_winograd",
        .args = {QN_BUF(p->s), QN_BUF(p->t), QN_BUF(&call->scratch), QN_BUF(p->b), QN_BUF(p->d),
                 QN_INT(qn_present(p->b)), QN_FLOAT(p->beta), QN_INT(p->batch), QN_INT(p->depth),
                 QN_INT(p->front), QN_INT(p->channels), QN_INT(p->source[0]), QN_INT(p->source[1]),
                 QN_INT(p->plane[0]), QN_INT(p->plane[1]),
                 QN_INT(p->gradient ? 2 - a->padding[0] : a->padding[0]),
                 QN_INT(p->gradient ? 2 - a->padding[1] : a->padding[1]), QN_INT(row0),
                 QN_INT(rows)},
        .global = {qn_div_up(qn_conv2d_winograd_tiles(p), block->tiles),
                   qn_div_up(rows, block->channels)}};
    add_winograd_options(&launch, call, p);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_winograd(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_conv2d_product *p)
{
    const int64_t most = winograd_rows(p);
    for (int64_t row0 = 0; row0 < p->channels; row0 += most) {
        const int64_t rows = p->channels - row0 < most ? p->channels - row0 : most;
        QN_TRY(emit_winograd_weights(emit, call, p, row0, rows));
        QN_TRY(emit_winograd_rows(emit, call, p, row0, rows));
    }
    return QN_OK;
}
