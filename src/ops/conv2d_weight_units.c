/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution by matrix units, of images and results of 16 bits: a
 * sum over the pixels, in parts.
 */
#include "ops/conv2d_units.h"

#include "base/log.h"
#include "base/shape.h"

enum { SETTINGS = 3 };

/* Teams of a work-group, tiles of output channels of each, and how many tiles of input channels and
 * taps it has where the taps are fewer. */
struct grid {
    int64_t teams_m, teams_n, tiles_m, tiles_n;
};
static const struct grid grids[][SETTINGS] = {
    [QN_MATRIX_MMA] = {{2, 2, 2, 8}, {4, 2, 2, 8}, {2, 2, 4, 8}},
    [QN_MATRIX_MFMA] = {{2, 2, 2, 8}},
    [QN_MATRIX_WMMA] = {{2, 2, 2, 4}},
    [QN_MATRIX_DPAS8] = {{4, 4, 1, 8}},
    [QN_MATRIX_DPAS16] = {{4, 2, 1, 8}},
};
const char *const qn_conv2d_weight_units_settings[] = {"small", "large", "wide", NULL};

/* Taps whose sums a team's registers hold, for several runs of input channels where they are few;
 * tiles that they hold in all; elements of a line that a run of pixels meets, most of which
 * registers hold; steps that a part has at least, and most bytes of scratch; elements of the planes
 * of a group, which are counted in 32 bits. */
enum { MOST_TAPS = 9, MOST_TILES = 32, MOST_SPAN = 64, PART_STEPS = 8, MOST_OFFSET = 1 << 30 };
static const int64_t most_scratch = INT64_C(4) << 20;

static const struct qn_tile_layout *layout_of(const struct qn_call *call)
{
    return qn_tile_layout(call->facts->matrix_layout);
}

static const struct grid *grid_of(const struct qn_call *call)
{
    return &grids[call->facts->matrix_layout][call->setting];
}

static int64_t taps_of(const struct qn_conv2d_product *p)
{
    return p->kernel[0] * p->kernel[1];
}

static int64_t team_runs(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    const int64_t tiles = grid_of(call)->tiles_n, taps = taps_of(p);
    return taps < tiles ? tiles / taps : 1;
}

static int64_t edge_rows(const struct qn_call *call)
{
    return grid_of(call)->teams_m * grid_of(call)->tiles_m * layout_of(call)->m;
}

static int64_t edge_channels(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    return grid_of(call)->teams_n * team_runs(call, p) * layout_of(call)->n;
}

static int64_t work_group_of(const struct qn_call *call)
{
    return grid_of(call)->teams_m * grid_of(call)->teams_n * layout_of(call)->lanes;
}

/* Lines of a step and pixels of a line; steps down all lines, and along one; lines met, of each
 * class; words of a row of S's strips. */
struct walk {
    int64_t tall, wide, down, along, each, classes, pitch;
};

/* Rows of S are so many words that what lanes load at once is spread over the banks. */
static int64_t pitch_of(const struct qn_call *call, int64_t words)
{
    const int64_t vectors = words / QN_CONV2D_VECTOR_WORDS;
    if (call->facts->matrix_layout == QN_MATRIX_MMA)
        return qn_round_up(words + QN_TILE_DEPTH, 2 * QN_TILE_DEPTH) - QN_TILE_DEPTH;
    return (vectors + 1 - vectors % 2) * QN_CONV2D_VECTOR_WORDS;
}

static struct walk walk_of_width(const struct qn_call *call, const struct qn_conv2d_product *p,
                                 int64_t wide)
{
    const struct qn_conv2d_axis v = qn_conv2d_axis_of(p, 0);
    const int64_t tall = QN_CONV2D_STRIP / wide;
    const int64_t words = v.classes * (tall + v.reach) * wide / 2;
    return (struct walk){tall,
                         wide,
                         qn_div_up(p->batch * qn_conv2d_period(p), tall),
                         qn_div_up(p->plane[1], wide),
                         tall + v.reach,
                         v.classes,
                         pitch_of(call, words)};
}

static int64_t steps_of(const struct walk *walk)
{
    return walk->down * walk->along;
}

/* Lines that a step meets are those of two images at most, and each work-item loads of one. */
static bool is_walk(const struct qn_call *call, const struct qn_conv2d_product *p,
                    const struct walk *walk)
{
    const int64_t period = qn_conv2d_period(p);
    return walk->tall <= period && walk->each <= period + 1 &&
           walk->classes * walk->each * (walk->wide / QN_CONV2D_RUN) <= work_group_of(call);
}

/* The fewest steps; of walks with as many the one whose lines fill the sectors of a GPU's memory,
 * 32 bytes, and not more: it meets the fewest elements beside them. No steps: there is no walk. */
static struct walk walk_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    struct walk best = {0};
    static const int64_t widths[] = {16, 8, 32};
    for (int i = 0; i < 3; i++) {
        const struct walk walk = walk_of_width(call, p, widths[i]);
        const int64_t steps = steps_of(&best);
        if (is_walk(call, p, &walk) && (steps == 0 || steps_of(&walk) < steps))
            best = walk;
    }
    return best;
}

static int64_t local_bytes_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    const int64_t words = edge_rows(call) * layout_of(call)->pitch +
                          p->kernel[1] * edge_channels(call, p) * walk_of(call, p).pitch;
    return words * QN_CONV2D_WORD_BYTES;
}

/* Elements from the first to the last of a line that a run of pixels meets. */
static int64_t span_of(const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_attr *a = p->attr;
    return (QN_CONV2D_RUN - 1) * a->stride[1] + (p->kernel[1] - 1) * a->dilation[1] + 1;
}

static bool has_large_planes(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    return edge_rows(call) * p->plane[0] * p->plane[1] > MOST_OFFSET ||
           edge_channels(call, p) * p->source[0] * p->source[1] > MOST_OFFSET;
}

static bool has_types(const struct qn_conv2d_product *p)
{
    return p->s->dtype != QN_F32 && p->d->dtype == p->s->dtype;
}

bool qn_conv2d_weight_units_fit(const struct qn_call *call, const struct qn_conv2d_product *product,
                                const char **why)
{
    const struct qn_facts *facts = call->facts;
    const struct qn_conv2d_product lines = qn_conv2d_lines(product), *p = &lines;
    if (!has_types(p))
        *why = "made for images and results of 16 bits";
    else if (!qn_conv2d_has_units(facts, p))
        *why = "the device has no matrix units for these types";
    else if (grid_of(call)->teams_m == 0)
        *why = "a team of the device holds no such tiles";
    else if (p->depth < QN_CONV2D_LEAST_DEPTH || p->channels < QN_CONV2D_LEAST_DEPTH)
        *why = "too few channels";
    else if (taps_of(p) > MOST_TAPS)
        *why = "too many taps";
    else if (grid_of(call)->tiles_m * team_runs(call, p) * taps_of(p) > MOST_TILES)
        *why = "a team of the device holds no such tiles";
    else if (span_of(p) > MOST_SPAN)
        *why = "neighbours meet elements that are too far apart";
    else if (facts->max_work_group < work_group_of(call))
        *why = "the device's work-groups are too small";
    else if (qn_conv2d_has_many_lines(p))
        *why = "too many lines or columns";
    else if (has_large_planes(call, p))
        *why = "an image is too large";
    else if (walk_of(call, p).down == 0)
        *why = "the image is too small for the window";
    else if (facts->local_bytes < local_bytes_of(call, p))
        *why = "the device has too little local memory";
    else if (call->setting > 0 && p->channels <= edge_rows(call) / 2)
        *why = "smaller tiles cover the channels";
    else
        return true;
    return false;
}

/* As in conv2d_weight.c: the same for all images. */
static struct qn_conv2d_split split_of(const struct qn_call *call,
                                       const struct qn_conv2d_product *p)
{
    const int64_t rest = p->depth - p->front;
    const int64_t least = rest > 0 && rest < p->front ? rest : p->front;
    const struct walk walk = walk_of(call, p);
    return qn_conv2d_split(
        call, &(struct qn_conv2d_sum){.length = steps_of(&walk),
                                      .groups = qn_div_up(least, edge_channels(call, p)) *
                                                qn_div_up(p->channels, edge_rows(call)) * p->groups,
                                      .least = PART_STEPS,
                                      .block = 1,
                                      .scratch = most_scratch});
}

void qn_conv2d_weight_units_cost(const struct qn_call *call,
                                 const struct qn_conv2d_product *product, int group,
                                 struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_lines(product);
    const struct qn_conv2d_split split = split_of(call, &p);
    qn_conv2d_split_cost(call, &p, group, &split, cost);
}

/* WALK of the kernel. */
static int64_t way_of(const struct qn_conv2d_product *p, const struct walk *walk)
{
    if (walk->down < walk->along)
        return 0;
    return qn_conv2d_period(p) == 1 ? 2 : 1;
}

/* Neighbours of a line of `size` elements that are aligned, and those of the first of them. */
static int64_t vector_of(const struct qn_operand *operand, int64_t size)
{
    int64_t vector = QN_CONV2D_RUN;
    while (size % vector != 0 || operand->offset % vector != 0)
        vector /= 2;
    return vector;
}

/* Of S, of which the first that is aligned must be one that a run of pixels meets. */
static int64_t source_vector(const struct qn_conv2d_product *p)
{
    return p->attr->padding[1] < span_of(p) ? vector_of(p->s, p->source[1]) : 1;
}

static void set_tiles(struct qn_launch *launch, const struct qn_call *call,
                      const struct qn_conv2d_product *p, const struct walk *walk)
{
    const struct grid *grid = grid_of(call);
    qn_launch_word(launch, "UNIT_TYPE", qn_dtype_name(p->s->dtype));
    qn_launch_word(launch, "TILE_LAYOUT", layout_of(call)->name);
    qn_launch_option(launch, "TEAMS_M", grid->teams_m);
    qn_launch_option(launch, "TEAMS_N", grid->teams_n);
    qn_launch_option(launch, "TILES_M", grid->tiles_m);
    qn_launch_option(launch, "TEAM_RUNS", team_runs(call, p));
    qn_launch_option(launch, "WALK", way_of(p, walk));
    qn_launch_option(launch, "TALL", walk->tall);
    qn_launch_option(launch, "WIDE", walk->wide);
    qn_launch_option(launch, "EACH_Y", walk->each);
    qn_launch_option(launch, "CLASSES_Y", walk->classes);
    qn_launch_option(launch, "PITCH_B", walk->pitch);
    qn_launch_option(launch, "TAPS_Y", p->kernel[0]);
    qn_launch_option(launch, "TAPS_X", p->kernel[1]);
    qn_launch_option(launch, "STRIDE", p->attr->stride[1]);
    qn_launch_option(launch, "DILATION", p->attr->dilation[1]);
    qn_launch_option(launch, "PADDING", p->attr->padding[1]);
    qn_launch_option(launch, "VECTOR_D", vector_of(p->d, p->plane[1]));
    qn_launch_option(launch, "VECTOR_S", source_vector(p));
}

qn_status qn_conv2d_weight_units(struct qn_emit *emit, const struct qn_call *call,
                                 const struct qn_conv2d_product *product)
{
    const struct qn_conv2d_product p = qn_conv2d_lines(product);
    const struct qn_conv2d_split split = split_of(call, &p);
    const struct walk walk = walk_of(call, &p);
    for (int i = 0; i < qn_conv2d_images(&p); i++) {
        const struct qn_conv2d_product own = qn_conv2d_image_weights(&p, i);
        struct qn_launch launch = qn_conv2d_split_launch(call, &own, &split);
        launch.program = "conv2d_weight_units";
        launch.local[0] = work_group_of(call);
        launch.global[0] = qn_div_up(own.depth, edge_channels(call, &p)) * launch.local[0];
        launch.global[1] = qn_div_up(p.channels, edge_rows(call)) * p.groups;
        qn_conv2d_argument(&launch, (struct qn_arg)QN_INT(qn_conv2d_period(&p)));
        qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(steps_of(&walk)));
        set_tiles(&launch, call, &own, &walk);
        qn_conv2d_gpu_window(&launch, &p);
        QN_TRY(qn_emit_launch(emit, &launch));
    }
    return qn_conv2d_split_add(emit, call, &split);
}
