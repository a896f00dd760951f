/* SPDX-License-Identifier: MIT
 *
 * How a product is cut into tiles for the work-groups. Where k is long and the tiles are few, k is
 * split into parts, each with its own copy of the result in scratch, and a second launch adds the
 * copies in order. Tiles change no bit; blocks and parts do, and follow from shapes and facts
 * alone.
 */
#include "ops/matmul.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"

#include <string.h>

enum { ADD_GROUP = 64 }; /* work-items of the kernels that walk elements */

/* CPU shape: most rows and columns of a tile, elements of k in a block, panels of b in a band. The
 * largest whose packed panels and sums fit the local memory is taken. */
struct block {
    int64_t m, n, k, band;
};
/* By the vectors of the cores: rows and vectors of the sums that stay in registers, 12 of 16
 * registers beside 3 vectors and a factor, or 16 of 32; blocks, the largest first, ended by one of
 * nothing. What is packed of a stays in the second cache, of which many cores with the shorter
 * vectors have 512 KiB or less. */
struct cpu_tile {
    int64_t rows, vectors;
    struct block block[6];
};
static const struct cpu_tile narrow_tile = {
    .rows = 4,
    .vectors = 3,
    .block = {{128, 512, 256, 4}, {128, 256, 256, 4}, {64, 128, 256, 1}, {32, 64, 64, 1}},
};
static const struct cpu_tile wide_tile = {
    .rows = 8,
    .vectors = 2,
    .block = {{256, 512, 256, 1},
              {256, 256, 256, 1},
              {128, 256, 256, 1},
              {64, 128, 256, 1},
              {32, 64, 64, 1}},
};
enum { TILES_V = 16 }; /* vectors of matmul_tiles_cpu, on whatever device */
enum { LEAST_TILE_M = 32, LEAST_TILE_N = 64 };
const char *const qn_matmul_settings[] = {"large", "small", NULL};

/* GPU shape, as in lib/tiled.clh: sums of a work-item along either edge of its tile. */
enum { SIDE = 16, GPU_DEPTH = 16, EACH = 4, LARGE_EACH = 8 };

/* Work-groups for each compute unit that are aimed at, and the share of the time, one in so many,
 * that units may be idle at the end; what a part has at least; most bytes of scratch for parts. */
enum { GROUPS_PER_UNIT = 2, IDLE_SHARE = 16, PART_K = 512, PART_ROWS = 256 };
static const int64_t cpu_scratch = INT64_C(1) << 20, gpu_scratch = INT64_C(4) << 20;

/* The largest buffer in which CLBlast finds every element. */
static const int64_t most_of_blas = (INT64_C(1) << 31) * (int64_t)sizeof(float);

/* Work-groups of the column sums on GPUs; rows of a part at least: so many are added up in about
 * the time of the second launch that parts need. */
enum { SUMS_WIDE = 8, SUMS_TALL = 32, SUMS_ROWS = 2048 };

/* How sums are laid out: size of a tile of the result, size and number of the parts. */
struct layout {
    int64_t tile_m, tile_n, part, parts;
};

/* Of the launches that finish nothing. */
static const struct qn_epilogue no_epilogue;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const struct cpu_tile *cpu_tile_of(int64_t vector)
{
    return vector < 16 ? &narrow_tile : &wide_tile;
}

/* Columns of a panel of b. */
static int64_t panel_of(int64_t vector)
{
    return cpu_tile_of(vector)->vectors * vector;
}

/* Most columns of a tile, whole panels. */
static int64_t most_columns(const struct block *block, int64_t vector)
{
    return qn_round_up(block->n, panel_of(vector));
}

static bool fits(const struct block *block, const struct qn_facts *facts, int64_t vector)
{
    const int64_t of_b = block->k * block->band * panel_of(vector);
    const int64_t floats = block->m * (block->k + most_columns(block, vector)) + of_b;
    return floats * (int64_t)sizeof(float) <= facts->local_bytes;
}

/* The largest that fits, else the smallest. */
static const struct block *block_for(const struct qn_facts *facts, int64_t vector)
{
    const struct block *block = cpu_tile_of(vector)->block;
    while (block[1].m > 0 && !fits(block, facts, vector))
        block++;
    return block;
}

static const struct block *block_of(const struct qn_facts *facts)
{
    return block_for(facts, facts->vector_width);
}

static bool any_fits(const struct qn_facts *facts, int64_t vector)
{
    return fits(block_for(facts, vector), facts, vector);
}

static int64_t tiles_of(const struct layout *layout, int64_t m, int64_t n)
{
    return qn_div_up(m, layout->tile_m) * qn_div_up(n, layout->tile_n);
}

/* Splits a sum of `length` terms, whose `count` results are made by `groups` work-groups. */
static void split(struct layout *layout, const struct qn_facts *facts, bool cpu, int64_t groups,
                  int64_t count, int64_t length, int64_t least_part)
{
    int64_t parts = GROUPS_PER_UNIT * (int64_t)facts->compute_units / groups;
    parts = least(parts, length / least_part);
    parts = least(parts, (cpu ? cpu_scratch : gpu_scratch) / (int64_t)sizeof(float) / count);
    layout->part = parts < 2 ? length : qn_round_up(qn_div_up(length, parts), least_part / 2);
    layout->parts = qn_div_up(length, layout->part);
}

/* Whether so many tiles are too few for the device, or leave too much of it idle at the end. */
static bool too_coarse(const struct qn_facts *facts, int64_t tiles)
{
    const int64_t units = facts->compute_units, idle = qn_round_up(tiles, units) - tiles;
    return tiles < GROUPS_PER_UNIT * units || idle * IDLE_SHARE > tiles;
}

static int64_t batch_of(const struct qn_matmul *p)
{
    return p->batch ? p->batch : 1;
}

/* Elements of the result. */
static int64_t count_of(const struct qn_matmul *p)
{
    return batch_of(p) * p->m * p->n;
}

/* Tiles of equal size, as large as a block, halved until there are enough of them. */
static void cut_tiles(struct layout *layout, const struct qn_call *call, const struct qn_matmul *p)
{
    const struct qn_facts *facts = call->facts;
    const struct block *block = block_of(facts);
    const int64_t v = facts->vector_width, m = p->m, n = p->n;
    const int64_t most_m = block->m >> call->setting, most_n = block->n >> call->setting;
    layout->tile_m = qn_round_up(qn_div_up(m, qn_div_up(m, most_m)), v);
    layout->tile_n = qn_round_up(qn_div_up(n, qn_div_up(n, most_n)), panel_of(v));
    while (too_coarse(facts, batch_of(p) * tiles_of(layout, m, n))) {
        if (layout->tile_n > LEAST_TILE_N && layout->tile_n >= layout->tile_m)
            layout->tile_n = qn_round_up(layout->tile_n / 2, panel_of(v));
        else if (layout->tile_m > LEAST_TILE_M)
            layout->tile_m = qn_round_up(layout->tile_m / 2, v);
        else
            break;
    }
}

static struct layout layout_of_tiles(const struct qn_facts *facts, const struct qn_matmul *p,
                                     struct qn_tile tile)
{
    struct layout layout = {tile.m, tile.n, 0, 0};
    split(&layout, facts, false, batch_of(p) * tiles_of(&layout, p->m, p->n), count_of(p), p->k,
          PART_K);
    return layout;
}

static int64_t gpu_local_bytes(int64_t each)
{
    return 2 * GPU_DEPTH * (SIDE * each + EACH) * (int64_t)sizeof(float);
}

/* Large where smaller tiles would not do as well for the result. From the shape alone: what tests
 * small products on a device tests both. */
static int64_t each_of(const struct qn_call *call, const struct qn_matmul *p)
{
    const bool large = call->setting == 0 && p->m > SIDE * EACH && p->n > SIDE * EACH &&
                       call->facts->local_bytes >= gpu_local_bytes(LARGE_EACH);
    return large ? LARGE_EACH : EACH;
}

static struct layout layout_of(const struct qn_call *call, const struct qn_matmul *p, bool cpu)
{
    struct layout layout = {0};
    if (!cpu) {
        const int64_t tile = SIDE * each_of(call, p);
        return layout_of_tiles(call->facts, p, (struct qn_tile){tile, tile});
    }
    cut_tiles(&layout, call, p);
    split(&layout, call->facts, true, batch_of(p) * tiles_of(&layout, p->m, p->n), count_of(p),
          p->k, PART_K);
    return layout;
}

static bool cpu_fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    (void)p;
    *why = !facts->cpu ? "made for CPUs: one work-item per work-group"
                       : "the device has too little local memory";
    return facts->cpu && any_fits(facts, facts->vector_width);
}

/* Factors of bf16 that an operand is the sum of. */
static int factors_of(const struct qn_operand *operand)
{
    return operand->dtype == QN_F32 ? 2 : 1;
}

/* Two factors hold 16 bits of a number of f32: enough where the result has no more; with them dot
 * products take as long as f32. */
static bool tiles_fit(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    const qn_dtype a = p->a->dtype, b = p->b->dtype;
    const bool f16 = a == QN_F16 || b == QN_F16, bf16 = a == QN_BF16 || b == QN_BF16;
    const bool split = a == QN_F32 || b == QN_F32, exact = p->c->dtype == QN_F32 && split;
    const bool tiles = facts->matrix_units & QN_MATRIX_BF16_TILES;
    if (!tiles && !(facts->matrix_units & QN_MATRIX_BF16_DOTS))
        *why = "the device's cores have neither tile registers nor fast dot products";
    else if (f16 || !bf16 || exact || (split && !tiles))
        *why = "made for factors of bf16";
    else if (!any_fits(facts, TILES_V))
        *why = "the device has too little local memory";
    else
        return true;
    return false;
}

static bool gpu_fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    (void)p;
    *why = facts->max_work_group < SIDE * SIDE ? "the device's work-groups are too small"
                                               : "the device has too little local memory";
    return facts->max_work_group >= SIDE * SIDE && facts->local_bytes >= gpu_local_bytes(EACH);
}

static bool blas_fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    *why = !facts->blas                            ? "CLBlast may not be used"
           : facts->max_alloc_bytes > most_of_blas ? "CLBlast counts elements in 32 bits"
                                                   : "CLBlast multiplies two matrices of f32 "
                                                     "and does nothing else";
    return facts->blas && facts->max_alloc_bytes <= most_of_blas && p->a->dtype == QN_F32 &&
           p->b->dtype == QN_F32 && p->c->dtype == QN_F32 && batch_of(p) == 1 &&
           !p->epilogue.activation && !p->epilogue.residual;
}

static void add_cost_of_parts(const struct layout *layout, int64_t count, struct qn_cost *cost)
{
    cost->launches = 1;
    if (layout->parts == 1)
        return;
    cost->launches = 2;
    cost->scratch = layout->parts * count * (int64_t)sizeof(float);
    cost->bytes += 2 * (double)cost->scratch;
}

static void add_cost(const struct qn_matmul *p, struct qn_cost *cost)
{
    const struct qn_operand *operands[] = {p->a, p->b, p->c, p->bias, p->epilogue.residual};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        cost->bytes += operands[i] ? (double)qn_operand_bytes(operands[i]) : 0;
    cost->flops = 2.0 * (double)count_of(p) * (double)p->k;
}

static void blas_cost(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    (void)call;
    add_cost(p, cost);
    cost->launches = p->bias ? 2 : 1;
    memcpy(cost->blas, (const int64_t[]){p->m, p->n, p->k}, sizeof cost->blas);
}

static void own_cost(const struct qn_call *call, const struct qn_matmul *p, bool cpu,
                     struct qn_cost *cost)
{
    const struct layout layout = layout_of(call, p, cpu);
    add_cost(p, cost);
    add_cost_of_parts(&layout, count_of(p), cost);
}

static void cpu_cost(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    own_cost(call, p, true, cost);
}

static void gpu_cost(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    own_cost(call, p, false, cost);
}

void qn_matmul_tiled_cost(const struct qn_facts *facts, const struct qn_matmul *p,
                          struct qn_tile tile, struct qn_cost *cost)
{
    const struct layout layout = layout_of_tiles(facts, p, tile);
    add_cost(p, cost);
    add_cost_of_parts(&layout, count_of(p), cost);
}

/* --- launches --- */

static void set_size(int64_t size[3], int64_t x, int64_t y, int64_t z)
{
    size[0] = x;
    size[1] = y;
    size[2] = z;
}

/* The f32 operand that a launch writes to instead of `result` when it makes parts. */
static const struct qn_operand *target_of(const struct qn_call *call, const struct layout *layout,
                                          const struct qn_operand *result)
{
    return layout->parts > 1 ? &call->scratch : result;
}

static void set_epilogue_options(struct qn_launch *launch, const struct qn_epilogue *epilogue)
{
    const struct qn_operand *residual = epilogue->residual;
    qn_launch_type(launch, "RESIDUAL", residual ? residual : &(struct qn_operand){0});
    qn_launch_option(launch, "HAS_RESIDUAL", residual != NULL);
    qn_launch_option(launch, "ACTIVATION", epilogue->activation);
}

/* Options of the kernels of matmul.cl. */
static void set_options(struct qn_launch *launch, const struct qn_operand *a,
                        const struct qn_operand *c, int64_t vector, int64_t wide, int64_t tall)
{
    qn_launch_type(launch, "A", a);
    qn_launch_type(launch, "C", c);
    qn_launch_option(launch, "QN_V", vector);
    qn_launch_option(launch, "WIDE", wide);
    qn_launch_option(launch, "TALL", tall);
}

qn_status qn_add_parts(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_parts *parts)
{
    if (parts->parts == 1)
        return QN_OK;
    const struct qn_operand *residual = parts->epilogue.residual;
    struct qn_launch launch = {.program = "matmul",
                               .kernel = "add_parts",
                               .args = {QN_BUF(&call->scratch),
                                        QN_BUF(residual ? residual : parts->c), QN_BUF(parts->c),
                                        QN_LONG(parts->count), QN_LONG(parts->parts),
                                        QN_FLOAT(parts->beta), QN_FLOAT(parts->epilogue.slope)}};
    const int64_t vector = qn_vector_width(call->facts);
    set_options(&launch, &call->scratch, parts->c, vector, 1, 1);
    set_epilogue_options(&launch, &parts->epilogue);
    set_size(launch.global, qn_div_up(parts->count, vector), 1, 1);
    set_size(launch.local, ADD_GROUP, 1, 1);
    return qn_emit_launch(emit, &launch);
}

/* What a product is launched with when its layout is known: sums that were split end up in scratch
 * and are finished by qn_add_parts. */
struct ending {
    const struct qn_operand *target;
    struct qn_epilogue epilogue;
    float beta;
};

static struct ending ending_of(const struct qn_call *call, const struct qn_matmul *p,
                               const struct layout *layout)
{
    if (layout->parts > 1)
        return (struct ending){.target = &call->scratch};
    return (struct ending){p->c, p->epilogue, p->beta};
}

static void set_product_options(struct qn_launch *launch, const struct qn_matmul *p,
                                const struct ending *ending)
{
    qn_launch_type(launch, "A", p->a);
    qn_launch_type(launch, "B", p->b);
    qn_launch_type(launch, "BIAS", p->bias ? p->bias : &(struct qn_operand){0});
    qn_launch_type(launch, "C", ending->target);
    qn_launch_option(launch, "A_T", p->trans_a);
    qn_launch_option(launch, "B_T", p->trans_b);
    qn_launch_option(launch, "HAS_BIAS", p->bias != NULL);
    set_epilogue_options(launch, &ending->epilogue);
}

static void set_block_options(struct qn_launch *launch, const struct qn_facts *facts)
{
    const struct block *block = block_of(facts);
    const struct cpu_tile *tile = cpu_tile_of(facts->vector_width);
    qn_launch_option(launch, "QN_V", facts->vector_width);
    qn_launch_option(launch, "MR", tile->rows);
    qn_launch_option(launch, "NV", tile->vectors);
    qn_launch_option(launch, "BAND", block->band);
    qn_launch_option(launch, "MC", block->m);
    qn_launch_option(launch, "NC", most_columns(block, facts->vector_width));
    qn_launch_option(launch, "KC", block->k);
}

/* The packed bytes of a block of matmul_cpu: twice as many elements of k in two bytes each, or as
 * many where one operand has two factors. */
static void set_tile_options(struct qn_launch *launch, const struct qn_facts *facts,
                             const struct qn_matmul *p)
{
    const struct block *block = block_of(facts);
    qn_launch_option(launch, "QN_V", TILES_V);
    qn_launch_option(launch, "MC", block->m);
    qn_launch_option(launch, "NC",
                     qn_round_up(most_columns(block, facts->vector_width), panel_of(TILES_V)));
    qn_launch_option(launch, "KC", 2 * block->k / (factors_of(p->a) * factors_of(p->b)));
}

static qn_status launch_cpu(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_matmul *p, const struct layout *layout, bool tiles)
{
    const struct ending ending = ending_of(call, p, layout);
    const struct qn_operand *residual = ending.epilogue.residual;
    struct qn_launch launch = {
        .program = tiles ? "matmul_tiles_cpu" : "matmul_cpu",
        .kernel = tiles ? "matmul_tiles_cpu" : "matmul_cpu",
        .args = {QN_BUF(p->a), QN_BUF(p->b), QN_BUF(p->bias ? p->bias : p->b),
                 QN_BUF(residual ? residual : p->b), QN_BUF(ending.target), QN_LONG(p->m),
                 QN_LONG(p->n), QN_LONG(p->k), QN_LONG(layout->tile_m), QN_LONG(layout->tile_n),
                 QN_LONG(layout->part), QN_FLOAT(ending.beta), QN_FLOAT(ending.epilogue.slope)}};
    set_product_options(&launch, p, &ending);
    if (tiles)
        set_tile_options(&launch, call->facts, p);
    else
        set_block_options(&launch, call->facts);
    set_size(launch.global, qn_div_up(p->n, layout->tile_n),
             batch_of(p) * qn_div_up(p->m, layout->tile_m), layout->parts);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_tiled(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_matmul *p, const struct layout *layout,
                            struct qn_launch *launch)
{
    const struct ending ending = ending_of(call, p, layout);
    const struct qn_operand *residual = ending.epilogue.residual;
    const struct qn_arg args[] = {QN_BUF(p->a),
                                  QN_BUF(p->b),
                                  QN_BUF(p->bias ? p->bias : p->b),
                                  QN_BUF(residual ? residual : p->b),
                                  QN_BUF(ending.target),
                                  QN_LONG(p->m),
                                  QN_LONG(p->n),
                                  QN_LONG(p->k),
                                  QN_LONG(layout->part),
                                  QN_FLOAT(ending.beta),
                                  QN_FLOAT(ending.epilogue.slope)};
    memcpy(launch->args, args, sizeof args);
    set_product_options(launch, p, &ending);
    set_size(launch->global, batch_of(p) * qn_div_up(p->m, layout->tile_m) * launch->local[0],
             qn_div_up(p->n, layout->tile_n) * launch->local[1], layout->parts);
    return qn_emit_launch(emit, launch);
}

static qn_status launch_gpu(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_matmul *p, const struct layout *layout)
{
    struct qn_launch launch = {
        .program = "matmul_gpu", .kernel = "matmul_gpu", .local = {SIDE, SIDE, 1}};
    qn_launch_option(&launch, "QN_ROWS", each_of(call, p));
    qn_launch_option(&launch, "QN_COLUMNS", each_of(call, p));
    return emit_tiled(emit, call, p, layout, &launch);
}

static qn_status fill_with_bias(struct qn_emit *emit, const struct qn_call *call,
                                const struct qn_matmul *p)
{
    struct qn_launch launch = {
        .program = "matmul",
        .kernel = "fill_rows",
        .args = {QN_BUF(p->bias), QN_BUF(p->c), QN_LONG(p->m), QN_LONG(p->n)}};
    const int64_t vector = qn_vector_width(call->facts);
    set_options(&launch, p->bias, p->c, vector, 1, 1);
    set_epilogue_options(&launch, &no_epilogue);
    set_size(launch.global, qn_div_up(p->n, vector), qn_row_range(p->m), 1);
    set_size(launch.local, ADD_GROUP, 1, 1);
    return qn_emit_launch(emit, &launch);
}

static qn_status blas_emit(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_matmul *p)
{
    if (p->bias)
        QN_TRY(fill_with_bias(emit, call, p));
    return qn_emit_gemm(emit, &(struct qn_gemm){.m = p->m,
                                                .n = p->n,
                                                .k = p->k,
                                                .trans_a = p->trans_a,
                                                .trans_b = p->trans_b,
                                                .a = p->a,
                                                .b = p->b,
                                                .c = p->c,
                                                .beta = p->bias ? 1 : p->beta});
}

static qn_status finish(struct qn_emit *emit, const struct qn_call *call, const struct qn_matmul *p,
                        const struct layout *layout)
{
    return qn_add_parts(emit, call,
                        &(struct qn_parts){layout->parts, count_of(p), p->c, p->beta, p->epilogue});
}

static qn_status emit_for_cpu(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_matmul *p, bool tiles)
{
    const struct layout layout = layout_of(call, p, true);
    QN_TRY(launch_cpu(emit, call, p, &layout, tiles));
    return finish(emit, call, p, &layout);
}

static qn_status cpu_emit(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_matmul *p)
{
    return emit_for_cpu(emit, call, p, false);
}

static qn_status tiles_emit(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_matmul *p)
{
    return emit_for_cpu(emit, call, p, true);
}

static qn_status gpu_emit(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_matmul *p)
{
    const struct layout layout = layout_of(call, p, false);
    QN_TRY(launch_gpu(emit, call, p, &layout));
    return finish(emit, call, p, &layout);
}

const struct qn_matmul_way qn_matmul_cpu = {cpu_fits, cpu_cost, cpu_emit};
const struct qn_matmul_way qn_matmul_tiles = {tiles_fit, cpu_cost, tiles_emit};
const struct qn_matmul_way qn_matmul_gpu = {gpu_fits, gpu_cost, gpu_emit};
const struct qn_matmul_way qn_matmul_blas = {blas_fits, blas_cost, blas_emit};

qn_status qn_matmul_tiled_emit(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_matmul *p, struct qn_tile tile,
                               struct qn_launch *launch)
{
    const struct layout layout = layout_of_tiles(call->facts, p, tile);
    QN_TRY(emit_tiled(emit, call, p, &layout, launch));
    return finish(emit, call, p, &layout);
}

/* --- column sums --- */

static struct layout layout_of_sums(const struct qn_call *call, const struct qn_column_sums *sums)
{
    const struct qn_facts *facts = call->facts;
    struct layout layout = {1, call->cpu ? facts->vector_width : SUMS_WIDE * EACH, 0, 0};
    split(&layout, facts, call->cpu, tiles_of(&layout, 1, sums->n), sums->n, sums->m,
          call->cpu ? PART_ROWS : SUMS_ROWS);
    return layout;
}

void qn_column_sums_cost(const struct qn_call *call, const struct qn_column_sums *sums,
                         struct qn_cost *cost)
{
    const struct layout layout = layout_of_sums(call, sums);
    cost->bytes = (double)(qn_operand_bytes(sums->a) + qn_operand_bytes(sums->c));
    cost->flops = (double)sums->m * (double)sums->n;
    add_cost_of_parts(&layout, sums->n, cost);
}

qn_status qn_column_sums_emit(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_column_sums *sums)
{
    const struct layout layout = layout_of_sums(call, sums);
    const struct qn_operand *target = target_of(call, &layout, sums->c);
    const int64_t wide = call->cpu ? 1 : SUMS_WIDE, tall = call->cpu ? 1 : SUMS_TALL;
    struct qn_launch launch = {.program = "matmul",
                               .kernel = "column_sums",
                               .args = {QN_BUF(sums->a), QN_BUF(target), QN_LONG(sums->m),
                                        QN_LONG(sums->n), QN_LONG(layout.part),
                                        QN_FLOAT(layout.parts > 1 ? 0 : sums->beta)}};
    set_options(&launch, sums->a, target, layout.tile_n / wide, wide, tall);
    set_epilogue_options(&launch, &no_epilogue);
    set_size(launch.global, qn_div_up(sums->n, layout.tile_n) * wide, tall, layout.parts);
    set_size(launch.local, wide, tall, 1);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_add_parts(emit, call, &(struct qn_parts){layout.parts, sums->n, sums->c, sums->beta});
}
