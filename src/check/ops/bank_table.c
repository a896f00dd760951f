/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/info_nce.h"

#include <math.h>

extern const struct qn_op qn_op_bank_table;
extern const struct qn_check_op qn_check_bank_table;

/* A ring of `count`, and those that are fresh: from `start` on. */
struct ring {
    int64_t count, start, fresh, tile;
};

/* Samples of the bank, and the queries that it has of the newest. */
struct bank {
    const struct qn_reference *r;
    struct ring samples, queries;
    int64_t each, features;
    int64_t stored; /* since the rings were empty: the newest sample is number stored - 1 */
};

static struct ring ring_of(int64_t count, int64_t start, int64_t fresh)
{
    return (struct ring){count, start % count, fresh, qn_table_tile(count)};
}

static struct bank bank_of(const struct qn_reference *r)
{
    const struct qn_operand *in = r->call->in;
    const int64_t samples = in[QN_TABLE_IDS].shape.dim[0];
    const int64_t queries = in[QN_TABLE_QUERIES].shape.dim[0];
    const int64_t position = (int64_t)r->control->position[0];
    const int64_t fresh = r->call->batch < queries ? r->call->batch : queries;
    struct bank b = {.r = r,
                     .samples = ring_of(samples, position, fresh),
                     .queries = ring_of(queries, position, fresh),
                     .features = in[QN_TABLE_QUERIES].shape.dim[1],
                     .each = in[QN_TABLE_PASSAGES].shape.dim[0] / samples,
                     .stored = position + fresh};
    return b;
}

static bool is_fresh(const struct ring *r, int64_t i)
{
    return (i - r->start + r->count) % r->count < r->fresh;
}

static bool is_touched(const struct ring *r, int64_t tile)
{
    bool any = false;
    for (int64_t i = tile * r->tile; i < (tile + 1) * r->tile && i < r->count; i++)
        any |= is_fresh(r, i);
    return any;
}

/* The place of the sample whose query is row `row`: the newest whose number leaves `row` when it is
 * divided by the number of queries. */
static int64_t place_of(const struct bank *b, int64_t row)
{
    const int64_t newest = b->stored - 1, rows = b->queries.count, places = b->samples.count;
    if (rows == places)
        return row;
    const int64_t number = newest - ((newest - row) % rows + rows) % rows;
    return (number + places) % places;
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

/* What row i of the queries, or its own passage, knows of a tile of passages, or of queries. */
static void learn(const struct bank *b, bool back, int64_t i, int64_t tile)
{
    const struct ring *seen = back ? &b->queries : &b->samples;
    const int64_t each = back ? 1 : b->each, own = place_of(b, i);
    double top = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t c = tile * seen->tile * each; c < (tile + 1) * seen->tile * each; c++) {
            if (c / each >= seen->count ||
                !counts(b, own, back ? place_of(b, c) : c / each, c % each))
                continue;
            const double x = back ? score(b, c, own * b->each) : score(b, i, c);
            if (pass == 0)
                top = fmax(top, x);
            else
                sum += exp(x - top);
        }
    const int64_t first = 1 + (back ? 2 * qn_table_tiles(b->samples.count) : 0);
    double *to = b->r->out[0] + (first + 2 * tile) * b->queries.count + i;
    to[0] = sum > 0 ? top : 0;
    to[b->queries.count] = sum;
}

static void learn_side(const struct bank *b, bool back)
{
    const struct ring *seen = back ? &b->queries : &b->samples;
    for (int64_t i = 0; i < b->queries.count; i++)
        for (int64_t tile = 0; tile < qn_table_tiles(seen->count); tile++) {
            const int64_t own = place_of(b, i);
            if (!is_fresh(&b->queries, i) && !is_touched(seen, tile))
                continue;
            learn(b, back, i, tile);
            if (!back && own / seen->tile == tile)
                b->r->out[0][i] = counts(b, own, own, 0) ? score(b, i, own * b->each) : 0;
        }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_bank_table_attr *attr = r->call->attr;
    const struct bank b = bank_of(r);
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[QN_TABLE_BEFORE]); i++)
        r->out[0][i] = r->in[QN_TABLE_BEFORE][i];
    for (int back = 0; back < 1 + attr->symmetric; back++)
        learn_side(&b, back);
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = call->in[QN_TABLE_BEFORE].shape};
}

/* Entries of the tiles that the fresh ones of a ring may be in. */
static double touched(int64_t count, int64_t fresh)
{
    const int64_t tiles = qn_table_tiles(count), tile = qn_table_tile(count);
    const int64_t reach = (fresh + tiles * tile - count + tile - 2) / tile + 1;
    return (double)tile * (double)(reach < tiles ? reach : tiles);
}

/* Scores of all queries with as many tiles as fresh ones may be in, and of the fresh with all. */
static double flops(const struct qn_call *call, const char *group)
{
    (void)group;
    const struct qn_bank_table_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    const int64_t samples = in[QN_TABLE_IDS].shape.dim[0];
    const int64_t queries = in[QN_TABLE_QUERIES].shape.dim[0];
    const int64_t fresh = call->batch < queries ? call->batch : queries;
    const double each = (double)(in[QN_TABLE_PASSAGES].shape.dim[0] / samples);
    const double forth =
        each * ((double)queries * touched(samples, fresh) + (double)fresh * (double)samples);
    const double back = (double)queries * (touched(queries, fresh) + (double)fresh);
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
#define FEWER(k, m, p, d, rows)                                                                    \
    {                                                                                              \
        VECTORS(k, d), VECTORS((m) * (p), d), IDS(m), TABLE(rows, k)                               \
    }
#define BANK(m, p, d, rows) FEWER(m, m, p, d, rows)
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
    {"fewer queries", FEWER(5, 11, 1, 4, 3), ATTR(0), .rows_per_sample = 5, .control = AT(29),
     .small = true},
    {"queries of one tile and passages of three", FEWER(10, 130, 1, 5, 9),
     ATTR(.symmetric = 1, .duplicates = 1), .rows_per_sample = 5, .control = AT(1111)},
    {"two tiles of queries and three of passages", FEWER(70, 131, 1, 3, 11), ATTR(.symmetric = 1),
     .rows_per_sample = 10, .control = AT(193)},
    {"one query", FEWER(1, 67, 1, 7, 7), ATTR(.symmetric = 1), .control = AT(66)},
    /* One position for all rings: 106 of the samples is 35, as 106 / 3 of the passages is. */
    {"fewer queries and hard negatives", FEWER(66, 71, 3, 4, 9),
     ATTR(.symmetric = 1, .duplicates = 1), .rows_per_sample = 11, .control = AT(106)},
    {"blocks of queries", FEWER(2310, 2315, 1, 2, 149), ATTR(.symmetric = 1), .rows_per_sample = 2,
     .control = AT(2300)},
    {"tiles of 128", BANK(8200, 1, 1, 131), ATTR(0), .rows_per_sample = 8200, .control = AT(8199)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"other features", {VECTORS(7, 5), VECTORS(7, 4), IDS(7), TABLE(3, 7)}, ATTR(0)},
    {"passages that are no multiple", {VECTORS(7, 5), VECTORS(8, 5), IDS(7), TABLE(3, 7)}, ATTR(0)},
    {"a table of one side", BANK(7, 1, 5, 3), ATTR(.symmetric = 1)},
    {"too few ids", {VECTORS(7, 5), VECTORS(7, 5), IDS(6), TABLE(3, 7)}, ATTR(0)},
    {"more queries than samples", FEWER(8, 7, 1, 5, 3), ATTR(0)},
    {"a table of all samples", {VECTORS(6, 5), VECTORS(7, 5), IDS(7), TABLE(3, 7)}, ATTR(0)},
    {"no scale", BANK(7, 1, 5, 3), &(const struct qn_bank_table_attr){.scale = 0}},
    {0},
};

const struct qn_check_op qn_check_bank_table = {.op = &qn_op_bank_table,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = outputs,
                                                .flops = flops};
