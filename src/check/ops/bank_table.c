/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/info_nce.h"

#include <math.h>

extern const struct qn_op qn_op_bank_table;
extern const struct qn_check_op qn_check_bank_table;

/* Samples of the bank, and those that are fresh: `fresh` from `start` on. */
struct bank {
    const struct qn_reference *r;
    int64_t samples, each, features, fresh, start, tile;
};

static struct bank bank_of(const struct qn_reference *r)
{
    const struct qn_operand *in = r->call->in;
    struct bank b = {.r = r,
                     .samples = in[QN_TABLE_QUERIES].shape.dim[0],
                     .features = in[QN_TABLE_QUERIES].shape.dim[1],
                     .fresh = r->call->batch};
    b.tile = qn_table_tile(b.samples);
    b.each = in[QN_TABLE_PASSAGES].shape.dim[0] / b.samples;
    b.start = (int64_t)r->control->position[0] % b.samples;
    return b;
}

static bool is_fresh(const struct bank *b, int64_t i)
{
    return (i - b->start + b->samples) % b->samples < b->fresh;
}

static bool is_touched(const struct bank *b, int64_t tile)
{
    bool any = false;
    for (int64_t i = tile * b->tile; i < (tile + 1) * b->tile && i < b->samples; i++)
        any |= is_fresh(b, i);
    return any;
}

static double score(const struct bank *b, int64_t query, int64_t passage)
{
    const struct qn_bank_table_attr *attr = b->r->call->attr;
    const double *q = b->r->in[QN_TABLE_QUERIES] + query * b->features;
    const double *p = b->r->in[QN_TABLE_PASSAGES] + passage * b->features;
    double sum = 0;
    for (int64_t k = 0; k < b->features; k++)
        sum += q[k] * p[k];
    return sum * (double)attr->scale;
}

/* Whether passage `within` of sample j counts for sample i, or j's query for i's own passage. */
static bool counts(const struct bank *b, int64_t i, int64_t j, int64_t within)
{
    const struct qn_bank_table_attr *attr = b->r->call->attr;
    const double *id = b->r->in[QN_TABLE_IDS];
    const bool twin = attr->duplicates && within == 0 && i != j && id[i] == id[j];
    return id[i] >= 0 && id[j] >= 0 && !twin;
}

/* What sample i, or its own passage, knows of a tile. */
static void learn(const struct bank *b, bool back, int64_t i, int64_t tile)
{
    const int64_t each = back ? 1 : b->each, tiles = qn_table_tiles(b->samples);
    double top = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t c = tile * b->tile * each; c < (tile + 1) * b->tile * each; c++) {
            if (c / each >= b->samples || !counts(b, i, c / each, c % each))
                continue;
            const double x = back ? score(b, c, i * b->each) : score(b, i, c);
            if (pass == 0)
                top = fmax(top, x);
            else
                sum += exp(x - top);
        }
    double *to = b->r->out[0] + (1 + 2 * (tile + (back ? tiles : 0))) * b->samples + i;
    to[0] = sum > 0 ? top : 0;
    to[b->samples] = sum;
}

static void reference(const struct qn_reference *r)
{
    const struct qn_bank_table_attr *attr = r->call->attr;
    const struct bank b = bank_of(r);
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[QN_TABLE_BEFORE]); i++)
        r->out[0][i] = r->in[QN_TABLE_BEFORE][i];
    for (int64_t i = 0; i < b.samples; i++)
        for (int64_t tile = 0; tile < qn_table_tiles(b.samples); tile++) {
            if (!is_fresh(&b, i) && !is_touched(&b, tile))
                continue;
            for (int back = 0; back < 1 + attr->symmetric; back++)
                learn(&b, back, i, tile);
            if (i / b.tile == tile)
                r->out[0][i] = counts(&b, i, i, 0) ? score(&b, i, i * b.each) : 0;
        }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = call->in[QN_TABLE_BEFORE].shape};
}

/* Scores of all samples with as many tiles as fresh ones may be in, and of these with all. */
static double flops(const struct qn_call *call, const char *group)
{
    (void)group;
    const struct qn_bank_table_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    const int64_t samples = in[QN_TABLE_QUERIES].shape.dim[0], tiles = qn_table_tiles(samples);
    const int64_t tile = qn_table_tile(samples);
    const int64_t reach = (call->batch + tiles * tile - samples + tile - 2) / tile + 1;
    const double touched = (double)tile * (double)(reach < tiles ? reach : tiles);
    const double passages = (double)in[QN_TABLE_PASSAGES].shape.dim[0], m = (double)samples;
    const double forth = passages * (touched + (double)call->batch);
    const double back = passages * touched + (double)call->batch * m;
    return (forth + (attr->symmetric ? back : 0)) *
           (2 * (double)in[QN_TABLE_QUERIES].shape.dim[1] + 12);
}

/* --- cases --- */

#define VECTORS(n, d)                                                                              \
    {                                                                                              \
        .rank = 2, .dim = {(n), (d)}, .a = 0.5                                                     \
    }
/* Some are the same, some nothing. */
#define IDS(m)                                                                                     \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(m)}, .fill = QN_FILL_INTEGER,  \
        .a = -9, .b = 60                                                                           \
    }
#define TABLE(rows, m)                                                                             \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {(rows), (m) }                   \
    }
#define BANK(m, p, d, rows)                                                                        \
    {                                                                                              \
        VECTORS(m, d), VECTORS((m) * (p), d), IDS(m), TABLE(rows, m)                               \
    }
#define ATTR(...)                                                                                  \
    &(const struct qn_bank_table_attr)                                                             \
    {                                                                                              \
        .scale = 1, __VA_ARGS__                                                                    \
    }
#define AT(row)                                                                                    \
    &(const struct qn_control)                                                                     \
    {                                                                                              \
        .position = {row}, .loss_scale = 1                                                         \
    }

static const struct qn_check_case cases[] = {
    {"one tile", BANK(10, 1, 4, 3), ATTR(0), .rows_per_sample = 5, .control = AT(3), .small = true},
    {"all samples", BANK(7, 1, 5, 5), ATTR(.symmetric = 1), .control = AT(4), .small = true},
    {"a full tile", BANK(64, 1, 16, 3), ATTR(0), .rows_per_sample = 64, .control = AT(63)},
    {"the second of three tiles", BANK(130, 1, 5, 7), ATTR(.duplicates = 1), .rows_per_sample = 10,
     .control = AT(70)},
    {"two tiles, both ways", BANK(130, 1, 5, 13), ATTR(.symmetric = 1, .duplicates = 1),
     .rows_per_sample = 10, .control = AT(60)},
    {"round the end", BANK(129, 1, 3, 13), ATTR(.symmetric = 1), .rows_per_sample = 3,
     .control = AT(127)},
    {"three tiles round the end", BANK(195, 1, 3, 9), ATTR(.duplicates = 1), .rows_per_sample = 39,
     .control = AT(191)},
    {"hard negatives, both ways", BANK(70, 3, 4, 9), ATTR(.symmetric = 1, .duplicates = 1),
     .rows_per_sample = 10, .control = AT(62)},
    {"one sample of a prime number", BANK(67, 2, 7, 5), ATTR(0), .rows_per_sample = 67,
     .control = AT(66)},
    {"temperature", BANK(66, 1, 7, 5), &(const struct qn_bank_table_attr){.scale = 5},
     .rows_per_sample = 33, .control = AT(0)},
    {"blocks of columns", BANK(2310, 1, 2, 149), ATTR(.symmetric = 1), .rows_per_sample = 2,
     .control = AT(2000)},
    {"tiles of 128", BANK(8200, 1, 1, 131), ATTR(0), .rows_per_sample = 8200, .control = AT(8199)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"other features", {VECTORS(7, 5), VECTORS(7, 4), IDS(7), TABLE(3, 7)}, ATTR(0)},
    {"passages that are no multiple", {VECTORS(7, 5), VECTORS(8, 5), IDS(7), TABLE(3, 7)}, ATTR(0)},
    {"a table of one side", BANK(7, 1, 5, 3), ATTR(.symmetric = 1)},
    {"too few ids", {VECTORS(7, 5), VECTORS(7, 5), IDS(6), TABLE(3, 7)}, ATTR(0)},
    {"no scale", BANK(7, 1, 5, 3), &(const struct qn_bank_table_attr){.scale = 0}},
    {0},
};

const struct qn_check_op qn_check_bank_table = {.op = &qn_op_bank_table,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = outputs,
                                                .flops = flops};
