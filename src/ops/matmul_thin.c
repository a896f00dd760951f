/* SPDX-License-Identifier: MIT
 *
 * Matrix products on CPUs where one operand has few rows or columns: it is packed whole, the other
 * is read once, where it lies.
 */
#include "ops/matmul.h"

#include "base/shape.h"

/* Floats of the packed operand and of the sums of a tile; columns of a tile at least, and
 * work-groups for each compute unit that are aimed at. */
enum { PACK = 6144, SUMS = 2048, LEAST_TILE = 128, GROUPS_PER_UNIT = 2 };

struct thin {
    struct qn_matmul product; /* its m is the few */
    bool exchanged;           /* c is stored (n, m) */
};

/* The product with its operands in the order in which the left one is the thinner. */
static struct thin thin_of(const struct qn_matmul *p)
{
    struct thin thin = {*p, p->n < p->m};
    if (thin.exchanged) {
        thin.product.m = p->n;
        thin.product.n = p->m;
        thin.product.a = p->b;
        thin.product.b = p->a;
        thin.product.trans_a = !p->trans_b;
        thin.product.trans_b = !p->trans_a;
    }
    return thin;
}

static int64_t rows_of(const struct qn_matmul *p)
{
    int64_t rows = 1;
    while (rows < p->m)
        rows *= 2;
    return rows;
}

/* All rows, and a power of two of columns. */
static struct qn_tile tile_of(const struct qn_facts *facts, const struct qn_matmul *p)
{
    const int64_t batch = p->batch ? p->batch : 1;
    struct qn_tile tile = {p->m, SUMS / rows_of(p)};
    while (tile.n > LEAST_TILE &&
           batch * qn_div_up(p->n, tile.n) < GROUPS_PER_UNIT * (int64_t)facts->compute_units)
        tile.n /= 2;
    return tile;
}

static bool fits(const struct qn_call *call, const struct qn_matmul *p, const char **why)
{
    const struct qn_facts *facts = call->facts;
    if (!facts->cpu)
        *why = "made for CPUs: one work-item per work-group";
    else if (facts->local_bytes < (PACK + SUMS) * (int64_t)sizeof(float))
        *why = "the device has too little local memory";
    else if (thin_of(p).product.m > facts->vector_width)
        *why = "neither operand is thin";
    else
        return true;
    return false;
}

static void cost_of(const struct qn_call *call, const struct qn_matmul *p, struct qn_cost *cost)
{
    const struct thin thin = thin_of(p);
    qn_matmul_tiled_cost(call->facts, &thin.product, tile_of(call->facts, &thin.product), cost);
}

static qn_status emit_product(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_matmul *p)
{
    const struct thin thin = thin_of(p);
    const struct qn_tile tile = tile_of(call->facts, &thin.product);
    const int64_t rows = rows_of(&thin.product), v = call->facts->vector_width;
    struct qn_launch launch = {
        .program = "matmul_thin", .kernel = "matmul_thin", .local = {1, 1, 1}};
    qn_launch_option(&launch, "QN_V", v);
    qn_launch_option(&launch, "C_T", thin.exchanged);
    qn_launch_option(&launch, "ROWS", rows);
    qn_launch_option(&launch, "TILE_N", tile.n);
    qn_launch_option(&launch, "DEPTH", PACK / rows / (2 * v) * 2 * v);
    return qn_matmul_tiled_emit(emit, call, &thin.product, tile, &launch);
}

const struct qn_matmul_way qn_matmul_thin = {fits, cost_of, emit_product};
