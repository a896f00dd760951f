/* SPDX-License-Identifier: MIT
 *
 * Attention for CPUs: one work-item is one work-group. It takes a block of PANELS panels of PANEL
 * tokens, which are the lanes of vectors, and goes through the tokens of the other side in tiles of
 * ROWS rows. Lanes are queries in the forward pass and in the gradient of q, keys in the gradients
 * of k and v. So all steps of softmax are vector operations, and there are only two products:
 * `dots`, of a tile with a panel, gives scores, and `fold` adds up a tile, weighted with scores, in
 * another panel.
 *
 * A panel of a tensor is its transpose, HEAD rows of PANEL lanes; a tile has ROWS rows of HEAD
 * elements. Both are f32. Lanes and rows past the last token repeat that token, and are never
 * stored or added up.
 *
 * Options beside those of lib/attention.clh: QN_V; MR and NV, rows and vectors of the register
 * tile; PANELS; ROWS, a multiple of MR.
 */
#include "lib/attention.clh"
#include "lib/exp2.clh"
#include "lib/shuffle.clh"

#define PANEL (NV * QN_V)
#define CPU_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

/* to (HEAD, PANEL) = factor * transpose of tokens first .. first + PANEL - 1 of x; tokens past
 * count - 1 repeat that one. */
static inline void pack_panel(__local floatv *to, __global const TYPE(X) * x, ulong pitch,
                              int first, int count, float factor)
{
    for (int v = 0; v < NV; v++) {
        const int token = first + v * QN_V, last = count - 1;
        int d = 0;
        for (; d + QN_V <= HEAD; d += QN_V) {
            floatv row[QN_V];
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                row[e] = factor * LDV(X, x, min(token + e, last) * pitch + d);
            qn_transpose(row);
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                to[(d + e) * NV + v] = row[e];
        }
        for (; d < HEAD; d++) {
            __local float *lane = (__local float *)(to + d * NV + v);
            for (int e = 0; e < QN_V; e++)
                lane[e] = factor * LD(X, x, min(token + e, last) * pitch + d);
        }
    }
}

/* The inverse of pack_panel: x = beta * x + transpose of (factor * panel), where `factor` has one
 * number for each lane. Tokens from `count` on are not stored. */
static inline void unpack_panel(__global TYPE(X) * x, __local const floatv *panel, ulong pitch,
                                int first, int count, const floatv *factor, float beta)
{
    for (int v = 0; v < NV; v++) {
        const int token = first + v * QN_V, here = min(QN_V, count - token);
        int d = 0;
        for (; d + QN_V <= HEAD; d += QN_V) {
            floatv row[QN_V];
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                row[e] = factor[v] * panel[(d + e) * NV + v];
            qn_transpose(row);
            for (int e = 0; e < here; e++)
                ACCV(X, x, (token + e) * pitch + d, beta, row[e]);
        }
        for (; d < HEAD; d++) {
            const floatv row = factor[v] * panel[d * NV + v];
            const float *lane = (const float *)&row;
            for (int e = 0; e < here; e++)
                ACC(X, x, (token + e) * pitch + d, beta, lane[e]);
        }
    }
}

static inline void clear_panel(__local floatv *panel)
{
    for (int i = 0; i < HEAD * NV; i++)
        panel[i] = (floatv)(0.0f);
}

/* to (rows, HEAD) = factor * tokens first .. first + rows - 1 of x; the last row is repeated up to
 * a multiple of MR rows. */
static inline void load_tile(__local float *to, __global const TYPE(X) * x, ulong pitch, int first,
                             int rows, float factor)
{
    const int padded = (rows + MR - 1) / MR * MR;
    for (int r = 0; r < padded; r++, to += HEAD) {
        const ulong from = (first + min(r, rows - 1)) * pitch;
        int d = 0;
        for (; d + QN_V <= HEAD; d += QN_V)
            QN_PASTE(vstore, QN_V)(factor * LDV(X, x, from + d), 0, to + d);
        for (; d < HEAD; d++)
            to[d] = factor * LD(X, x, from + d);
    }
}

/* Lane i of `to` = x[first + i], one number for each token of a panel; x[count - 1] past the end.
 */
static inline void load_lanes(floatv *to, __global const float *x, int first, int count)
{
    for (int v = 0; v < NV; v++) {
        float *lane = (float *)(to + v);
        for (int e = 0; e < QN_V; e++)
            lane[e] = LD(STATISTIC, x, min(first + v * QN_V + e, count - 1));
    }
}

/* scores (rows, PANEL) = tile (rows, HEAD) * panel (HEAD, PANEL) */
static inline void dots(__local floatv *scores, __local const float *tile,
                        __local const floatv *panel, int rows)
{
    for (int row = 0; row < rows; row += MR, tile += MR * HEAD, scores += MR * NV) {
        floatv acc[MR][NV];
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                acc[r][v] = (floatv)(0.0f);
        for (int d = 0; d < HEAD; d++) {
#pragma unroll
            for (int r = 0; r < MR; r++)
#pragma unroll
                for (int v = 0; v < NV; v++)
                    acc[r][v] = FMA((floatv)(tile[r * HEAD + d]), panel[d * NV + v], acc[r][v]);
        }
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                scores[r * NV + v] = acc[r][v];
    }
}

/* panel (HEAD, PANEL) = factor (PANEL) * panel + tile (rows, HEAD)^T * scores (rows, PANEL) */
static inline void fold(__local floatv *panel, const floatv *factor, __local const float *tile,
                        __local const floatv *scores, int rows)
{
    for (int d = 0; d < HEAD; d += MR, panel += MR * NV) {
        floatv acc[MR][NV];
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                acc[r][v] = factor[v] * panel[r * NV + v];
        for (int row = 0; row < rows; row++) {
#pragma unroll
            for (int r = 0; r < MR; r++)
#pragma unroll
                for (int v = 0; v < NV; v++)
                    acc[r][v] =
                        FMA((floatv)(tile[row * HEAD + d + r]), scores[row * NV + v], acc[r][v]);
        }
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                panel[r * NV + v] = acc[r][v];
    }
}

/* Hides the scores of keys (rows) behind their query (lanes). */
static inline void hide_later_keys(__local floatv *scores, int rows, int key, int query)
{
    if (key + rows <= query + 1)
        return;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) {
            const uintv lane = (uint)(query + v * QN_V) + QN_LANES;
            scores[r * NV + v] =
                select(scores[r * NV + v], (floatv)(HIDDEN), lane < (uintv)((uint)(key + r)));
        }
}

/* Hides the scores of keys (lanes) behind their query (rows), or from `keys` on. */
static inline void hide_keys(__local floatv *scores, int rows, int query, int key, int keys,
                             bool causal)
{
    if (key + PANEL <= (causal ? min(keys, query + 1) : keys))
        return;
    for (int r = 0; r < rows; r++) {
        const uint seen = causal ? min(keys, query + r + 1) : keys;
        for (int v = 0; v < NV; v++) {
            const uintv lane = (uint)(key + v * QN_V) + QN_LANES;
            scores[r * NV + v] =
                select(scores[r * NV + v], (floatv)(HIDDEN), lane >= (uintv)(seen));
        }
    }
}

/* One tile of the softmax of a panel of queries, a query in each lane. With M the largest score so
 * far (`top`), scores become 2^(score - M), and these are added to `sum`; the factor 1 / sum is
 * applied after the last tile. Sums of earlier tiles were relative to the old M: they must be
 * multiplied by `shrink` = 2^(old M - M). */
static inline void soften(__local floatv *scores, floatv *top, floatv *sum, floatv *shrink,
                          int rows)
{
    for (int v = 0; v < NV; v++) {
        floatv most = top[v], more = (floatv)(0.0f);
        for (int r = 0; r < rows; r++) {
            const floatv score = scores[r * NV + v];
            most = most > score ? most : score;
        }
        for (int r = 0; r < rows; r++) {
            const floatv part = qn_exp2(scores[r * NV + v] - most);
            scores[r * NV + v] = part;
            more += part;
        }
        shrink[v] = qn_exp2(top[v] - most);
        sum[v] = FMA(sum[v], shrink[v], more);
        top[v] = most;
    }
}

#if DROPOUT
static inline void drop(__local floatv *scores, int rows, attention_draws draws, int key, int query)
{
    floatv keep[QN_V];
    for (int v = 0; v < NV; v++)
        for (int row = 0; row < rows; row += QN_V) {
            attention_draw(keep, draws, query + v * QN_V, key + row);
            for (int r = row; r < min(rows, row + QN_V); r++)
                scores[r * NV + v] *= keep[r - row];
        }
}
#endif

CPU_KERNEL forward(ATTENTION_OPERANDS, __global TYPE(X) * o, ulong o_at, __global float *saved,
                   ulong saved_at, uint saves)
{
    __local floatv query[PANELS][HEAD * NV], sum[PANELS][HEAD * NV], scores[ROWS * NV];
    __local float key[ROWS * HEAD], value[ROWS * HEAD];
    floatv top[PANELS][NV], total[PANELS][NV], factor[NV];
    const attention_place at = attention_at(
        get_group_id(0), (queries + PANELS * PANEL - 1) / (PANELS * PANEL), heads, causal);
    const int first = at.block * PANELS * PANEL;
    const int panels = min(PANELS, ((int)queries - first + PANEL - 1) / PANEL);
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + panels * PANEL) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);
    o += o_at + O_AT(at.row, at.head);
    saved += saved_at + STATISTIC_AT(at.row, at.head);

    for (int p = 0; p < panels; p++) {
        pack_panel(query[p], q, q_row, first + p * PANEL, queries, scale);
        clear_panel(sum[p]);
        for (int i = 0; i < NV; i++) {
            top[p][i] = (floatv)(LOWEST);
            total[p][i] = (floatv)(0.0f);
        }
    }
    for (int tile = 0; tile < end; tile += ROWS) {
        const int rows = min(ROWS, end - tile);
        load_tile(key, k, k_row, tile, rows, 1.0f);
        load_tile(value, v, k_row, tile, rows, 1.0f);
        for (int p = 0; p < panels; p++) {
            const int lane = first + p * PANEL;
            const int seen = causal ? min(rows, lane + PANEL - tile) : rows;
            if (seen <= 0)
                continue;
            dots(scores, key, query[p], seen);
            if (causal)
                hide_later_keys(scores, seen, tile, lane);
            soften(scores, top[p], total[p], factor, seen);
#if DROPOUT
            drop(scores, seen, draws, tile, lane);
#endif
            fold(sum[p], factor, value, scores, seen);
        }
    }
    for (int p = 0; p < panels; p++) {
        for (int i = 0; i < NV; i++)
            factor[i] = total[p][i] > (floatv)(0.0f) ? 1.0f / total[p][i] : (floatv)(0.0f);
        unpack_panel(o, sum[p], heads * HEAD, first + p * PANEL, queries, factor, 0.0f);
        for (int e = 0; saves && e < min(PANEL, (int)queries - first - p * PANEL); e++) {
            const float all = ((const float *)total[p])[e];
            ST(STATISTIC, saved, first + p * PANEL + e,
               all > 0.0f ? ((const float *)top[p])[e] + log2(all) : 0.0f);
        }
    }
}

/* 2^(score - top), as POWER_BELOW says. */
static inline floatv power_below(floatv score, floatv top)
{
    return qn_exp2(select(score - top, (floatv)(0.0f), score > top));
}

/* The gradient of a score without the factor `scale`: probability * (do . v - level), where do . v
 * is `product` and level = sum of o * do over the head of the query. */
static inline floatv gradient(floatv probability, floatv product, floatv level)
{
    return probability * (product - level);
}

CPU_KERNEL query_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                          __global const float *saved, ulong saved_at, __global const float *level,
                          ulong level_at, __global TYPE(X) * dq, ulong dq_at, float beta)
{
    __local floatv query[PANELS][HEAD * NV], result[PANELS][HEAD * NV], sum[PANELS][HEAD * NV];
    __local floatv scores[ROWS * NV], products[ROWS * NV];
    __local float key[ROWS * HEAD], value[ROWS * HEAD];
    floatv top[PANELS][NV], levels[PANELS][NV], factor[NV];
    const attention_place at = attention_at(
        get_group_id(0), (queries + PANELS * PANEL - 1) / (PANELS * PANEL), heads, causal);
    const int first = at.block * PANELS * PANEL;
    const int panels = min(PANELS, ((int)queries - first + PANEL - 1) / PANEL);
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + panels * PANEL) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    dq += dq_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);
    d_o += d_o_at + O_AT(at.row, at.head);
    saved += saved_at + STATISTIC_AT(at.row, at.head);
    level += level_at + STATISTIC_AT(at.row, at.head);

    for (int p = 0; p < panels; p++) {
        const int lane = first + p * PANEL;
        pack_panel(query[p], q, q_row, lane, queries, scale);
        pack_panel(result[p], d_o, heads * HEAD, lane, queries, 1.0f);
        clear_panel(sum[p]);
        load_lanes(top[p], saved, lane, queries);
        load_lanes(levels[p], level, lane, queries);
    }
    for (int i = 0; i < NV; i++)
        factor[i] = (floatv)(1.0f);
    for (int tile = 0; tile < end; tile += ROWS) {
        const int rows = min(ROWS, end - tile);
        load_tile(key, k, k_row, tile, rows, 1.0f);
        load_tile(value, v, k_row, tile, rows, 1.0f);
        for (int p = 0; p < panels; p++) {
            const int lane = first + p * PANEL;
            const int seen = causal ? min(rows, lane + PANEL - tile) : rows;
            if (seen <= 0)
                continue;
            dots(scores, key, query[p], seen);
            if (causal)
                hide_later_keys(scores, seen, tile, lane);
            dots(products, value, result[p], seen);
#if DROPOUT
            drop(products, seen, draws, tile, lane);
#endif
            for (int r = 0; r < seen; r++)
                for (int i = 0; i < NV; i++)
                    scores[r * NV + i] = gradient(power_below(scores[r * NV + i], top[p][i]),
                                                  products[r * NV + i], levels[p][i]);
            fold(sum[p], factor, key, scores, seen);
        }
    }
    for (int i = 0; i < NV; i++)
        factor[i] = (floatv)(scale * LN2);
    for (int p = 0; p < panels; p++)
        unpack_panel(dq, sum[p], q_row, first + p * PANEL, queries, factor, beta);
}

/* Scores become probabilities, 2^(score - top), and products become the gradients of the scores
 * (see `gradient`), for the tile of queries query .. query + rows - 1 and a panel of keys. */
static inline void differentiate(__local floatv *scores, __local floatv *products,
                                 __global const float *saved, __global const float *level,
                                 int query, int rows)
{
    for (int r = 0; r < rows; r++) {
        const floatv top = (floatv)(LD(STATISTIC, saved, query + r));
        const floatv mean = (floatv)(LD(STATISTIC, level, query + r));
        for (int v = 0; v < NV; v++) {
            const floatv probability = power_below(scores[r * NV + v], top);
            scores[r * NV + v] = probability;
            products[r * NV + v] = gradient(probability, products[r * NV + v], mean);
        }
    }
}

#if DROPOUT
/* differentiate() with dropout: probabilities and products get the factor of the mask, 0 or
 * 1 / (1 - rate). */
static inline void differentiate_dropped(__local floatv *scores, __local floatv *products,
                                         __global const float *saved, __global const float *level,
                                         int query, int rows, attention_draws draws, int key)
{
    floatv keep[QN_V];
    for (int v = 0; v < NV; v++)
        for (int row = 0; row < rows; row += QN_V) {
            attention_draw(keep, draws, query + row, key + v * QN_V);
            qn_transpose(keep);
            for (int r = row; r < min(rows, row + QN_V); r++) {
                const floatv top = (floatv)(LD(STATISTIC, saved, query + r));
                const floatv mean = (floatv)(LD(STATISTIC, level, query + r));
                const floatv probability = power_below(scores[r * NV + v], top);
                scores[r * NV + v] = probability * keep[r - row];
                products[r * NV + v] =
                    gradient(probability, products[r * NV + v] * keep[r - row], mean);
            }
        }
}
#endif

CPU_KERNEL key_value_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                              __global const float *saved, ulong saved_at,
                              __global const float *level, ulong level_at, __global TYPE(X) * dk,
                              ulong dk_at, __global TYPE(X) * dv, ulong dv_at, uint has_dk,
                              uint has_dv, float beta_k, float beta_v)
{
    __local floatv key[PANELS][HEAD * NV], value[PANELS][HEAD * NV];
    __local floatv sum_k[PANELS][HEAD * NV], sum_v[PANELS][HEAD * NV];
    __local floatv scores[ROWS * NV], products[ROWS * NV];
    __local float query[ROWS * HEAD], result[ROWS * HEAD];
    floatv factor[NV];
    const attention_place at = attention_at(
        get_group_id(0), (keys + PANELS * PANEL - 1) / (PANELS * PANEL), heads / group, false);
    const int first = at.block * PANELS * PANEL;
    const int panels = min(PANELS, ((int)keys - first + PANEL - 1) / PANEL);
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    k += k_at + K_AT(at.row, at.head);
    v += v_at + K_AT(at.row, at.head);
    dk += dk_at + K_AT(at.row, at.head);
    dv += dv_at + K_AT(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head * group);
    d_o += d_o_at + O_AT(at.row, at.head * group);
    saved += saved_at + STATISTIC_AT(at.row, at.head * group);
    level += level_at + STATISTIC_AT(at.row, at.head * group);

    for (int p = 0; p < panels; p++) {
        pack_panel(key[p], k, k_row, first + p * PANEL, keys, 1.0f);
        pack_panel(value[p], v, k_row, first + p * PANEL, keys, 1.0f);
        clear_panel(sum_k[p]);
        clear_panel(sum_v[p]);
    }
    for (int i = 0; i < NV; i++)
        factor[i] = (floatv)(1.0f);
    for (uint g = 0; g < group && first < here; g++) {
        ATTENTION_DRAWS(at.row, at.head * group + g);
        for (int tile = causal ? first / ROWS * ROWS : 0; tile < (int)queries; tile += ROWS) {
            const int rows = min(ROWS, (int)queries - tile);
            load_tile(query, q + g * HEAD, q_row, tile, rows, scale);
            load_tile(result, d_o + g * HEAD, heads * HEAD, tile, rows, 1.0f);
            for (int p = 0; p < panels; p++) {
                const int lane = first + p * PANEL;
                if (lane >= here || (causal && lane >= tile + rows))
                    continue;
                /* Causal: the queries before the first key of the panel see none of its keys, and
                 * are skipped. */
                const int skip = causal ? max(0, lane - tile) : 0, left = rows - skip;
                const __local float *seen = query + skip * HEAD, *given = result + skip * HEAD;
                dots(scores, seen, key[p], left);
                hide_keys(scores, left, tile + skip, lane, here, causal);
                dots(products, given, value[p], left);
#if DROPOUT
                differentiate_dropped(scores, products, saved + g * queries, level + g * queries,
                                      tile + skip, left, draws, lane);
#else
                differentiate(scores, products, saved + g * queries, level + g * queries,
                              tile + skip, left);
#endif
                fold(sum_v[p], factor, given, scores, left);
                fold(sum_k[p], factor, seen, products, left);
            }
        }
    }
    for (int p = 0; has_dv && p < panels; p++)
        unpack_panel(dv, sum_v[p], k_row, first + p * PANEL, keys, factor, beta_v);
    for (int i = 0; i < NV; i++)
        factor[i] = (floatv)(LN2);
    for (int p = 0; has_dk && p < panels; p++)
        unpack_panel(dk, sum_k[p], k_row, first + p * PANEL, keys, factor, beta_k);
}
