/* SPDX-License-Identifier: MIT
 *
 * Matrix products by matrix units. Operands of f16 and bf16 are factors as they are; one of f32 is
 * split into the sum of two, so that its products are as exact as those of the other ways.
 */
#include "op/tile.h"
#include "ops/matmul.h"

#include <stdio.h>

enum { WORD_BYTES = 4 };
/* Of an operand: what a work-item loads lies below 2^32 vectors of 16 bytes from a strip's first
 * (strip_apart of lib/tile_strip.clh). */
static const int64_t most_bytes = INT64_C(1) << 36;
/* Strips that are copied lie in so many stages. */
enum { LEAST_STAGES = 2, MOST_STAGES = 4 };

/* Teams of a work-group and tiles of a team, along both edges; TEAMS of 0: a team's registers do
 * not hold so much. By layout and setting; the smallest first. */
struct grid {
    int64_t teams_m, teams_n, tiles_m, tiles_n;
};
enum { SETTINGS = 3 };
static const struct grid grids[][SETTINGS] = {
    [QN_MATRIX_MMA] = {{2, 2, 2, 4}, {2, 4, 4, 4}, {2, 2, 4, 8}},
    [QN_MATRIX_MFMA] = {{2, 2, 2, 2}, {2, 4, 4, 2}, {2, 2, 4, 4}},
    [QN_MATRIX_WMMA] = {{2, 2, 2, 2}, {2, 4, 4, 2}, {2, 2, 4, 4}},
    [QN_MATRIX_DPAS8] = {{2, 8, 4, 1}, {8, 8, 2, 2}},
    [QN_MATRIX_DPAS16] = {{4, 4, 2, 1}, {8, 4, 2, 2}},
};
const char *const qn_matmul_units_settings[] = {"64x64", "128x128", "128x128-wide", NULL};

/* The types of factors, as the kernels call them. */
static const struct factor {
    const char *name;
    enum qn_matrix_type unit;
} f16 = {"f16", QN_MATRIX_F16}, bf16 = {"bf16", QN_MATRIX_BF16}, tf32 = {"tf32", QN_MATRIX_TF32},
  f32 = {"f32", QN_MATRIX_F32};

/* The narrowest type of which every 16-bit operand is a part. Two factors of bf16 hold 16 bits of a
 * number of f32: enough where the result has no more. */
static const struct factor *factor_of(const struct qn_facts *facts, const struct qn_matmul *p)
{
    const qn_dtype a = p->a->dtype, b = p->b->dtype;
    const bool exact = p->c->dtype == QN_F32 && (a == QN_F32 || b == QN_F32);
    if (a == QN_F16 && b == QN_F16)
        return &f16;
    if (a != QN_F16 && b != QN_F16 && (a == QN_BF16 || b == QN_BF16) && !exact)
        return &bf16;
    return facts->matrix_units & QN_MATRIX_F32 ? &f32 : &tf32;
}

static bool is_split(const struct factor *factor, const struct qn_operand *operand)
{
    return operand->dtype == QN_F32 && factor != &f32;
}

static const struct grid *grid_of(const struct qn_facts *facts, int setting)
{
    return &grids[facts->matrix_layout][setting];
}

static struct qn_tile tile_of(const struct qn_facts *facts, int setting)
{
    const struct qn_tile_layout *tile = qn_tile_layout(facts->matrix_layout);
    const struct grid *grid = grid_of(facts, setting);
    return (struct qn_tile){grid->teams_m * grid->tiles_m * tile->m,
                            grid->teams_n * grid->tiles_n * tile->n};
}

static int64_t work_group_of(const struct qn_facts *facts, int setting)
{
    const struct grid *grid = grid_of(facts, setting);
    return grid->teams_m * grid->teams_n * qn_tile_layout(facts->matrix_layout)->lanes;
}

/* Local memory for strips that are copied. */
static int64_t strip_bytes(const struct qn_facts *facts)
{
    const int64_t sure = facts->local_bytes - QN_STRIPS_COUNTED;
    return facts->matrix_units & QN_MATRIX_STRIPS && sure < QN_STRIPS_BYTES ? QN_STRIPS_BYTES
                                                                            : sure;
}

/* How many strips of each operand there are: several where the device copies factors as they lie
 * and local memory holds them; otherwise one, of words that work-items make. */
static int64_t stages_of(const struct qn_facts *facts, int setting, const struct qn_matmul *p)
{
    const struct qn_tile tile = tile_of(facts, setting);
    const int64_t stages = strip_bytes(facts) / ((tile.m + tile.n) * QN_TILE_DEPTH * WORD_BYTES);
    const bool halves = p->a->dtype != QN_F32 && p->b->dtype == p->a->dtype;
    if (!(facts->matrix_units & QN_MATRIX_COPIES) || !halves || stages < LEAST_STAGES)
        return 1;
    return stages < MOST_STAGES ? stages : MOST_STAGES;
}

static int64_t local_bytes_of(const struct qn_facts *facts, int setting, const struct qn_matmul *p)
{
    const struct qn_tile tile = tile_of(facts, setting);
    const struct factor *factor = factor_of(facts, p);
    const int64_t rows =
        tile.m * (1 + is_split(factor, p->a)) + tile.n * (1 + is_split(factor, p->b));
    return rows * qn_tile_layout(facts->matrix_layout)->pitch * WORD_BYTES;
}

/* Whether the smallest tiles cover the result as well. */
static bool is_oversized(const struct qn_facts *facts, int setting, const struct qn_matmul *p)
{
    const struct qn_tile smallest = tile_of(facts, 0);
    return setting > 0 && p->m <= smallest.m && p->n <= smallest.n;
}

static bool fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    if (!(facts->matrix_units & (int)factor_of(facts, p)->unit))
        *why = "the device has no matrix units for these types";
    else if (grid_of(facts, call->setting)->teams_m == 0)
        *why = "a team of the device holds no such tiles";
    else if (facts->max_work_group < work_group_of(facts, call->setting))
        *why = "the device's work-groups are too small";
    else if (facts->local_bytes < local_bytes_of(facts, call->setting, p))
        *why = "the device has too little local memory";
    else if (p->m * p->k * WORD_BYTES > most_bytes || p->n * p->k * WORD_BYTES > most_bytes)
        *why = "the operands are too large";
    else if (is_oversized(facts, call->setting, p))
        *why = "smaller tiles cover the result";
    else
        return true;
    return false;
}

static void cost_of(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    qn_matmul_tiled_cost(call->facts, p, tile_of(call->facts, call->setting), cost);
}

static qn_status emit_product(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_matmul *p)
{
    const struct qn_facts *facts = call->facts;
    const struct grid *grid = grid_of(facts, call->setting);
    const struct factor *factor = factor_of(facts, p);
    struct qn_launch launch = {.program = "matmul_units",
                               .kernel = "matmul_units",
                               .local = {work_group_of(facts, call->setting), 1, 1}};
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s -DTILE_LAYOUT=%s", factor->name,
             qn_tile_layout(facts->matrix_layout)->name);
    qn_launch_option(&launch, "SPLIT_A", is_split(factor, p->a));
    qn_launch_option(&launch, "SPLIT_B", is_split(factor, p->b));
    qn_launch_option(&launch, "TEAMS_M", grid->teams_m);
    qn_launch_option(&launch, "TEAMS_N", grid->teams_n);
    qn_launch_option(&launch, "TILES_M", grid->tiles_m);
    qn_launch_option(&launch, "TILES_N", grid->tiles_n);
    qn_launch_option(&launch, "STAGES", stages_of(facts, call->setting, p));
    return qn_matmul_tiled_emit(emit, call, p, tile_of(facts, call->setting), &launch);
}

const struct qn_matmul_way qn_matmul_units = {fits, cost_of, emit_product};
