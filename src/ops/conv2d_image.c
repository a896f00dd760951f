/* SPDX-License-Identifier: MIT
 *
 * What convolutions make of images, and images of results, as one product.
 */
#include "ops/conv2d_product.h"

#include "base/shape.h"

/* CPU shape: most channels and pixels of a tile of the image kernel, of which so many terms are
 * packed at a time. The largest of a setting that fits the local memory is taken. */
struct image_tile {
    int channels, pixels, terms; /* pixels: a multiple of the vectors of a register tile */
};
/* A tile packs all weights of its channels, and all patches of its pixels: where these are few,
 * wide tiles pack the weights once. Changes no bit. */
enum { LARGE, SMALL, WIDE, SETTINGS };
const char *const qn_conv2d_image_settings[] = {
    [LARGE] = "large", [SMALL] = "small", [WIDE] = "wide", NULL};
enum { IMAGE_TILES = 4, LEAST_CHANNELS = 64 };
static const struct image_tile image_tiles[SETTINGS][IMAGE_TILES] = {
    [LARGE] = {{256, 192, 144}, {128, 192, 72}, {64, 96, 72}, {32, 96, 32}},
    [SMALL] = {{128, 192, 144}, {64, 192, 72}, {32, 96, 72}, {16, 96, 32}},
    [WIDE] = {{256, 432, 144}, {128, 432, 144}, {32, 144, 72}, {16, 144, 32}}};
enum { MOST_ROWS = 8 }; /* of its register tiles */
/* Patches of a pixel are packed in the time that multiplying them by so many channels takes. */
enum { PACKING = 32 };

enum { CPU_LOCAL_BYTES = 32 << 10, MOST_TILES_EACH = 8 };

static int64_t image_local_bytes(const struct image_tile *tile, int64_t vector)
{
    const int64_t floats =
        (int64_t)tile->pixels * (tile->channels + tile->terms) + MOST_ROWS * tile->terms + vector;
    return floats * (int64_t)sizeof(float);
}

static const struct image_tile *image_tile_of(const struct qn_call *call)
{
    const struct qn_facts *facts = call->facts;
    const struct image_tile *tile = image_tiles[call->setting], *last = tile + IMAGE_TILES - 1;
    while (tile < last && image_local_bytes(tile, facts->vector_width) > facts->local_bytes)
        tile++;
    return tile;
}

bool qn_conv2d_fits_cpu(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why))
        return false;
    *why = "the device has too little local memory";
    return call->facts->local_bytes >= CPU_LOCAL_BYTES;
}

/* --- launches --- */

/* The pixels of one residue of an image, or all of a result: the most there are. */
static int64_t residue_pixels(const struct qn_conv2d_product *p)
{
    if (!p->gradient)
        return qn_conv2d_pixels(p);
    return p->batch * qn_div_up(p->plane[0], p->attr->stride[0]) *
           qn_div_up(p->plane[1], p->attr->stride[1]);
}

static int64_t residues_of(const struct qn_conv2d_product *p)
{
    int64_t residues = 1;
    for (int i = 0; i < 2 && p->gradient; i++)
        residues *= p->attr->stride[i] < p->plane[i] ? p->attr->stride[i] : p->plane[i];
    return residues;
}

/* Channels of a tile, at most `most` and a multiple of the rows of a register tile: such that the
 * work-groups, `others` for each block of channels, end soonest on all units. Changes no bit. */
static int64_t image_channels(const struct qn_facts *facts, int64_t channels, int64_t others,
                              int64_t most, int64_t rows)
{
    int64_t best = 0, least = INT64_MAX, blocks = qn_div_up(channels, most);
    do {
        const int64_t even = qn_round_up(qn_div_up(channels, blocks), rows);
        const int64_t each = even < most ? even : most / rows * rows;
        const int64_t groups = qn_div_up(channels, each) * others;
        const int64_t time = qn_div_up(groups, facts->compute_units) * (each + PACKING);
        if (time < least) {
            least = time;
            best = each;
        }
    } while (channels / ++blocks >= LEAST_CHANNELS);
    return best;
}

static void shape_image_cpu(struct qn_launch *launch, const struct qn_call *call,
                            const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_tile *tile = qn_conv2d_tile_of(call->facts);
    const struct image_tile *image = image_tile_of(call);
    const int64_t pixels = residue_pixels(p);
    const struct qn_register_tile *registers = &tile->image;
    const int64_t rows = p->channels > 1 ? registers->rows : 1;
    const int64_t tile_pixels = qn_round_up(qn_div_up(pixels, qn_div_up(pixels, image->pixels)),
                                            tile->vector * registers->vectors);
    const int64_t step = p->gradient ? 1 : p->attr->stride[1];
    const int64_t tiles = qn_div_up(pixels, tile_pixels);
    const int64_t channels =
        image_channels(call->facts, p->channels, tiles * p->groups, image->channels, rows);
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
    qn_launch_option(launch, "QN_INSIDE", qn_conv2d_is_inside(p));
    qn_launch_option(launch, "QN_SHORT", qn_conv2d_is_short(p, tile->vector));
}

static void shape_image_gpu(struct qn_launch *launch, const struct qn_call *call,
                            const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_grid grid = qn_conv2d_gpu_grid(call, p->channels, residue_pixels(p));
    launch->program = "conv2d_image_gpu";
    launch->global[2] = p->groups * residues_of(p);
    qn_conv2d_gpu_shape(launch, &grid);
    qn_conv2d_gpu_window(launch, p);
}

qn_status qn_conv2d_image(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_conv2d_product *p)
{
    struct qn_launch launch = qn_conv2d_image_launch(p);
    launch.kernel = "conv2d_image";
    qn_conv2d_inputs(&launch, p);
    qn_conv2d_argument(&launch, (struct qn_arg)QN_BUF(p->t));
    qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(p->front));
    if (call->cpu)
        shape_image_cpu(&launch, call, p);
    else
        shape_image_gpu(&launch, call, p);
    return qn_emit_launch(emit, &launch);
}
