/* SPDX-License-Identifier: MIT
 *
 * The contrastive loss from tiles of scores (m, n), query by passage: row r of the tile is query
 * first_row + r of its side, column c is passage first_column + c. Each side is the micro-step or a
 * bank. A sample has one query and QN_EACH passages, of which the first is the query's own.
 *
 * Samples of a bank are counted as lib/banks.clh has it, and the control block says which row each
 * of its rings will take next.
 *
 * What is known of a row, and of the column of a sample's own passage, is (top, sum, own, dot): the
 * largest score, the sum of e^(score - top), the score of the sample's own pair, and the sum of
 * score * e^(score - top).
 */
#define X_TYPE f32
#define F_TYPE f32
#include "lib/banks.clh"
#include "lib/control.clh"
#include "lib/row.clh"

#ifndef QN_EACH
#define QN_EACH 1
#endif

/* Bits of `what`. */
#define LEARNED 1       /* there is a logit scale */
#define EMPTY_ROWS 2    /* rows are a bank's: those whose id is negative hold nothing */
#define EMPTY_COLUMNS 4 /* likewise */
#define DUPLICATES 8    /* an own passage of the row's id is no negative of it */
#define SAME_SIDE 16    /* rows and columns are of the same samples */

/* Scores of what does not count. */
#define NOTHING -3e38f
#define COUNTS(score) ((score) > -1e38f)

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* Where the rings of a bank will take the next samples. */
static inline next_of next_in(__global const uint *control, ulong control_at)
{
    __global const uint *position = QN_CONTROL_READ(control, control_at)->position;
    const next_of next = {position[QN_ROW_SLOT] % QN_BANK_ROWS,
                          position[QN_SAMPLE_SLOT] % QN_BANK_SAMPLES};
    return next;
}

/* --- scores --- */

/* Of the row's side. */
static inline uint sample_of(uint row, next_of next, int what)
{
    return what & EMPTY_ROWS ? stored_at(row, next) : row;
}

static inline bool is_own(uint looks, uint column, int what)
{
    return (what & SAME_SIDE) && column == looks * QN_EACH;
}

/* Whether the column does not count for the query of sample `looks`. */
static inline bool is_left_out(__global const int *row_ids, __global const int *column_ids,
                               uint looks, uint column, int what)
{
    const uint sample = column / QN_EACH;
    if ((what & EMPTY_ROWS) && row_ids[looks] < 0)
        return true;
    if ((what & EMPTY_COLUMNS) && column_ids[sample] < 0)
        return true;
    return (what & DUPLICATES) && column % QN_EACH == 0 && !is_own(looks, column, what) &&
           row_ids[looks] == column_ids[sample];
}

static inline float factor_of(__global const float *logit_scale, float scale, int what)
{
    return what & LEARNED ? scale * exp(logit_scale[0]) : scale;
}

/* Products of vectors become scores, in their place. */
ELEMENT_KERNEL scores(__global float *x, ulong x_at, __global const int *row_ids, ulong row_ids_at,
                      __global const int *column_ids, ulong column_ids_at,
                      __global const float *logit_scale, ulong logit_scale_at,
                      __global const uint *control, ulong control_at, ulong m, ulong n,
                      uint first_row, uint first_column, float scale, int what)
{
    const ulong c = get_global_id(0);
    if (c >= n)
        return;
    const float factor = factor_of(logit_scale + logit_scale_at, scale, what);
    const next_of next = next_in(control, control_at);
    for (ulong r = get_global_id(1); r < m; r += get_global_size(1)) {
        const ulong i = x_at + r * n + c;
        const uint looks = sample_of(first_row + (uint)r, next, what);
        const bool out = is_left_out(row_ids + row_ids_at, column_ids + column_ids_at, looks,
                                     first_column + (uint)c, what);
        x[i] = out ? NOTHING : x[i] * factor;
    }
}

/* --- what is known of rows and columns --- */

typedef struct {
    float top, sum, own, dot;
} known_part;

static inline known_part joined(known_part a, known_part b)
{
    const float top = QN_LARGER(a.top, b.top);
    const float of_a = qn_exp_float(a.top - top), of_b = qn_exp_float(b.top - top);
    const known_part all = {top, a.sum * of_a + b.sum * of_b, a.own + b.own,
                            a.dot * of_a + b.dot * of_b};
    return all;
}

static inline void learn(__global float *known, known_part more, int starts)
{
    if (!starts) {
        const known_part before = {known[0], known[1], known[2], known[3]};
        more = joined(before, more);
    }
    known[0] = more.top;
    known[1] = more.sum;
    known[2] = more.own;
    known[3] = more.dot;
}

/* The sum of x * e^(x - top) over a row. */
static inline float row_dot(__global const float *x, ulong n, float top, __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv sum = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv v = LDV(X, x, i);
        sum += (COUNTS(v) ? v : (floatv)(0.0f)) * qn_exp_floatv(v - top);
    }
    float rest = qn_hadd(sum);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest += (COUNTS(x[i]) ? x[i] : 0.0f) * qn_exp_float(x[i] - top);
    return qn_group_sum(rest, part);
}

/* A work-group per row; row 0 of the tile is number `at` of what is known. */
ROW_KERNEL learn_rows(__global const float *x, ulong x_at, __global float *known, ulong known_at,
                      __global const uint *control, ulong control_at, ulong n, ulong at,
                      uint first_row, uint first_column, int what, int starts)
{
    __local float part[QN_WG];
    const ulong r = get_group_id(0);
    x += x_at + r * n;
    const row_exp row = row_exp_sum(x, n, part);
    const float dot = what & LEARNED ? row_dot(x, n, row.top, part) : 0.0f;
    if (get_local_id(0) > 0)
        return;
    const next_of next = next_in(control, control_at);
    const ulong own = (ulong)sample_of(first_row + (uint)r, next, what) * QN_EACH;
    const bool here = (what & SAME_SIDE) && own >= first_column && own < first_column + n;
    const known_part more = {row.top, row.sum, here ? x[own - first_column] : 0.0f, dot};
    learn(known + known_at + (at + r) * 4, more, starts);
}

/* A work-item per query whose own passage may be in the tile; `first` is the first such query of
 * its side, which is number `at` of what is known. */
ELEMENT_KERNEL learn_columns(__global const float *x, ulong x_at, __global float *known,
                             ulong known_at, __global const uint *control, ulong control_at,
                             ulong m, ulong n, ulong queries, ulong first, ulong at, uint first_row,
                             uint first_column, int what, int starts)
{
    const ulong s = get_global_id(0);
    if (s >= queries)
        return;
    const uint row = (uint)(first + s);
    const uint sample = what & EMPTY_COLUMNS ? stored_at(row, next_in(control, control_at)) : row;
    const ulong column = (ulong)sample * QN_EACH;
    if (column < first_column || column >= first_column + n)
        return;
    x += x_at + column - first_column;
    known_part more = {NOTHING, 0.0f, 0.0f, 0.0f};
    for (ulong r = 0; r < m; r++)
        more.top = QN_LARGER(x[r * n], more.top);
    for (ulong r = 0; r < m; r++) {
        const float v = x[r * n], e = qn_exp_float(v - more.top);
        more.sum += e;
        more.dot += COUNTS(v) ? v * e : 0.0f;
    }
    if ((what & SAME_SIDE) && row >= first_row && row < first_row + m)
        more.own = x[(row - first_row) * n];
    learn(known + known_at + (at + s) * 4, more, starts);
}

/* What a table says of query i of the bank: `tiles` pairs of rows (top, sum) from `row` on. Where
 * the sum is 0 nothing is there. */
static inline known_part told(__global const float *table, ulong row, ulong tiles, ulong bank,
                              ulong i)
{
    known_part all = {NOTHING, 0.0f, table[i], 0.0f};
    table += row * bank + i;
    for (ulong t = 0; t < tiles; t++)
        all.top =
            table[(2 * t + 1) * bank] > 0.0f ? QN_LARGER(table[2 * t * bank], all.top) : all.top;
    for (ulong t = 0; t < tiles; t++)
        all.sum =
            FMA(table[(2 * t + 1) * bank], qn_exp_float(table[2 * t * bank] - all.top), all.sum);
    return all;
}

/* A work-item per query of the bank: what its samples know of each other, of `tiles` of passages
 * and `back` of queries, joins what they know of the micro-step's n. */
ELEMENT_KERNEL recall(__global const float *table, ulong table_at, __global const int *bank_ids,
                      ulong bank_ids_at, __global float *rows, ulong rows_at,
                      __global float *columns, ulong columns_at, __global const uint *control,
                      ulong control_at, ulong n, ulong bank, ulong tiles, ulong back)
{
    const ulong i = get_global_id(0);
    if (i >= bank || bank_ids[bank_ids_at + stored_at((uint)i, next_in(control, control_at))] < 0)
        return;
    table += table_at;
    learn(rows + rows_at + (n + i) * 4, told(table, 1, tiles, bank, i), 0);
    if (back > 0)
        learn(columns + columns_at + (n + i) * 4, told(table, 1 + 2 * tiles, back, bank, i), 0);
}

/* --- losses --- */

/* -log of the share of a sample's own pair. What backward needs is kept: the log of the sum of e^x,
 * and how the loss grows with the log of the scale. */
static inline float settle(__global const float *known, __global float *stat, ulong i, int keep)
{
    const float top = known[i * 4], sum = known[i * 4 + 1], own = known[i * 4 + 2];
    if (keep) {
        stat[i * 2] = top + log(sum);
        stat[i * 2 + 1] = known[i * 4 + 3] / sum - own;
    }
    return log(sum) + (top - own);
}

/* One work-group. Statistics of rows, and of columns if they are wanted, are (n + bank, 2); those
 * of rows have one more row: the weights of `loss` and of `local`. */
ROW_KERNEL finish(__global const float *rows, ulong rows_at, __global const float *columns,
                  ulong columns_at, __global const int *bank_ids, ulong bank_ids_at,
                  __global float *row_stat, ulong row_stat_at, __global float *column_stat,
                  ulong column_stat_at, __global float *loss, ulong loss_at,
                  __global float *local_loss, ulong local_loss_at, __global const uint *control,
                  ulong control_at, ulong n, ulong bank, int symmetric, int local_mean, int keep,
                  int local_too)
{
    __local float part[QN_WG];
    const ulong lane = get_local_id(0);
    const float half_of = symmetric ? 0.5f : 1.0f;
    rows += rows_at;
    columns += columns_at;
    row_stat += row_stat_at;
    column_stat += column_stat_at;
    const next_of next = next_in(control, control_at);
    float of_bank = 0.0f, count = 0.0f;
    for (ulong i = n + lane; i < n + bank; i += QN_WG) {
        const bool there = bank_ids[bank_ids_at + stored_at((uint)(i - n), next)] >= 0;
        float value = settle(rows, row_stat, i, keep);
        if (symmetric)
            value += settle(columns, column_stat, i, keep);
        of_bank += there ? value : 0.0f;
        count += there ? 1.0f : 0.0f;
    }
    of_bank = qn_group_sum(of_bank, part);
    count = qn_group_sum(count, part);
    const float share = half_of / ((float)n + (local_mean ? 0.0f : count));
    const float local_share = half_of / (float)n;
    for (ulong i = lane; i < n; i += QN_WG) {
        float value = settle(rows, row_stat, i, keep);
        if (symmetric)
            value += settle(columns, column_stat, i, keep);
        loss[loss_at + i] = (value + (i == 0 ? of_bank : 0.0f)) * share;
        if (local_too)
            local_loss[local_loss_at + i] = value * local_share;
    }
    if (keep && lane == 0) {
        row_stat[(n + bank) * 2] = share;
        row_stat[(n + bank) * 2 + 1] = local_share;
    }
}

/* --- gradients --- */

/* The gradient of the loss of number i, a sample of the micro-step or, behind them, of the bank,
 * whose losses all are in the first one of the micro-step. */
static inline float weight_of(__global const float *dloss, __global const float *dlocal,
                              __global const float *shares, ulong i, ulong n, int local_too)
{
    const float weight = dloss[i < n ? i : 0] * shares[0];
    return local_too && i < n ? FMA(dlocal[i], shares[1], weight) : weight;
}

/* Products of vectors become the gradient of the loss by them, in their place. Row 0 of the tile's
 * side is number row_at of the statistics, the first query of the columns' is number column_at. */
ELEMENT_KERNEL gradient(__global float *x, ulong x_at, __global const int *row_ids,
                        ulong row_ids_at, __global const int *column_ids, ulong column_ids_at,
                        __global const float *logit_scale, ulong logit_scale_at,
                        __global const float *row_stat, ulong row_stat_at,
                        __global const float *column_stat, ulong column_stat_at,
                        __global const float *dloss, ulong dloss_at, __global const float *dlocal,
                        ulong dlocal_at, __global const uint *control, ulong control_at, ulong m,
                        ulong n, ulong samples, ulong bank, uint first_row, uint first_column,
                        ulong row_at, ulong column_at, float scale, int what, int symmetric,
                        int local_too)
{
    const ulong c = get_global_id(0);
    if (c >= n)
        return;
    const float factor = factor_of(logit_scale + logit_scale_at, scale, what);
    const uint column = first_column + (uint)c;
    row_stat += row_stat_at;
    dloss += dloss_at;
    dlocal += dlocal_at;
    __global const float *shares = row_stat + (samples + bank) * 2;
    const next_of next = next_in(control, control_at);
    const uint sample = column / QN_EACH;
    const uint query = what & EMPTY_COLUMNS ? row_of(sample, next) : sample;
    float column_weight = 0.0f, column_sum = 0.0f;
    if (symmetric && column % QN_EACH == 0 && query < (what & EMPTY_COLUMNS ? bank : samples)) {
        const ulong i = column_at + query;
        column_weight = weight_of(dloss, dlocal, shares, i, samples, local_too);
        column_sum = column_stat[column_stat_at + i * 2];
    }
    for (ulong r = get_global_id(1); r < m; r += get_global_size(1)) {
        const uint row = first_row + (uint)r, looks = sample_of(row, next, what);
        const ulong i = row_at + row, at = x_at + r * n + c;
        const float own = is_own(looks, column, what) ? 1.0f : 0.0f;
        const float weight = weight_of(dloss, dlocal, shares, i, samples, local_too);
        const float score = x[at] * factor;
        float g = weight * (qn_exp_float(score - row_stat[i * 2]) - own);
        if (column_weight != 0.0f)
            g = FMA(column_weight, qn_exp_float(score - column_sum) - own, g);
        x[at] = is_left_out(row_ids + row_ids_at, column_ids + column_ids_at, looks, column, what)
                    ? 0.0f
                    : g * factor;
    }
}

/* One work-group: by the logarithm of the scale. */
ROW_KERNEL scale_gradient(__global const int *bank_ids, ulong bank_ids_at,
                          __global const float *row_stat, ulong row_stat_at,
                          __global const float *column_stat, ulong column_stat_at,
                          __global const float *dloss, ulong dloss_at, __global const float *dlocal,
                          ulong dlocal_at, __global float *dscale, ulong dscale_at,
                          __global const uint *control, ulong control_at, ulong n, ulong bank,
                          int symmetric, int local_too, float beta)
{
    __local float part[QN_WG];
    row_stat += row_stat_at;
    column_stat += column_stat_at;
    __global const float *shares = row_stat + (n + bank) * 2;
    const next_of next = next_in(control, control_at);
    float sum = 0.0f;
    for (ulong i = get_local_id(0); i < n + bank; i += QN_WG) {
        if (i >= n && bank_ids[bank_ids_at + stored_at((uint)(i - n), next)] < 0)
            continue;
        const float both = row_stat[i * 2 + 1] + (symmetric ? column_stat[i * 2 + 1] : 0.0f);
        sum = FMA(weight_of(dloss + dloss_at, dlocal + dlocal_at, shares, i, n, local_too), both,
                  sum);
    }
    sum = qn_group_sum(sum, part);
    if (get_local_id(0) == 0)
        ACC(F, dscale, dscale_at, beta, sum);
}
