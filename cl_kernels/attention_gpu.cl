/* SPDX-License-Identifier: MIT
 *
 * Attention for GPUs, with the same two products as attention_cpu.cl. A work-group of WIDE x TALL
 * work-items takes BLOCK tokens and goes through the tokens of the other side, ROWS at a time.
 * Local memory has pieces of both, so that it does not grow with HEAD: for scores PIECE elements of
 * the block's tokens, side by side (a panel: PIECE rows of BLOCK), and of the ROWS others (a tile);
 * for sums over these whole tokens, PART at a time. Work-item (x, y) computes DEEP x EACH scores,
 * those of rows y * DEEP .. and tokens x * EACH ..; and, in registers, EACH elements at a time,
 * quads y, y
 * + TALL, ... of the sums over rows of the same tokens. Tokens past the last one are zeros in tiles
 * and repeat that token in panels; they are never stored.
 *
 * Options beside those of lib/attention.clh: WIDE, 8 or 16; TALL; DEEP, 4, 2 or 1.
 */
#define QN_V 4
#include "lib/attention.clh"

#define EACH QN_V
#define BLOCK (WIDE * EACH)
#define ROWS (TALL * DEEP)
#define ITEMS (WIDE * TALL)
#define PIECE (HEAD < 32 ? HEAD : 32)
#define PART (HEAD <= PIECE ? ROWS : HEAD <= 2 * PIECE ? ROWS / 2 : ROWS / 4)
/* Vectors that neighbours store to all banks of local memory at once. */
#define NEAR 8
/* EACH neighbouring elements of a token; how many of them a token has, and a work-item's share. */
#define QUADS (HEAD / EACH)
#define SHARE ((QUADS + TALL - 1) / TALL)
/* The work-item's quad number i; those past the last one are it once more, and are not stored. */
#define QUAD(i) ((i)*TALL + (int)get_local_id(1))
#define QUAD_READ(i) (QUADS % TALL ? min(QUAD(i), QUADS - 1) : QUAD(i))
#define GPU_KERNEL __kernel __attribute__((reqd_work_group_size(WIDE, TALL, 1))) void

/* Where the vector of EACH tokens of a panel's row d lies: moved by d, so that a column of the
 * panel is spread over the banks of local memory. */
#define PANEL_AT(d, vector) ((d)*WIDE + ((vector) ^ (d) % NEAR))

/* `count` tokens of one head, `pitch` elements apart, and what they are multiplied by. */
typedef struct {
    __global const TYPE(X) * x;
    ulong pitch;
    int count;
    float factor;
} tokens;

/* to (PIECE, BLOCK) = the transpose of elements from .. of tokens first .. of t; tokens past the
 * last repeat that one. Neighbours take two quads of EACH tokens of four vectors. */
static inline void pack_panel(__local floatv *to, tokens t, int first, int from)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
    for (int w = id; w < BLOCK * PIECE / EACH; w += ITEMS) {
        const int part = w / (NEAR * EACH), pairs = PIECE / EACH / 2;
        const int d = (part % pairs * 2 + w % 2) * EACH, token = w / 2 % EACH;
        const int vector = part / pairs * (NEAR / 2) + w / NEAR % (NEAR / 2);
        const int row = min(first + vector * EACH + token, t.count - 1);
        if (HEAD % PIECE && from + d >= HEAD)
            continue;
        const floatv v = t.factor * LDV(X, t.x, row * t.pitch + from + d);
        __local float *at = (__local float *)to + token;
        at[PANEL_AT(d, vector) * EACH] = v.s0;
        at[PANEL_AT(d + 1, vector) * EACH] = v.s1;
        at[PANEL_AT(d + 2, vector) * EACH] = v.s2;
        at[PANEL_AT(d + 3, vector) * EACH] = v.s3;
    }
}

/* to (rows, width) = elements from .. of tokens first .. of t; `rows` and `width` are constants. */
static inline void load_tile(__local floatv *to, int rows, int width, tokens t, int first, int from)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0)), quads = width / EACH;
    for (int w = id; w < rows * quads; w += ITEMS) {
        const int row = w / quads, d = from + (w - row * quads) * EACH;
        floatv value = (floatv)(0.0f);
        if (first + row < t.count && d < HEAD)
            value = t.factor * LDV(X, t.x, (first + row) * t.pitch + d);
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

/* score += DEEP x EACH elements of tile * panel, elements from .. of the head: rows y * DEEP .. of
 * the tile, tokens x * EACH .. of the panel, with (x, y) the work-item. */
static inline void multiply(floatv *score, __local const floatv *tile, __local const floatv *panel,
                            int from)
{
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
    const int end = HEAD % PIECE ? min(PIECE, HEAD - from) : PIECE;
#pragma unroll 1
    for (int first = 0; first < end; first += NEAR)
#pragma unroll
        for (int d = first; d < first + NEAR; d += EACH) {
            const floatv tokens0 = panel[PANEL_AT(d, x)], tokens1 = panel[PANEL_AT(d + 1, x)];
            const floatv tokens2 = panel[PANEL_AT(d + 2, x)], tokens3 = panel[PANEL_AT(d + 3, x)];
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
                const floatv quad = tile[((y * DEEP + r) * PIECE + d) / EACH];
                score[r] = fma((floatv)(quad.s0), tokens0, score[r]);
                score[r] = fma((floatv)(quad.s1), tokens1, score[r]);
                score[r] = fma((floatv)(quad.s2), tokens2, score[r]);
                score[r] = fma((floatv)(quad.s3), tokens3, score[r]);
            }
        }
}

/* score = those of the block's tokens from `first` on and the others from `row` on. A panel of
 * whole tokens that is still there serves again unless it is `fresh`. */
static inline void dots(floatv *score, __local floatv *panel, tokens block, int first, bool fresh,
                        __local floatv *tile, tokens others, int row)
{
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        score[r] = (floatv)(0.0f);
#pragma unroll 1
    for (int from = 0; from < HEAD; from += PIECE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (fresh || HEAD > PIECE)
            pack_panel(panel, block, first, from);
        load_tile(tile, ROWS, PIECE, others, row, from);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(score, tile, panel, from);
    }
}

/* sum += this work-item's elements of the product transpose(others) * scores, of those from `first`
 * on. Scores may have been written just before. */
static inline void fold(quad_sum *sum, __local const floatv *scores, __local floatv *tile,
                        tokens others, int first)
{
    const int x = (int)get_local_id(0);
#pragma unroll 1
    for (int part = 0; part < ROWS; part += PART) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_tile(tile, PART, HEAD, others, first + part, 0);
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (int row = 0; row < PART; row++) {
            const floatv weights = scores[(part + row) * WIDE + x];
#pragma unroll
            for (int i = 0; i < SHARE; i++) {
                const floatv quad = tile[row * QUADS + QUAD_READ(i)];
                sum[i].s0 = fma((floatv)(quad.s0), weights, sum[i].s0);
                sum[i].s1 = fma((floatv)(quad.s1), weights, sum[i].s1);
                sum[i].s2 = fma((floatv)(quad.s2), weights, sum[i].s2);
                sum[i].s3 = fma((floatv)(quad.s3), weights, sum[i].s3);
            }
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

#define LOCAL_ARRAYS                                                                               \
    __local floatv panel[PIECE * WIDE], tile[ROWS * PIECE / EACH], scores[ROWS * WIDE]

GPU_KERNEL forward(ATTENTION_OPERANDS, __global TYPE(X) * o, ulong o_at, __global float *saved,
                   ulong saved_at, uint saves)
{
    LOCAL_ARRAYS;
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

    const tokens all_q = {q, q_row, queries, scale}, all_k = {k, k_row, end, 1.0f};
    const tokens all_v = {v, k_row, end, 1.0f};
    clear(sum);
    for (int key = 0; key < end; key += ROWS) {
        dots(score, panel, all_q, first, key == 0, tile, all_k, key);
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
#endif
        weaken(sum, shrink);
        fold(sum, scores, tile, all_v, key);
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
    LOCAL_ARRAYS;
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

    const tokens all_q = {q, q_row, queries, scale}, all_d_o = {d_o, heads * HEAD, queries, 1.0f};
    const tokens all_k = {k, k_row, end, 1.0f}, all_v = {v, k_row, end, 1.0f};
    clear(sum);
    for (int key = 0; key < end; key += ROWS) {
        dots(product, panel, all_d_o, first, true, tile, all_v, key);
        dots(score, panel, all_q, first, true, tile, all_k, key);
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
            score[r] = POWERS_BELOW(score[r], top) * (product[r] - mean);
        share_scores(scores, score);
        fold(sum, scores, tile, all_k, key);
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
    LOCAL_ARRAYS;
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

    const tokens all_k = {k, k_row, keys, 1.0f}, all_v = {v, k_row, keys, 1.0f};
    clear(sum_k);
    clear(sum_v);
    for (uint g = 0; g < group && first < here; g++) {
        ATTENTION_DRAWS(at.row, at.head * group + g);
        const tokens all_q = {q + g * HEAD, q_row, queries, scale};
        const tokens all_d_o = {d_o + g * HEAD, heads * HEAD, queries, 1.0f};
        for (int query = causal ? first : 0; query < (int)queries; query += ROWS) {
            dots(score, panel, all_k, first, true, tile, all_q, query);
            hide_lanes(score, query, queries, first, here, causal);
            dots(product, panel, all_v, first, true, tile, all_d_o, query);
#if DROPOUT
            floatv keep[DEEP];
            keep_lanes(keep, draws, query, first);
#endif
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
                const int row = min(query + y * DEEP + r, (int)queries - 1);
                const float top = LD(STATISTIC, saved, g * queries + row);
                part[r] = POWERS_BELOW(score[r], top);
                score[r] = part[r];
#if DROPOUT
                part[r] *= keep[r];
                product[r] *= keep[r];
#endif
                score[r] *= product[r] - LD(STATISTIC, level, g * queries + row);
            }
            share_scores(scores, part);
            fold(sum_v, scores, tile, all_d_o, query);
            barrier(CLK_LOCAL_MEM_FENCE);
            share_scores(scores, score);
            fold(sum_k, scores, tile, all_q, query);
        }
    }
    if (has_dv)
        unpack(dv + dv_at + K_AT(at.row, at.head), sum_v, k_row, first, keys, (floatv)(1.0f),
               beta_v);
    if (has_dk)
        unpack(dk + dk_at + K_AT(at.row, at.head), sum_k, k_row, first, keys, (floatv)(LN2),
               beta_k);
}
