/* SPDX-License-Identifier: MIT
 *
 * Convolutions by matrix units, of images of 16 bits: a launch packs the weights into scratch as
 * words of factors, another multiplies. Weights of f32 are split into the sum of two factors, so
 * that their products are as exact as those of the other ways; those of f16 need a scale for each
 * row, which a launch before these finds.
 */
#include "ops/conv2d_units.h"

#include "base/log.h"
#include "base/shape.h"

/* Work-items of a group of conv2d_pack.cl; elements of a tile's images, which are counted in 32
 * bits. */
enum { PACK_GROUP = 64, MOST_OFFSET = 1 << 30 };

/* Teams of a work-group and tiles of a team, along both edges; TEAMS of 0: a team's registers do
 * not hold so much. By layout and setting; the smallest first. */
struct grid {
    int64_t teams_m, teams_n, tiles_m, tiles_n;
};
enum { SETTINGS = 2 };
static const struct grid grids[][SETTINGS] = {
    [QN_MATRIX_MMA] = {{2, 2, 2, 4}, {2, 4, 4, 4}},
    [QN_MATRIX_MFMA] = {{2, 2, 2, 2}, {2, 4, 4, 2}},
    [QN_MATRIX_WMMA] = {{2, 2, 2, 2}, {2, 4, 4, 2}},
    [QN_MATRIX_DPAS8] = {{4, 8, 2, 1}, {8, 8, 2, 2}},
    [QN_MATRIX_DPAS16] = {{4, 4, 2, 1}, {8, 4, 2, 2}},
};
const char *const qn_conv2d_units_settings[] = {"64x64", "128x128", NULL};

static const struct grid *grid_of(const struct qn_call *call)
{
    return &grids[call->facts->matrix_layout][call->setting];
}

static const struct qn_tile_layout *layout_of(const struct qn_call *call)
{
    return qn_tile_layout(call->facts->matrix_layout);
}

static int64_t edge_m(const struct qn_call *call)
{
    return grid_of(call)->teams_m * grid_of(call)->tiles_m * layout_of(call)->m;
}

static int64_t edge_n(const struct qn_call *call)
{
    return grid_of(call)->teams_n * grid_of(call)->tiles_n * layout_of(call)->n;
}

static int64_t work_group_of(const struct qn_call *call)
{
    return grid_of(call)->teams_m * grid_of(call)->teams_n * layout_of(call)->lanes;
}

static bool is_split(const struct qn_conv2d_product *p)
{
    return p->w->dtype == QN_F32;
}

/* Weights of f32 have exponents that f16 has not. */
static bool is_scaled(const struct qn_conv2d_product *p)
{
    return is_split(p) && p->s->dtype == QN_F16;
}

/* --- tiles --- */

/* Lines and pixels of a line of a tile; pixels of the region that they meet. */
struct patch {
    int64_t tall, wide, region, across;
    double work;
};

static int64_t local_bytes_of(const struct qn_call *call, const struct qn_conv2d_product *p,
                              int64_t region)
{
    const int64_t rows = edge_m(call) * (1 + is_split(p)) + region;
    return (rows * layout_of(call)->pitch + region) * QN_CONV2D_WORD_BYTES;
}

/* Most elements of the images of either source that a tile meets. */
static int64_t met_elements(const struct qn_conv2d_product *p, int64_t tall)
{
    const int64_t rest = p->depth - p->front, channels = p->front > rest ? p->front : rest;
    return p->groups * channels * p->source[0] * p->source[1] * (tall / qn_conv2d_period(p) + 2);
}

/* A pixel is multiplied for each tap; one of the region takes twice the copying of one of a tap. */
static struct patch patch_of_width(const struct qn_call *call, const struct qn_conv2d_product *p,
                                   int64_t wide)
{
    const struct qn_conv2d_axis v = qn_conv2d_axis_of(p, 0), h = qn_conv2d_axis_of(p, 1);
    const int64_t tall = edge_n(call) / wide;
    const int64_t region = v.classes * (tall + v.reach) * h.classes * (wide + h.reach);
    const int64_t across = qn_div_up(h.count, wide);
    const double tiles = (double)qn_div_up(p->batch * qn_conv2d_period(p), tall) * (double)across;
    const double each = (double)(edge_n(call) * v.taps * h.taps + 2 * region);
    return (struct patch){tall, wide, region, across, tiles * each};
}

/* The shape of tiles with the least work whose region local memory holds; tall 0: there is none. */
static struct patch patch_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    struct patch best = {0};
    for (int64_t wide = layout_of(call)->n; wide <= edge_n(call); wide *= 2) {
        const struct patch patch = patch_of_width(call, p, wide);
        const bool fits = local_bytes_of(call, p, patch.region) <= call->facts->local_bytes &&
                          met_elements(p, patch.tall) <= MOST_OFFSET;
        if (fits && (best.tall == 0 || patch.work < best.work))
            best = patch;
    }
    return best;
}

/* Neighbours that are loaded at once: 8, 4 or 1. */
static int64_t run_of(const struct qn_conv2d_product *p)
{
    for (int64_t run = QN_CONV2D_RUN; run >= QN_CONV2D_RUN / 2; run /= 2)
        if (qn_conv2d_is_pointwise(p) && p->plane[1] % run == 0 && p->s->offset % run == 0 &&
            (!qn_present(p->t) || p->t->offset % run == 0))
            return run;
    return 1;
}

/* --- what fits, and what it costs --- */

static bool has_types(const struct qn_conv2d_product *p)
{
    return p->s->dtype != QN_F32 && (p->w->dtype == p->s->dtype || p->w->dtype == QN_F32);
}

bool qn_conv2d_units_fit(const struct qn_call *call, const struct qn_conv2d_product *product,
                         const char **why)
{
    const struct qn_facts *facts = call->facts;
    const struct qn_conv2d_product lines = qn_conv2d_lines(product), *p = &lines;
    if (!has_types(p))
        *why = "made for images of 16 bits, and weights of their type or f32";
    else if (!qn_conv2d_has_units(facts, p))
        *why = "the device has no matrix units for these types";
    else if (p->depth < QN_CONV2D_LEAST_DEPTH || p->channels < QN_CONV2D_LEAST_DEPTH)
        *why = "too few channels";
    else if (facts->max_work_group < work_group_of(call))
        *why = "the device's work-groups are too small";
    else if (qn_conv2d_has_many_lines(p))
        *why = "too many lines or columns";
    else if (patch_of(call, p).tall == 0)
        *why = "the device has too little local memory, or an image is too large";
    else if (call->setting > 0 && p->channels <= edge_m(call) / 2)
        *why = "smaller tiles cover the channels";
    else
        return true;
    return false;
}

static int64_t strips_of(const struct qn_conv2d_product *p)
{
    return qn_div_up(p->front, QN_CONV2D_STRIP) + qn_div_up(p->depth - p->front, QN_CONV2D_STRIP);
}

static int64_t rows_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    return qn_round_up(p->channels, edge_m(call));
}

void qn_conv2d_units_cost(const struct qn_call *call, const struct qn_conv2d_product *p, int group,
                          struct qn_cost *cost)
{
    const int64_t rows = p->groups * rows_of(call, p), factors = 1 + is_split(p);
    const int64_t words = strips_of(p) * p->kernel[0] * p->kernel[1] * QN_TILE_DEPTH * factors;
    qn_conv2d_cost(call, p, group, cost);
    cost->launches = 2 + is_scaled(p);
    cost->scratch = rows * (words + is_scaled(p)) * QN_CONV2D_WORD_BYTES;
    cost->bytes += 2 * (double)cost->scratch;
}

/* --- launches --- */

static void set_units(struct qn_launch *launch, const struct qn_call *call,
                      const struct qn_conv2d_product *p)
{
    qn_launch_word(launch, "UNIT_TYPE", qn_dtype_name(p->s->dtype));
    qn_launch_word(launch, "TILE_LAYOUT", layout_of(call)->name);
    qn_launch_option(launch, "SPLIT", is_split(p));
    qn_launch_option(launch, "SCALED", is_scaled(p));
}

/* Of conv2d_pack.cl, whose kernels take the weights and scratch, `count` sizes, and where weights
 * lie. */
static struct qn_launch pack_launch(const struct qn_call *call, const struct qn_conv2d_product *p,
                                    const char *kernel, const int64_t *sizes, int count)
{
    const int64_t taps = p->kernel[0] * p->kernel[1], row = p->inputs * taps;
    const int64_t steps[] = {p->input0 * taps, p->channels * p->depth * taps,
                             p->gradient ? taps : row, p->gradient ? row : taps};
    struct qn_launch launch = {.program = "conv2d_pack",
                               .kernel = kernel,
                               .args = {QN_BUF(p->w), QN_BUF(&call->scratch)},
                               .local = {PACK_GROUP}};
    for (int i = 0; i < count; i++)
        qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(sizes[i]));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(steps[i]));
    qn_launch_type(&launch, "W", p->w);
    qn_launch_option(&launch, "QN_WG", PACK_GROUP);
    set_units(&launch, call, p);
    return launch;
}

static qn_status emit_scales(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_conv2d_product *p)
{
    const int64_t sizes[] = {rows_of(call, p), p->depth, p->kernel[0] * p->kernel[1]};
    struct qn_launch launch = pack_launch(call, p, "conv2d_scales", sizes, 3);
    launch.global[0] = p->channels * PACK_GROUP;
    launch.global[1] = p->groups;
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_pack(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_conv2d_product *p)
{
    const int64_t taps = p->kernel[0] * p->kernel[1];
    const int64_t sizes[] = {p->channels, p->depth, p->front, taps};
    struct qn_launch launch = pack_launch(call, p, "conv2d_pack", sizes, 4);
    launch.global[0] = rows_of(call, p) * QN_TILE_DEPTH / QN_CONV2D_VECTOR_WORDS;
    launch.global[1] = strips_of(p) * taps;
    launch.global[2] = p->groups;
    return qn_emit_launch(emit, &launch);
}

static void set_tiles(struct qn_launch *launch, const struct qn_call *call,
                      const struct qn_conv2d_product *p, const struct patch *patch)
{
    const struct grid *grid = grid_of(call);
    const struct qn_conv2d_axis v = qn_conv2d_axis_of(p, 0), h = qn_conv2d_axis_of(p, 1);
    qn_launch_option(launch, "TEAMS_M", grid->teams_m);
    qn_launch_option(launch, "TEAMS_N", grid->teams_n);
    qn_launch_option(launch, "TILES_M", grid->tiles_m);
    qn_launch_option(launch, "TILES_N", grid->tiles_n);
    qn_launch_option(launch, "TALL", patch->tall);
    qn_launch_option(launch, "WIDE", patch->wide);
    qn_launch_option(launch, "EACH_Y", patch->tall + v.reach);
    qn_launch_option(launch, "EACH_X", patch->wide + h.reach);
    qn_launch_option(launch, "CLASSES_Y", v.classes);
    qn_launch_option(launch, "CLASSES_X", h.classes);
}

/* Of an image, whose residues have products of their own. */
static int64_t residues_of(const struct qn_conv2d_product *p)
{
    int64_t residues = 1;
    for (int i = 0; i < 2 && p->gradient; i++)
        residues *= p->attr->stride[i] < p->plane[i] ? p->attr->stride[i] : p->plane[i];
    return residues;
}

static qn_status emit_product(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_conv2d_product *p)
{
    const struct patch patch = patch_of(call, p);
    const int64_t lines = qn_div_up(p->batch * qn_conv2d_period(p), patch.tall);
    struct qn_conv2d_product packed = *p;
    packed.w = &call->scratch;
    struct qn_launch launch = qn_conv2d_image_launch(&packed);
    launch.program = "conv2d_image_units";
    launch.kernel = "conv2d_image";
    launch.local[0] = work_group_of(call);
    launch.global[0] = lines * patch.across * launch.local[0];
    launch.global[1] = rows_of(call, p) / edge_m(call);
    launch.global[2] = p->groups * residues_of(p);
    qn_conv2d_argument(&launch, (struct qn_arg)QN_BUF(p->t));
    qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(p->front));
    qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(qn_conv2d_period(p)));
    qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(qn_conv2d_axis_of(p, 0).lowest));
    qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(patch.across));
    qn_launch_option(&launch, "RUN", run_of(p));
    set_units(&launch, call, p);
    set_tiles(&launch, call, p, &patch);
    qn_conv2d_gpu_window(&launch, p);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_units(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_product lines = qn_conv2d_lines(p);
    if (is_scaled(&lines))
        QN_TRY(emit_scales(emit, call, &lines));
    QN_TRY(emit_pack(emit, call, &lines));
    return emit_product(emit, call, &lines);
}
