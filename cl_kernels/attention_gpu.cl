/* SPDX-License-Identifier: MIT
 *
 * Attention for GPUs, with the same two products as attention_cpu.cl. A work-group of WIDE x TALL
 * work-items takes BLOCK tokens, side by side in local memory (a panel: HEAD rows of BLOCK), and
 * goes through the tokens of the other side in tiles of ROWS rows. Work-item (x, y) computes DEEP x
 * EACH scores, those of rows y * DEEP .. and tokens x * EACH ..; and, in registers, EACH elements
 * at a time, quads y, y + TALL, ... of the sums over tiles of the same tokens. Tokens past the last
 * one are zeros in tiles and repeat that token in panels; they are never stored.
 *
 * Options beside those of lib/attention.clh: TALL; DEEP, 4, 2 or 1.
 */
#define QN_V 4
#include "lib/attention.clh"

#define WIDE 8
#define EACH QN_V
#define BLOCK (WIDE * EACH)
#define ROWS (TALL * DEEP)
#define ITEMS (WIDE * TALL)
/* EACH neighbouring elements of a token; how many of them a token has, and a work-item's share. */
#define QUADS (HEAD / EACH)
#define SHARE ((QUADS + TALL - 1) / TALL)
/* The work-item's quad number i; those past the last one are it once more, and are not stored. */
#define QUAD(i) ((i)*TALL + (int)get_local_id(1))
#define QUAD_READ(i) (QUADS % TALL ? min(QUAD(i), QUADS - 1) : QUAD(i))
#define GPU_KERNEL __kernel __attribute__((reqd_work_group_size(WIDE, TALL, 1))) void

/* Where the vector of EACH tokens of a panel's row d lies: moved by d, so that a column of the
 * panel is spread over the banks of local memory. */
#define PANEL_AT(d, vector) ((d)*WIDE + ((vector) ^ (d) % WIDE))

/* to (HEAD, BLOCK) = factor * transpose of tokens first .. first + BLOCK - 1 of x; tokens past
 * count - 1 repeat that one. Neighbours take two quads of EACH tokens of four vectors, which they
 * store to all banks at once. */
static inline void pack_panel(__local floatv *to, __global const TYPE(X) * x, ulong pitch,
                              int first, int count, float factor)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
    for (int w = id; w < BLOCK * QUADS; w += ITEMS) {
        const int part = w / BLOCK, pairs = QUADS / 2;
        const int d = (part % pairs * 2 + w % 2) * EACH, token = w / 2 % EACH;
        const int vector = part / pairs * (WIDE / 2) + w / WIDE % (WIDE / 2);
        const int from = min(first + vector * EACH + token, count - 1);
        const floatv v = factor * LDV(X, x, from * pitch + d);
        __local float *at = (__local float *)to + token;
        at[PANEL_AT(d, vector) * EACH] = v.s0;
        at[PANEL_AT(d + 1, vector) * EACH] = v.s1;
        at[PANEL_AT(d + 2, vector) * EACH] = v.s2;
        at[PANEL_AT(d + 3, vector) * EACH] = v.s3;
    }
}

/* to (ROWS, HEAD) = factor * tokens first .. of x, the first `rows` of them. */
static inline void load_tile(__local floatv *to, __global const TYPE(X) * x, ulong pitch, int first,
                             int rows, float factor)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
    for (int w = id; w < ROWS * QUADS; w += ITEMS) {
        const int row = w / QUADS, d = (w - row * QUADS) * EACH;
        floatv value = (floatv)(0.0f);
        if (row < rows)
            value = factor * LDV(X, x, (first + row) * pitch + d);
        to[w] = value;
    }
}

/* A work-item's share of a sum over tiles: of each of its quads EACH vectors of tokens. */
typedef struct {
    floatv s0, s1, s2, s3;
} quad_sum;

static inline void clear(quad_sum *sum)
{
#pragma unroll
    for (int i = 0; i < SHARE; i++)
        sum[i].s0 = sum[i].s1 = sum[i].s2 = sum[i].s3 = (floatv)(0.0f);
}

/* sum *= factor, which is that of its tokens. */
static inline void weaken(quad_sum *sum, floatv factor)
{
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        sum[i].s0 *= factor;
        sum[i].s1 *= factor;
        sum[i].s2 *= factor;
        sum[i].s3 *= factor;
    }
}

/* score = DEEP x EACH elements of tile * panel: rows y * DEEP .. of the tile, tokens x * EACH .. of
 * the panel, with (x, y) the work-item. */
static inline void dots(floatv *score, __local const floatv *tile, __local const floatv *panel)
{
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        score[r] = (floatv)(0.0f);
#pragma unroll 1
    for (int first = 0; first < HEAD; first += WIDE)
#pragma unroll
        for (int d = first; d < first + WIDE; d += EACH) {
            const floatv tokens0 = panel[PANEL_AT(d, x)], tokens1 = panel[PANEL_AT(d + 1, x)];
            const floatv tokens2 = panel[PANEL_AT(d + 2, x)], tokens3 = panel[PANEL_AT(d + 3, x)];
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
                const floatv quad = tile[(y * DEEP + r) * QUADS + d / EACH];
                score[r] = fma((floatv)(quad.s0), tokens0, score[r]);
                score[r] = fma((floatv)(quad.s1), tokens1, score[r]);
                score[r] = fma((floatv)(quad.s2), tokens2, score[r]);
                score[r] = fma((floatv)(quad.s3), tokens3, score[r]);
            }
        }
}

/* sum += this work-item's elements of the product transpose(tile) * scores. */
static inline void fold(quad_sum *sum, __local const floatv *tile, __local const floatv *scores)
{
    const int x = (int)get_local_id(0);
#pragma unroll 1
    for (int row = 0; row < ROWS; row++) {
        const floatv tokens = scores[row * WIDE + x];
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const floatv quad = tile[row * QUADS + QUAD_READ(i)];
            sum[i].s0 = fma((floatv)(quad.s0), tokens, sum[i].s0);
            sum[i].s1 = fma((floatv)(quad.s1), tokens, sum[i].s1);
            sum[i].s2 = fma((floatv)(quad.s2), tokens, sum[i].s2);
            sum[i].s3 = fma((floatv)(quad.s3), tokens, sum[i].s3);
        }
    }
}

/* Writes this work-item's scores to local memory, for `fold`. */
static inline void share_scores(__local floatv *to, const floatv *score)
{
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        to[(y * DEEP + r) * WIDE + x] = score[r];
}

/* x = beta * x + factor * sum, for this work-item's elements of `sum`. */
#define UNPACK_TOKEN(e)                                                                            \
    if (token + e < count)                                                                         \
        ACCV(X, x, (token + e) * pitch + d, beta,                                                  \
             (floatv)(factor.s##e) *                                                               \
                 (floatv)(sum[i].s0.s##e, sum[i].s1.s##e, sum[i].s2.s##e, sum[i].s3.s##e));
static inline void unpack(__global TYPE(X) * x, const quad_sum *sum, ulong pitch, int first,
                          int count, floatv factor, float beta)
{
    const int token = first + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const int d = QUAD(i) * EACH;
        if (d >= HEAD)
            break;
        UNPACK_TOKEN(0)
        UNPACK_TOKEN(1)
        UNPACK_TOKEN(2)
        UNPACK_TOKEN(3)
    }
}

/* x[token] for each of this work-item's EACH tokens; x[count - 1] past the end. */
static inline floatv load_lanes(__global const float *x, int first, int count)
{
    const int token = first + (int)get_local_id(0) * EACH, last = count - 1;
    return (floatv)(LD(STATISTIC, x, min(token, last)), LD(STATISTIC, x, min(token + 1, last)),
                    LD(STATISTIC, x, min(token + 2, last)), LD(STATISTIC, x, min(token + 3, last)));
}

/* Hides the scores of keys (rows) from `end` on, or behind their query (lanes). */
static inline void hide_rows(floatv *score, int key, int end, int query, bool causal)
{
    const int row = key + (int)get_local_id(1) * DEEP, lane = query + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int r = 0; r < DEEP; r++) {
        const uintv from = (uint)lane + QN_LANES;
        const intv hidden = row + r >= end ? (intv)(-1) : from < (uintv)((uint)(row + r));
        score[r] =
            select(score[r], (floatv)(HIDDEN), causal || row + r >= end ? hidden : (intv)(0));
    }
}

/* Hides the scores of keys (lanes) from `end` on, or behind their query (rows), and of queries from
 * `queries` on. */
static inline void hide_lanes(floatv *score, int query, int queries, int key, int end, bool causal)
{
    const int row = query + (int)get_local_id(1) * DEEP, lane = key + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int r = 0; r < DEEP; r++) {
        const uint seen = row + r >= queries ? 0 : causal ? min(end, row + r + 1) : end;
        score[r] = select(score[r], (floatv)(HIDDEN), (uint)lane + QN_LANES >= (uintv)(seen));
    }
}

#if DROPOUT
/* keep = the dropout factors (attention_draw) of this work-item's scores, where rows are keys and
 * lanes are queries: DEEP of the four keys of a draw. */
static inline void keep_rows(floatv *keep, attention_draws draws, int key, int query)
{
    const int row = (int)get_local_id(1) * DEEP;
    floatv all[EACH];
    attention_draw(all, draws, query + (int)get_local_id(0) * EACH, key + row / EACH * EACH);
#if DEEP == 4
    keep[0] = all[0];
    keep[1] = all[1];
    keep[2] = all[2];
    keep[3] = all[3];
#elif DEEP == 2
    keep[0] = row & 2 ? all[2] : all[0];
    keep[1] = row & 2 ? all[3] : all[1];
#else
    const floatv even = row & 2 ? all[2] : all[0], odd = row & 2 ? all[3] : all[1];
    keep[0] = row & 1 ? odd : even;
#endif
}

/* The same where rows are queries and lanes are keys. */
static inline void keep_lanes(floatv *keep, attention_draws draws, int query, int key)
{
    floatv row[EACH];
    attention_draw(row, draws, query + (int)get_local_id(1) * DEEP,
                   key + (int)get_local_id(0) * EACH);
    keep[0] = (floatv)(row[0].s0, row[1].s0, row[2].s0, row[3].s0);
#if DEEP > 1
    keep[1] = (floatv)(row[0].s1, row[1].s1, row[2].s1, row[3].s1);
#endif
#if DEEP > 2
    keep[2] = (floatv)(row[0].s2, row[1].s2, row[2].s2, row[3].s2);
    keep[3] = (floatv)(row[0].s3, row[1].s3, row[2].s3, row[3].s3);
#endif
}
#endif

GPU_KERNEL forward(ATTENTION_OPERANDS, __global TYPE(X) * o, ulong o_at, __global float *saved,
                   ulong saved_at, uint saves)
{
    __local floatv query[HEAD * WIDE], tile[ROWS * QUADS], scores[ROWS * WIDE];
    quad_sum sum[SHARE];
    floatv score[DEEP], top = (floatv)(LOWEST), total = (floatv)(0.0f);
    const attention_place at =
        attention_at(get_group_id(0), (queries + BLOCK - 1) / BLOCK, heads, causal);
    const int x = (int)get_local_id(0), first = at.block * BLOCK;
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);

    pack_panel(query, q, q_row, first, queries, scale);
    clear(sum);
    for (int key = 0; key < end; key += ROWS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_tile(tile, k, k_row, key, min(ROWS, end - key), 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        dots(score, tile, query);
        hide_rows(score, key, end, first, causal);
        share_scores(scores, score);
        barrier(CLK_LOCAL_MEM_FENCE);
        floatv most = top;
#pragma unroll 4
        for (int row = 0; row < ROWS; row++)
            most = fmax(most, scores[row * WIDE + x]);
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            score[r] = exp2(score[r] - most);
        barrier(CLK_LOCAL_MEM_FENCE);
        share_scores(scores, score);
        load_tile(tile, v, k_row, key, min(ROWS, end - key), 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        const floatv shrink = exp2(top - most);
        top = most;
        total *= shrink;
#pragma unroll 4
        for (int row = 0; row < ROWS; row++)
            total += scores[row * WIDE + x];
#if DROPOUT
        floatv keep[DEEP];
        keep_rows(keep, draws, key, first);
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            score[r] *= keep[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        share_scores(scores, score);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        weaken(sum, shrink);
        fold(sum, tile, scores);
    }
    const floatv factor = select(1.0f / total, (floatv)(0.0f), total == (floatv)(0.0f));
    unpack(o + o_at + O_AT(at.row, at.head), sum, heads * HEAD, first, queries, factor, 0.0f);
    if (saves && get_local_id(1) == 0) {
        const floatv all = select(top + log2(total), (floatv)(0.0f), total == (floatv)(0.0f));
        const float lane[EACH] = {all.s0, all.s1, all.s2, all.s3};
        saved += saved_at + STATISTIC_AT(at.row, at.head);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (first + x * EACH + e < (int)queries)
                ST(STATISTIC, saved, first + x * EACH + e, lane[e]);
    }
}

GPU_KERNEL query_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                          __global const float *saved, ulong saved_at, __global const float *level,
                          ulong level_at, __global TYPE(X) * dq, ulong dq_at, float beta)
{
    __local floatv panel[HEAD * WIDE], tile[ROWS * QUADS], scores[ROWS * WIDE];
    quad_sum sum[SHARE];
    floatv score[DEEP], product[DEEP];
    const attention_place at =
        attention_at(get_group_id(0), (queries + BLOCK - 1) / BLOCK, heads, causal);
    const int first = at.block * BLOCK;
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);
    d_o += d_o_at + O_AT(at.row, at.head);
    const floatv top = load_lanes(saved + saved_at + STATISTIC_AT(at.row, at.head), first, queries);
    const floatv mean =
        load_lanes(level + level_at + STATISTIC_AT(at.row, at.head), first, queries);

    clear(sum);
    for (int key = 0; key < end; key += ROWS) {
        const int rows = min(ROWS, end - key);
        barrier(CLK_LOCAL_MEM_FENCE);
        pack_panel(panel, d_o, heads * HEAD, first, queries, 1.0f);
        load_tile(tile, v, k_row, key, rows, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        dots(product, tile, panel);
        barrier(CLK_LOCAL_MEM_FENCE);
        pack_panel(panel, q, q_row, first, queries, scale);
        load_tile(tile, k, k_row, key, rows, 1.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        dots(score, tile, panel);
        hide_rows(score, key, end, first, causal);
#if DROPOUT
        floatv keep[DEEP];
        keep_rows(keep, draws, key, first);
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            product[r] *= keep[r];
#endif
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            score[r] = exp2(score[r] - top) * (product[r] - mean);
        share_scores(scores, score);
        barrier(CLK_LOCAL_MEM_FENCE);
        fold(sum, tile, scores);
    }
    unpack(dq + dq_at + Q_AT(at.row, at.head), sum, q_row, first, queries, (floatv)(scale * LN2),
           beta);
}

GPU_KERNEL key_value_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                              __global const float *saved, ulong saved_at,
                              __global const float *level, ulong level_at, __global TYPE(X) * dk,
                              ulong dk_at, __global TYPE(X) * dv, ulong dv_at, uint has_dk,
                              uint has_dv, float beta_k, float beta_v)
{
    __local floatv panel[HEAD * WIDE], tile[ROWS * QUADS], scores[ROWS * WIDE];
    quad_sum sum_k[SHARE], sum_v[SHARE];
    floatv score[DEEP], product[DEEP], part[DEEP];
    const attention_place at =
        attention_at(get_group_id(0), (keys + BLOCK - 1) / BLOCK, heads / group, false);
    const int first = at.block * BLOCK, y = (int)get_local_id(1);
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    k += k_at + K_AT(at.row, at.head);
    v += v_at + K_AT(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head * group);
    d_o += d_o_at + O_AT(at.row, at.head * group);
    saved += saved_at + STATISTIC_AT(at.row, at.head * group);
    level += level_at + STATISTIC_AT(at.row, at.head * group);

    clear(sum_k);
    clear(sum_v);
    for (uint g = 0; g < group && first < here; g++) {
        ATTENTION_DRAWS(at.row, at.head * group + g);
        for (int query = causal ? first : 0; query < (int)queries; query += ROWS) {
            const int rows = min(ROWS, (int)queries - query);
            barrier(CLK_LOCAL_MEM_FENCE);
            pack_panel(panel, k, k_row, first, keys, 1.0f);
            load_tile(tile, q + g * HEAD, q_row, query, rows, scale);
            barrier(CLK_LOCAL_MEM_FENCE);
            dots(score, tile, panel);
            hide_lanes(score, query, queries, first, here, causal);
            barrier(CLK_LOCAL_MEM_FENCE);
            pack_panel(panel, v, k_row, first, keys, 1.0f);
            load_tile(tile, d_o + g * HEAD, heads * HEAD, query, rows, 1.0f);
            barrier(CLK_LOCAL_MEM_FENCE);
            dots(product, tile, panel);
#if DROPOUT
            floatv keep[DEEP];
            keep_lanes(keep, draws, query, first);
#endif
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
                const int row = min(query + y * DEEP + r, (int)queries - 1);
                const float top = LD(STATISTIC, saved, g * queries + row);
                part[r] = exp2(score[r] - top);
                score[r] = part[r];
#if DROPOUT
                part[r] *= keep[r];
                product[r] *= keep[r];
#endif
                score[r] *= product[r] - LD(STATISTIC, level, g * queries + row);
            }
            share_scores(scores, part);
            barrier(CLK_LOCAL_MEM_FENCE);
            fold(sum_v, tile, scores);
            barrier(CLK_LOCAL_MEM_FENCE);
            load_tile(tile, q + g * HEAD, q_row, query, rows, scale);
            share_scores(scores, score);
            barrier(CLK_LOCAL_MEM_FENCE);
            fold(sum_k, tile, scores);
        }
    }
    if (has_dv)
        unpack(dv + dv_at + K_AT(at.row, at.head), sum_v, k_row, first, keys, (floatv)(1.0f),
               beta_v);
    if (has_dk)
        unpack(dk + dk_at + K_AT(at.row, at.head), sum_k, k_row, first, keys, (floatv)(LN2),
               beta_k);
}
