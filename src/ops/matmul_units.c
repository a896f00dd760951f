/* SPDX-License-Identifier: MIT
 *
 * As in matmul.c, a product with a long k and few tiles is split into parts.
 */
#include "ops/matmul_units.h"

#include "base/log.h"
#include "base/shape.h"

#include <stdio.h>

/* As in lib/tile_fragment.clh and matmul_units.cl. */
enum { LANES = 32, TILE_M = 16, TILE_N = 8, PITCH = 20, WORD_BYTES = 4 };

/* Tiles of a team, and teams of a work-group, along both edges. */
struct grid {
    int64_t tiles_m, tiles_n, teams_m, teams_n;
};
static const struct grid grids[] = {{4, 4, 2, 4}, {2, 4, 2, 2}};
const char *const qn_matmul_units_settings[] = {"128x128", "64x64", NULL};

/* The types of the factors, as the kernels call them. */
static const struct factor {
    const char *option;
    int unit;
} f16 = {" -DUNIT_TYPE=f16", QN_MATRIX_F16}, bf16 = {" -DUNIT_TYPE=bf16", QN_MATRIX_BF16},
  tf32 = {" -DUNIT_TYPE=tf32", QN_MATRIX_TF32};

/* The narrowest type of which every 16-bit operand is a part. */
static const struct factor *factor_of(const struct qn_matmul *p)
{
    const qn_dtype a = p->a->dtype, b = p->b->dtype;
    if (a == QN_F16 && b == QN_F16)
        return &f16;
    if (a != QN_F16 && b != QN_F16 && (a == QN_BF16 || b == QN_BF16))
        return &bf16;
    return &tf32;
}

static bool is_split(const struct qn_operand *operand)
{
    return operand->dtype == QN_F32;
}

struct layout {
    const struct grid *grid;
    int64_t tile_m, tile_n, work_group, local_bytes; /* of a work-group */
    int64_t part, parts;                             /* of k */
};

static struct layout layout_of(const struct qn_call *call, const struct qn_matmul *p)
{
    const struct grid *grid = &grids[call->setting];
    struct layout l = {.grid = grid,
                       .tile_m = grid->teams_m * grid->tiles_m * TILE_M,
                       .tile_n = grid->teams_n * grid->tiles_n * TILE_N};
    const int64_t rows = l.tile_m * (1 + is_split(p->a)) + l.tile_n * (1 + is_split(p->b));
    const int64_t tiles = qn_div_up(p->m, l.tile_m) * qn_div_up(p->n, l.tile_n);
    l.work_group = grid->teams_m * grid->teams_n * LANES;
    l.local_bytes = rows * PITCH * WORD_BYTES;
    l.part = qn_matmul_part(call->facts, p, tiles);
    l.parts = qn_div_up(p->k, l.part);
    return l;
}

bool qn_matmul_units_fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct layout layout = layout_of(call, p);
    const bool has = call->facts->matrix_units & factor_of(p)->unit;
    *why = !has ? "the device has no matrix units for these types"
           : call->facts->max_work_group < layout.work_group
               ? "the device's work-groups are too small"
               : "the device has too little local memory";
    return has && call->facts->max_work_group >= layout.work_group &&
           call->facts->local_bytes >= layout.local_bytes;
}

static int64_t count_of(const struct qn_matmul *p)
{
    return p->m * p->n;
}

static double bytes_of(const struct qn_matmul *p)
{
    const int64_t bias = p->bias ? qn_operand_bytes(p->bias) : 0;
    return (double)(qn_operand_bytes(p->a) + qn_operand_bytes(p->b) + qn_operand_bytes(p->c) +
                    bias);
}

void qn_matmul_units_cost(const struct qn_call *call, const struct qn_matmul *p,
                          struct qn_cost *cost)
{
    const struct layout layout = layout_of(call, p);
    cost->flops = 2.0 * (double)count_of(p) * (double)p->k;
    cost->bytes = bytes_of(p);
    cost->launches = layout.parts > 1 ? 2 : 1;
    if (layout.parts == 1)
        return;
    cost->scratch = layout.parts * count_of(p) * (int64_t)sizeof(float);
    cost->bytes += 2 * (double)cost->scratch;
}

static void set_options(struct qn_launch *launch, const struct qn_matmul *p,
                        const struct layout *layout, const struct qn_operand *target)
{
    qn_launch_type(launch, "A", p->a);
    qn_launch_type(launch, "B", p->b);
    qn_launch_type(launch, "BIAS", p->bias ? p->bias : &(struct qn_operand){0});
    qn_launch_type(launch, "C", target);
    qn_launch_option(launch, "A_T", p->trans_a);
    qn_launch_option(launch, "B_T", p->trans_b);
    qn_launch_option(launch, "HAS_BIAS", p->bias != NULL);
    qn_launch_option(launch, "SPLIT_A", is_split(p->a));
    qn_launch_option(launch, "SPLIT_B", is_split(p->b));
    qn_launch_option(launch, "TEAMS_M", layout->grid->teams_m);
    qn_launch_option(launch, "TEAMS_N", layout->grid->teams_n);
    qn_launch_option(launch, "TILES_M", layout->grid->tiles_m);
    qn_launch_option(launch, "TILES_N", layout->grid->tiles_n);
}

qn_status qn_matmul_units_emit(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_matmul *p)
{
    const struct layout layout = layout_of(call, p);
    const struct qn_operand *target = layout.parts > 1 ? &call->scratch : p->c;
    struct qn_launch launch = {
        .program = "matmul_units",
        .kernel = "matmul_units",
        .args = {QN_BUF(p->a), QN_BUF(p->b), QN_BUF(p->bias ? p->bias : p->b), QN_BUF(target),
                 QN_LONG(p->m), QN_LONG(p->n), QN_LONG(p->k), QN_LONG(layout.part),
                 QN_FLOAT(layout.parts > 1 ? 0 : p->beta)},
        .global = {qn_div_up(p->m, layout.tile_m) * layout.work_group,
                   qn_div_up(p->n, layout.tile_n), layout.parts},
        .local = {layout.work_group, 1, 1}};
    snprintf(launch.options, sizeof launch.options, "%s", factor_of(p)->option);
    set_options(&launch, p, &layout, target);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_add_parts(emit, call, &(struct qn_parts){layout.parts, count_of(p), p->c, p->beta});
}
