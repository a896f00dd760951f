/* SPDX-License-Identifier: MIT */
#include "op/info_nce.h"
#include "check/check.h"

#include <math.h>
#include <string.h>

extern const struct qn_op qn_op_info_nce;
extern const struct qn_check_op qn_check_info_nce;

/* Rows and columns of scores: those of the micro-step, then those of the bank. */
struct scores {
    const struct qn_reference *r;
    int64_t samples, each, features, bank, bank_rows;
    int64_t stored; /* in either ring of the bank, by the control block */
    double factor;
};

static struct scores scores_of(const struct qn_reference *r)
{
    const struct qn_info_nce_attr *attr = r->call->attr;
    const struct qn_operand *in = r->call->in;
    struct scores s = {.r = r,
                       .samples = in[QN_NCE_QUERIES].shape.dim[0],
                       .features = in[QN_NCE_QUERIES].shape.dim[1]};
    s.each = in[QN_NCE_PASSAGES].shape.dim[0] / s.samples;
    s.bank = r->in[QN_NCE_BANK_IDS] ? in[QN_NCE_BANK_IDS].shape.dim[0] : 0;
    s.bank_rows = r->in[QN_NCE_BANK_QUERIES] ? in[QN_NCE_BANK_QUERIES].shape.dim[0] : 0;
    s.stored = (int64_t)r->control->position[0];
    s.factor = (double)attr->scale;
    if (r->in[QN_NCE_LOGIT_SCALE])
        s.factor *= exp(r->in[QN_NCE_LOGIT_SCALE][0]);
    return s;
}

/* The sample of micro-step and bank of which row `row` is. Of as many queries as passages each
 * sample has one place in both; fewer are those of the last samples that were stored. */
static int64_t sample_of(const struct scores *s, int64_t row)
{
    if (row < s->samples || s->bank_rows == s->bank)
        return row;
    for (int64_t number = s->stored - 1;; number--)
        if ((number + s->bank_rows) % s->bank_rows == row - s->samples)
            return s->samples + (number + s->bank) % s->bank;
}

/* Of sample i of micro-step and bank; 0 where nobody knows it. */
static double id_of(const struct scores *s, int64_t i)
{
    const double *own = s->r->in[QN_NCE_IDS];
    return i >= s->samples ? s->r->in[QN_NCE_BANK_IDS][i - s->samples] : own ? own[i] : 0;
}

static bool is_there(const struct scores *s, int64_t i)
{
    return i < s->samples || id_of(s, i) >= 0;
}

static const double *vector(const struct scores *s, int input, int bank, int64_t i, int64_t in_step)
{
    return i < in_step ? s->r->in[input] + i * s->features
                       : s->r->in[bank] + (i - in_step) * s->features;
}

static double score(const struct scores *s, int64_t row, int64_t column)
{
    const double *q = vector(s, QN_NCE_QUERIES, QN_NCE_BANK_QUERIES, row, s->samples);
    const double *p =
        vector(s, QN_NCE_PASSAGES, QN_NCE_BANK_PASSAGES, column, s->samples * s->each);
    double sum = 0;
    for (int64_t k = 0; k < s->features; k++)
        sum += q[k] * p[k];
    return sum * s->factor;
}

static bool counts(const struct scores *s, int64_t row, int64_t column)
{
    const struct qn_info_nce_attr *attr = s->r->call->attr;
    const int64_t sample = column / s->each, looks = sample_of(s, row);
    const bool twin = attr->duplicates && column % s->each == 0 && sample != looks &&
                      id_of(s, sample) == id_of(s, looks);
    return is_there(s, looks) && is_there(s, sample) && !twin;
}

/* A number of what the bank's samples know of each other, for row i of micro-step and bank. */
static double told(const struct scores *s, int64_t row, int64_t i)
{
    return s->r->in[QN_NCE_TABLE][row * s->bank_rows + i - s->samples];
}

/* The sum of exponentials of so many tiles, from `row` of the table on. */
static double told_sum(const struct scores *s, int64_t row, int64_t tiles, int64_t i)
{
    double sum = 0;
    for (int64_t t = 0; t < tiles; t++)
        sum += told(s, row + 2 * t + 1, i) * exp(told(s, row + 2 * t, i));
    return sum;
}

/* The same as `share` of row i, which is of the bank, where a table tells of the bank's. */
static double told_share(const struct scores *s, bool of_row, int64_t i)
{
    const int64_t count = of_row ? s->samples * s->each : s->samples;
    const int64_t tiles = qn_table_tiles(s->bank), own = sample_of(s, i) * s->each;
    double sum = of_row ? told_sum(s, 1, tiles, i)
                        : told_sum(s, 1 + 2 * tiles, qn_table_tiles(s->bank_rows), i);
    for (int64_t j = 0; j < count; j++)
        if (of_row ? counts(s, i, j) : counts(s, j, own))
            sum += exp(of_row ? score(s, i, j) : score(s, j, own));
    return log(sum) - told(s, 0, i);
}

/* -log of the share of entry `own` among those from 0 to `count`; the entries are columns of row
 * `fixed`, or rows of column `fixed`. */
static double share(const struct scores *s, bool of_row, int64_t fixed, int64_t count, int64_t own)
{
    double top = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = of_row ? fixed : i, column = of_row ? i : fixed;
            if (!counts(s, row, column))
                continue;
            const double x = score(s, row, column);
            if (pass == 0)
                top = fmax(top, x);
            else
                sum += exp(x - top);
        }
    return top + log(sum) - (of_row ? score(s, fixed, own) : score(s, own, fixed));
}

/* Of row i. */
static double row_loss(const struct scores *s, int64_t i)
{
    const struct qn_info_nce_attr *attr = s->r->call->attr;
    const int64_t own = sample_of(s, i) * s->each;
    const int64_t columns = (s->samples + s->bank) * s->each, rows = s->samples + s->bank_rows;
    const bool table = s->r->in[QN_NCE_TABLE] && i >= s->samples;
    const double forth = table ? told_share(s, true, i) : share(s, true, i, columns, own);
    if (!attr->symmetric)
        return forth;
    return (forth + (table ? told_share(s, false, i) : share(s, false, own, rows, i))) / 2;
}

static void reference(const struct qn_reference *r)
{
    const struct qn_info_nce_attr *attr = r->call->attr;
    const struct scores s = scores_of(r);
    double of_bank = 0, count = (double)s.samples;
    for (int64_t i = s.samples; i < s.samples + s.bank_rows; i++) {
        const bool there = is_there(&s, sample_of(&s, i));
        of_bank += there ? row_loss(&s, i) : 0;
        count += there && !attr->local_mean;
    }
    for (int64_t i = 0; i < s.samples; i++) {
        const double own = row_loss(&s, i);
        r->out[0][i] = (own + (i == 0 ? of_bank : 0)) / count;
        r->out[1][i] = own / (double)s.samples;
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = call->in[QN_NCE_QUERIES].shape};
    out[0].shape.rank = 1;
    out[1] = out[0];
}

/* One product for each score, and one more of those that a gradient is the sum of. */
static double flops(const struct qn_call *call, const char *group)
{
    const struct qn_info_nce_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    const double features = (double)in[QN_NCE_QUERIES].shape.dim[1];
    const double samples = (double)in[QN_NCE_QUERIES].shape.dim[0];
    const double passages = (double)in[QN_NCE_PASSAGES].shape.dim[0];
    const double rows =
        samples +
        (qn_present(&in[QN_NCE_BANK_QUERIES]) ? (double)in[QN_NCE_BANK_QUERIES].shape.dim[0] : 0);
    const double columns =
        passages +
        (qn_present(&in[QN_NCE_BANK_PASSAGES]) ? (double)in[QN_NCE_BANK_PASSAGES].shape.dim[0] : 0);
    const bool table = qn_present(&in[QN_NCE_TABLE]);
    const double known = table ? (rows - samples) * (columns - passages) : 0;
    const double pairs = table ? (double)(in[QN_NCE_TABLE].shape.dim[0] / 2) : 0;
    if (strcmp(group, "forward") == 0)
        return (rows * columns - known) * (2 * features + (attr->symmetric ? 24 : 12)) +
               4 * pairs * (rows - samples);
    if (strcmp(group, "query gradient") == 0)
        return samples * columns * (4 * features + 14);
    if (strcmp(group, "passage gradient") == 0)
        return rows * passages * (4 * features + 14);
    return 4 * 2 * (rows + 1);
}

/* --- cases --- */

#define VECTORS(n, d)                                                                              \
    {                                                                                              \
        .rank = 2, .dim = {(n), (d)}, .a = 0.5                                                     \
    }
#define THESE(n, list)                                                                             \
    {                                                                                              \
        .rank = 2, .dim = {(n), 1}, .values = (list)                                               \
    }
#define IDS(n, of)                                                                                 \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(n)}, .values = (of)            \
    }
/* Some are the same, some nothing. */
#define MANY_IDS(n)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(n)}, .fill = QN_FILL_INTEGER,  \
        .a = -9, .b = 60                                                                           \
    }
#define LEARNED(from)                                                                              \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {1}, .a = 0.1, .b = (from)       \
    }
#define TABLE(rows, m)                                                                             \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {(rows), (m)},                   \
        .fill = QN_FILL_POSITIVE                                                                   \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define PLAIN(n, p, d) VECTORS(n, d), VECTORS((n) * (p), d), NONE, NONE, NONE, NONE, NONE, NONE
#define ATTR(...)                                                                                  \
    &(const struct qn_info_nce_attr)                                                               \
    {                                                                                              \
        .scale = 1, __VA_ARGS__                                                                    \
    }

#define STORED(samples)                                                                            \
    &(const struct qn_control)                                                                     \
    {                                                                                              \
        .position = {samples}, .loss_scale = 1                                                     \
    }

/* The largest score is 0, and e to the power of its distance from the others beyond f32. */
static const double ones[] = {1, 1, 1}, apart[] = {-100, 0, -110};
static const double five[] = {3, 1, 4, 1, 5};
static const double seven[] = {4, -1, 1, 8, -1, 3, 6};
static const double none_yet[] = {-1, -1, -1};
static const double eleven[] = {9, -1, 2, 7, 7, -1, 1, 0, 3, 8, -1};
static const double two_of_seven[] = {4, 6, -1, -1, -1, -1, -1};

static const struct qn_check_case cases[] = {
    {"pairs", {PLAIN(6, 1, 5)}, ATTR(0), .small = true},
    {"both ways",
     {VECTORS(5, 3), VECTORS(5, 3), NONE, LEARNED(0.5), NONE, NONE, NONE, NONE},
     ATTR(.symmetric = 1),
     .small = true},
    {"hard negatives", {PLAIN(4, 3, 5)}, ATTR(.symmetric = 1)},
    {"temperature", {PLAIN(7, 1, 4)}, &(const struct qn_info_nce_attr){.scale = 5}},
    {"scores far apart",
     {THESE(3, ones), THESE(3, apart), NONE, NONE, NONE, NONE, NONE, NONE},
     ATTR(0)},
    {"one pair", {PLAIN(1, 1, 3)}, ATTR(.symmetric = 1)},
    {"two pairs of one element", {PLAIN(2, 1, 1)}, ATTR(0)},
    {"duplicates",
     {VECTORS(5, 4), VECTORS(10, 4), IDS(5, five), NONE, NONE, NONE, NONE, NONE},
     ATTR(.duplicates = 1)},
    {"an empty bank",
     {VECTORS(5, 4), VECTORS(5, 4), IDS(5, five), NONE, VECTORS(3, 4), VECTORS(3, 4),
      IDS(3, none_yet), NONE},
     ATTR(.symmetric = 1)},
    {"a bank",
     {VECTORS(5, 4), VECTORS(5, 4), IDS(5, five), LEARNED(0.2), VECTORS(7, 4), VECTORS(7, 4),
      IDS(7, seven), NONE},
     ATTR(0),
     .small = true},
    {"a bank of hard negatives, both ways",
     {VECTORS(3, 4), VECTORS(6, 4), NONE, LEARNED(-0.2), VECTORS(7, 4), VECTORS(14, 4),
      IDS(7, seven), NONE},
     ATTR(.symmetric = 1)},
    {"a bank without queries",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, NONE, VECTORS(7, 4), IDS(7, seven), NONE},
     ATTR(.symmetric = 1)},
    {"a bank, the mean of the micro-step",
     {VECTORS(5, 4), VECTORS(10, 4), NONE, NONE, VECTORS(7, 4), VECTORS(14, 4), IDS(7, seven),
      NONE},
     ATTR(.local_mean = 1)},
    {"a bank with duplicates",
     {VECTORS(5, 4), VECTORS(15, 4), IDS(5, five), NONE, VECTORS(11, 4), VECTORS(33, 4),
      IDS(11, eleven), NONE},
     ATTR(.duplicates = 1, .symmetric = 1)},
    {"a bank with a table",
     {VECTORS(5, 4), VECTORS(5, 4), IDS(5, five), NONE, VECTORS(7, 4), VECTORS(7, 4), IDS(7, seven),
      TABLE(3, 7)},
     ATTR(0),
     .small = true},
    {"a bank of hard negatives with a table, both ways",
     {VECTORS(5, 4), VECTORS(15, 4), IDS(5, five), NONE, VECTORS(11, 4), VECTORS(33, 4),
      IDS(11, eleven), TABLE(5, 11)},
     ATTR(.duplicates = 1, .symmetric = 1)},
    {"a table of three tiles, the mean of the micro-step",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(131, 4), VECTORS(131, 4), MANY_IDS(131),
      TABLE(13, 131)},
     ATTR(.local_mean = 1, .symmetric = 1)},
    {"fewer queries than passages",
     {VECTORS(5, 4), VECTORS(5, 4), IDS(5, five), LEARNED(0.2), VECTORS(3, 4), VECTORS(7, 4),
      IDS(7, seven), NONE},
     ATTR(0),
     .control = STORED(16),
     .small = true},
    {"fewer queries with duplicates",
     {VECTORS(5, 4), VECTORS(15, 4), IDS(5, five), LEARNED(-0.2), VECTORS(7, 4), VECTORS(33, 4),
      IDS(11, eleven), NONE},
     ATTR(.duplicates = 1, .symmetric = 1),
     .control = STORED(26)},
    {"fewer queries than room for them",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(4, 4), VECTORS(7, 4), IDS(7, two_of_seven),
      NONE},
     ATTR(.local_mean = 1, .symmetric = 1),
     .control = STORED(2)},
    {"one query, both ways",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(1, 4), VECTORS(7, 4), IDS(7, seven), NONE},
     ATTR(.symmetric = 1),
     .control = STORED(7)},
    {"fewer queries and two tiles of columns",
     {VECTORS(3, 2), VECTORS(6, 2), NONE, NONE, VECTORS(130, 2), VECTORS(1042, 2), MANY_IDS(521),
      NONE},
     ATTR(.symmetric = 1),
     .control = STORED(1130)},
    {"fewer queries with a table",
     {VECTORS(5, 4), VECTORS(5, 4), IDS(5, five), NONE, VECTORS(3, 4), VECTORS(7, 4), IDS(7, seven),
      TABLE(3, 3)},
     ATTR(0),
     .control = STORED(16),
     .small = true},
    {"fewer queries and hard negatives with a table",
     {VECTORS(5, 4), VECTORS(15, 4), IDS(5, five), NONE, VECTORS(7, 4), VECTORS(33, 4),
      IDS(11, eleven), TABLE(5, 7)},
     ATTR(.duplicates = 1, .symmetric = 1),
     .control = STORED(26)},
    {"a table of three tiles of passages and two of queries",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(70, 4), VECTORS(131, 4), MANY_IDS(131),
      TABLE(11, 70)},
     ATTR(.symmetric = 1),
     .control = STORED(193)},
    {"full tiles", {PLAIN(64, 1, 16)}, ATTR(0)},
    {"primes", {PLAIN(131, 1, 67)}, ATTR(.symmetric = 1)},
    {"two tiles of columns", {PLAIN(521, 2, 3)}, ATTR(.symmetric = 1)},
    {"two tiles of rows", {PLAIN(2053, 1, 2)}, ATTR(.symmetric = 1)},
    /* Enough, on two cores, for tiles of matmul_cpu as wide as a band of its panels. */
    {"250 pairs of 101 features", {PLAIN(250, 1, 101)}, ATTR(0)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"passages that are no multiple",
     {VECTORS(4, 5), VECTORS(6, 5), NONE, NONE, NONE, NONE, NONE, NONE},
     ATTR(0)},
    {"other features", {VECTORS(4, 5), VECTORS(4, 6), NONE, NONE, NONE, NONE, NONE, NONE}, ATTR(0)},
    {"no scale", {PLAIN(4, 1, 5)}, &(const struct qn_info_nce_attr){.scale = 0}},
    {"duplicates without ids", {PLAIN(4, 1, 5)}, ATTR(.duplicates = 1)},
    {"a bank without ids",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(7, 4), VECTORS(7, 4), NONE, NONE},
     ATTR(0)},
    {"a bank of queries alone",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(7, 4), NONE, IDS(7, seven), NONE},
     ATTR(0)},
    {"a table with a logit scale",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, LEARNED(0.2), VECTORS(7, 4), VECTORS(7, 4), IDS(7, seven),
      TABLE(3, 7)},
     ATTR(0)},
    {"a table of another bank",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(7, 4), VECTORS(7, 4), IDS(7, seven),
      TABLE(3, 8)},
     ATTR(0)},
    {"more queries than passages",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(8, 4), VECTORS(7, 4), IDS(7, seven), NONE},
     ATTR(0)},
    {"fewer queries with a table of all",
     {VECTORS(5, 4), VECTORS(5, 4), NONE, NONE, VECTORS(6, 4), VECTORS(7, 4), IDS(7, seven),
      TABLE(3, 7)},
     ATTR(0)},
    {0},
};

const struct qn_check_op qn_check_info_nce = {.op = &qn_op_info_nce,
                                              .cases = cases,
                                              .reference = reference,
                                              .refused = refused,
                                              .outputs = outputs,
                                              .flops = flops};
