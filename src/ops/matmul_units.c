/* SPDX-License-Identifier: MIT
 *
 * Matrix products by matrix units. Operands of f16 and bf16 are factors as they are; one of f32 is
 * split into the sum of two, so that its products are as exact as those of the other ways.
 */
#include "ops/matmul.h"

#include <stdio.h>

/* As in lib/tile_fragment.clh and matmul_units.cl. */
enum { LANES = 32, TILE_M = 16, TILE_N = 8, PITCH = 20, WORD_BYTES = 4 };

/* Tiles of a team, and teams of a work-group, along both edges; the smallest first. */
struct grid {
    int64_t tiles_m, tiles_n, teams_m, teams_n;
};
static const struct grid grids[] = {{2, 4, 2, 2}, {4, 4, 2, 4}};
const char *const qn_matmul_units_settings[] = {"64x64", "128x128", NULL};

/* The types of factors, as the kernels call them. */
static const struct factor {
    const char *name;
    enum qn_matrix_type unit;
} f16 = {"f16", QN_MATRIX_F16}, bf16 = {"bf16", QN_MATRIX_BF16}, tf32 = {"tf32", QN_MATRIX_TF32};

/* The narrowest type of which every 16-bit operand is a part. Two factors of bf16 hold 16 bits of a
 * number of f32: enough where the result has no more. */
static const struct factor *factor_of(const struct qn_matmul *p)
{
    const qn_dtype a = p->a->dtype, b = p->b->dtype;
    const bool exact = p->c->dtype == QN_F32 && (a == QN_F32 || b == QN_F32);
    if (a == QN_F16 && b == QN_F16)
        return &f16;
    if (a != QN_F16 && b != QN_F16 && (a == QN_BF16 || b == QN_BF16) && !exact)
        return &bf16;
    return &tf32;
}

static bool is_split(const struct qn_operand *operand)
{
    return operand->dtype == QN_F32;
}

static struct qn_tile tile_of(const struct grid *grid)
{
    return (struct qn_tile){grid->teams_m * grid->tiles_m * TILE_M,
                            grid->teams_n * grid->tiles_n * TILE_N};
}

static int64_t work_group_of(const struct grid *grid)
{
    return grid->teams_m * grid->teams_n * LANES;
}

static int64_t local_bytes_of(const struct grid *grid, const struct qn_matmul *p)
{
    const struct qn_tile tile = tile_of(grid);
    const int64_t rows = tile.m * (1 + is_split(p->a)) + tile.n * (1 + is_split(p->b));
    return rows * PITCH * WORD_BYTES;
}

/* Whether tiles of a smaller grid cover the result as well. */
static bool is_oversized(const struct grid *grid, const struct qn_matmul *p)
{
    const struct qn_tile smaller = tile_of(grid > grids ? grid - 1 : grid);
    return grid > grids && p->m <= smaller.m && p->n <= smaller.n;
}

static bool fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    const struct grid *grid = &grids[call->setting];
    if (!(facts->matrix_units & (int)factor_of(p)->unit))
        *why = "the device has no matrix units for these types";
    else if (facts->max_work_group < work_group_of(grid))
        *why = "the device's work-groups are too small";
    else if (facts->local_bytes < local_bytes_of(grid, p))
        *why = "the device has too little local memory";
    else if (is_oversized(grid, p))
        *why = "smaller tiles cover the result";
    else
        return true;
    return false;
}

static void cost_of(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    qn_matmul_tiled_cost(call->facts, p, tile_of(&grids[call->setting]), cost);
}

static qn_status emit_product(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_matmul *p)
{
    const struct grid *grid = &grids[call->setting];
    struct qn_launch launch = {
        .program = "matmul_units", .kernel = "matmul_units", .local = {work_group_of(grid), 1, 1}};
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s", factor_of(p)->name);
    qn_launch_option(&launch, "SPLIT_A", is_split(p->a));
    qn_launch_option(&launch, "SPLIT_B", is_split(p->b));
    qn_launch_option(&launch, "TEAMS_M", grid->teams_m);
    qn_launch_option(&launch, "TEAMS_N", grid->teams_n);
    qn_launch_option(&launch, "TILES_M", grid->tiles_m);
    qn_launch_option(&launch, "TILES_N", grid->tiles_n);
    return qn_matmul_tiled_emit(emit, call, p, tile_of(grid), &launch);
}

const struct qn_matmul_way qn_matmul_units = {fits, cost_of, emit_product};
