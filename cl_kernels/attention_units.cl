/* SPDX-License-Identifier: MIT
 *
 * Attention by matrix units, for operands of 16 bits, with sums, softmax and statistics in f32. A
 * work-group of TEAMS_M x TEAMS_N teams takes BLOCK tokens, a tile's rows for each of TEAMS_M, and
 * goes through the tokens of the other side in steps of STEP. The scores of a step stay in
 * registers, each team those of its rows and of STEP / TEAMS_N columns. As factors of the next
 * product they are rounded to the type of the operands, and stay there where tiles of c turn into
 * a strip (TURNED); elsewhere they go through local memory. The gradient of a score beyond the
 * largest f16 becomes an infinity, as one beyond it in memory does.
 *
 * Products are of strips (lib/tile_strip.clh). What is multiplied along the head is copied as it
 * is, HEAD / STEP strips of tokens; what is multiplied along the tokens is copied transposed, one
 * strip of the head's elements; the scores of a step are one strip, too. Tokens past the last one
 * repeat it, and are hidden or never stored.
 *
 * Options beside those of lib/attention.clh and lib/tile.clh: GRADIENT, 1: the kernels of
 * gradients; TEAMS_M, TEAMS_N; APART, 1: what a step takes is copied at once, each to a place of
 * its own, 0: to the same place, one after another. HEAD is a multiple of STEP, X_TYPE f16 or bf16,
 * and all offsets are multiples of 8 elements.
 */
#define UNIT_TYPE X_TYPE
#define GROUP (TEAMS_M * TEAMS_N * TILE_LANES)
#define ROWS_TEAMS TEAMS_N
#define BLOCK (TEAMS_M * TILE_M)
#define STEP (TILE_DEPTH * UNIT_PACK)
/* Strips along the head; words of one of a block, and of all that a step takes. */
#define ALONG_HEAD (HEAD / STEP)
#define BLOCK_STRIP (BLOCK * TILE_PITCH_A)
#define STEP_STRIPS (HEAD * TILE_PITCH_B)
/* Tiles of a team: columns of its scores and of its sums. */
#define SCORES (STEP / TEAMS_N / TILE_N)
#define SUMS (HEAD / TEAMS_N / TILE_N)

#include "lib/attention.clh"
#include "lib/tile_rows.clh"
#include "lib/tile_strip.clh"

/* 1: a team has all scores of its rows, which turn into a strip. */
#define TURNED (TILE_TURNS && TEAMS_N == 1)
#define LIKE_BLOCK ((strip){BLOCK, STRIP_TYPE(X_TYPE), true, false, true, false})
#define LIKE_ROWS ((strip){STEP, STRIP_TYPE(X_TYPE), true, false, false, TURNED})
#define LIKE_COLUMNS ((strip){HEAD, STRIP_TYPE(X_TYPE), false, false, false, false})
/* Vectors that a work-item holds of a strip. */
#define HELD_BLOCK STRIP_HELD(BLOCK, X_TYPE, 1, TILE_PAIRED)
#define HELD_ROWS STRIP_HELD(STEP, X_TYPE, 1, 0)
#define HELD_COLUMNS STRIP_HELD(HEAD, X_TYPE, 0, 0)
#define HELD (HELD_BLOCK > HELD_ROWS ? HELD_BLOCK : HELD_ROWS)
/* Blocks of a kernel, and how many of them its teams hold in registers, as many as leave these
 * enough (src/ops/attention_units.c knows them, too). */
#define BLOCKS (1 + GRADIENT)
#if TILE_UNITS && TILE_LAYOUT_NUMBER == tile_layout_mfma
#define HELD_BLOCKS BLOCKS
#elif TILE_UNITS && TILE_LAYOUT_NUMBER == tile_layout_wmma
#define HELD_BLOCKS 1
#else
#define HELD_BLOCKS 0
#endif
#define BLOCK_STRIPS (ALONG_HEAD * BLOCK_STRIP)
/* 1: what is copied next is loaded EARLY, where registers are left for that; otherwise LATE. */
#if TILE_UNITS && TILE_LAYOUT_NUMBER == tile_layout_mma && HEAD <= 64
#define AHEAD 1
#else
#define AHEAD 0
#endif
/* Scores of a block as factors, or what its rows' lanes have before they meet. */
#define SCORE_WORDS (BLOCK * (TILE_PITCH_A > ROWS_PITCH ? TILE_PITCH_A : ROWS_PITCH))
/* Copies that a step takes at most, and where the n-th lies among `strips`. */
#define COPIES (GRADIENT ? 4 : 2)
#define COPY(n) (strips + (APART ? (n)*STEP_STRIPS : 0))
#define COPY_WORDS ((APART ? COPIES : 1) * STEP_STRIPS)
#define LOCAL_WORDS (COPY_WORDS + SCORE_WORDS + (BLOCKS - HELD_BLOCKS) * BLOCK_STRIPS)
/* The strips of a step, its scores as factors, and the blocks that are not held. */
#define DECLARE_LOCAL(words, strips, scores, blocks)                                               \
    __local uint words[LOCAL_WORDS] __attribute__((aligned(16)));                                  \
    __local uint *strips = words, *scores = strips + COPY_WORDS, *blocks = scores + SCORE_WORDS;
#define UNITS_KERNEL TILE_KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void

/* A work-item's place: in its team, the team's first row, and its number among those of the row. */
typedef struct {
    uint lane, row, part;
} seat;

static inline seat seat_of(uint id)
{
    const uint team = tile_team(id);
    const seat at = {id % TILE_LANES, team / TEAMS_N * TILE_M, team % TEAMS_N};
    return at;
}

/* A barrier, where it is needed. */
TILE_INLINE void barrier_if(bool needed)
{
    if (needed)
        barrier(CLK_LOCAL_MEM_FENCE);
}

#include "lib/attention_scores.clh"

/* Whether a group waits until its rows have met, and until scores lie in local memory. */
#if APART && ROWS_MEET
#define ROWS_WAIT false
#else
#define ROWS_WAIT true
#endif
#if APART && SCORES_HELD
#define SCORES_WAIT false
#else
#define SCORES_WAIT true
#endif

#if !GRADIENT
/* To the strips of the step from `key` on: rows of k and, if it is apart, columns of v. */
TILE_INLINE void copy_step(held_step *held, __local uint *strips, __global const TYPE(X) * k,
                           __global const TYPE(X) * v, ulong pitch, int key, int end)
{
    const int next = min(key + STEP, end - 1);
    load_rows(held, LATE, k, pitch, key, end);
    store_rows(COPY(0), held);
    if (APART) {
        load_columns(held, LATE, v, pitch, key, end);
        store_columns(COPY(1), held);
        load_rows(held, EARLY, k, pitch, next, end);
    }
    load_columns(held, EARLY, v, pitch, APART ? next : key, end);
}

UNITS_KERNEL forward(ATTENTION_OPERANDS, __global TYPE(X) * o, ulong o_at, __global float *saved,
                     ulong saved_at, uint saves)
{
    DECLARE_LOCAL(words, strips, scores, blocks)
#if DROPOUT
    __local uchar kept[BLOCK * STEP / 4];
#endif
    const seat at = seat_of(get_local_id(0));
    const attention_place place =
        attention_at(get_group_id(0), (queries + BLOCK - 1) / BLOCK, heads, causal);
    const int first = place.block * BLOCK;
    const int here =
        has_lengths ? attention_keys(lengths + lengths_at, place.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(place.row, place.head);
    q += q_at + Q_AT(place.row, place.head);
    k += k_at + K_AT(place.row, place.head / group);
    v += v_at + K_AT(place.row, place.head / group);

    const meeting_rows rows = {scores, at.row, at.part};
    block_rows block;
    held_step held;
    tile_c sum[SUMS], score[SCORES];
    float top[TILE_ROWS], total[TILE_ROWS], most[TILE_ROWS];
#pragma unroll
    for (uint r = 0; r < TILE_ROWS; r++) {
        top[r] = LOWEST;
        total[r] = 0.0f;
    }
    tile_clear(sum, SUMS);
    copy_block(&block, 0, scores, blocks, q, q_row, first, queries, at);
    if (end > 0) {
        load_rows(&held, EARLY, k, k_row, 0, end);
        if (APART)
            load_columns(&held, EARLY, v, k_row, 0, end);
    }
    for (int key = 0; key < end; key += STEP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        copy_step(&held, strips, k, v, k_row, key, end);
#if DROPOUT
        draw(kept, draws, first, BLOCK, key, STEP);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        dots(score, &block, COPY(0), at);
        times(score, scale);
        hide_keys(score, at, first, key, end, causal);
        largest(most, score);
        rows_put(rows, most, at.lane, rows_maximum);
        barrier_if(ROWS_WAIT);
        if (!APART) {
            load_columns(&held, LATE, v, k_row, key, end);
            store_columns(COPY(1), &held);
            load_rows(&held, EARLY, k, k_row, min(key + STEP, end - 1), end);
        }
        soften(score, sum, top, total, most, rows, at.lane);
#if DROPOUT
        drop(score, kept, at, rate, false);
#endif
        barrier_if(!ROWS_MEET);
        const score_factors factors = put_scores(scores, score, at);
        barrier_if(SCORES_WAIT);
        fold(sum, factors, COPY(1), at);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    rows_put(rows, total, at.lane, rows_sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    saved += saved_at + STATISTIC_AT(place.row, place.head);
#pragma unroll
    for (uint r = 0; r < TILE_ROWS; r++) {
        const float all = row_sum(total[r], rows, at.lane, r);
        const int query = first + (int)score_row(at, r * TILE_SIDE);
        total[r] = all == 0.0f ? 0.0f : 1.0f / all;
        if (saves && at.part == 0 && tile_column(at.lane, 0) == 0 && query < (int)queries)
            ST(STATISTIC, saved, query, all == 0.0f ? 0.0f : top[r] + log2(all));
    }
    store(o + o_at + O_AT(place.row, place.head), sum, at, heads * HEAD, first, queries, total,
          0.0f);
}

#else
/* To the strips of the step from `key` on: rows of v and, if they are apart, rows and columns of k.
 */
TILE_INLINE void copy_step(held_step *held_v, held_step *held, __local uint *strips,
                           __global const TYPE(X) * v, __global const TYPE(X) * k, ulong pitch,
                           int key, int end)
{
    const int next = min(key + STEP, end - 1);
    load_rows(held_v, LATE, v, pitch, key, end);
    store_rows(COPY(0), held_v);
    if (APART) {
        load_rows(held, LATE, k, pitch, key, end);
        store_rows(COPY(1), held);
        load_columns(held, LATE, k, pitch, key, end);
        store_columns(COPY(2), held);
        load_rows(held_v, EARLY, v, pitch, next, end);
        load_columns(held, EARLY, k, pitch, next, end);
    }
    load_rows(held, EARLY, k, pitch, APART ? next : key, end);
}

/* Where they are not: rows of k, and then its columns. */
TILE_INLINE void copy_key_rows(held_step *held, __local uint *strip, __global const TYPE(X) * k,
                               ulong pitch, int key, int end)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    load_rows(held, LATE, k, pitch, key, end);
    store_rows(strip, held);
    load_columns(held, EARLY, k, pitch, key, end);
    barrier(CLK_LOCAL_MEM_FENCE);
}

TILE_INLINE void copy_key_columns(held_step *held, __local uint *strip, __global const TYPE(X) * k,
                                  ulong pitch, int key, int end)
{
    load_columns(held, LATE, k, pitch, key, end);
    store_columns(strip, held);
    barrier(CLK_LOCAL_MEM_FENCE);
}

UNITS_KERNEL query_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                            __global const float *saved, ulong saved_at,
                            __global const float *level, ulong level_at, __global TYPE(X) * dq,
                            ulong dq_at, float beta)
{
    DECLARE_LOCAL(words, strips, scores, blocks)
#if DROPOUT
    __local uchar kept[BLOCK * STEP / 4];
#endif
    const seat at = seat_of(get_local_id(0));
    const attention_place place =
        attention_at(get_group_id(0), (queries + BLOCK - 1) / BLOCK, heads, causal);
    const int first = place.block * BLOCK;
    const int here =
        has_lengths ? attention_keys(lengths + lengths_at, place.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(place.row, place.head);
    q += q_at + Q_AT(place.row, place.head);
    k += k_at + K_AT(place.row, place.head / group);
    v += v_at + K_AT(place.row, place.head / group);
    d_o += d_o_at + O_AT(place.row, place.head);
    saved += saved_at + STATISTIC_AT(place.row, place.head);
    level += level_at + STATISTIC_AT(place.row, place.head);

    block_rows block, block_o;
    held_step held, held_v;
    tile_c sum[SUMS], score[SCORES], product[SCORES];
    float top[TILE_ROWS], mean[TILE_ROWS], factor[TILE_ROWS];
#pragma unroll
    for (uint r = 0; r < TILE_ROWS; r++) {
        const int query = min(first + (int)score_row(at, r * TILE_SIDE), (int)queries - 1);
        top[r] = LD(STATISTIC, saved, query);
        mean[r] = LD(STATISTIC, level, query);
        factor[r] = scale * LN2;
    }
    tile_clear(sum, SUMS);
    copy_block(&block_o, 0, scores, blocks, d_o, heads * HEAD, first, queries, at);
    copy_block(&block, 1, scores, blocks, q, q_row, first, queries, at);
    if (end > 0) {
        load_rows(&held_v, EARLY, v, k_row, 0, end);
        if (APART) {
            load_rows(&held, EARLY, k, k_row, 0, end);
            load_columns(&held, EARLY, k, k_row, 0, end);
        }
    }
    for (int key = 0; key < end; key += STEP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        copy_step(&held_v, &held, strips, v, k, k_row, key, end);
#if DROPOUT
        draw(kept, draws, first, BLOCK, key, STEP);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        dots(product, &block_o, COPY(0), at);
        if (!APART)
            copy_key_rows(&held, COPY(1), k, k_row, key, end);
        dots(score, &block, COPY(1), at);
        times(score, scale);
        hide_keys(score, at, first, key, end, causal);
#if DROPOUT
        drop(product, kept, at, rate, false);
#endif
#pragma unroll
        for (uint q = 0; q < SCORES; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++)
                score[q].v[e] = power_below(score[q].v[e], top[e / TILE_SIDE]) *
                                (product[q].v[e] - mean[e / TILE_SIDE]);
        const score_factors factors = put_scores(scores, score, at);
        barrier_if(SCORES_WAIT);
        if (!APART) {
            copy_key_columns(&held, COPY(2), k, k_row, key, end);
            load_rows(&held_v, EARLY, v, k_row, min(key + STEP, end - 1), end);
        }
        fold(sum, factors, COPY(2), at);
    }
    store(dq + dq_at + Q_AT(place.row, place.head), sum, at, q_row, first, queries, factor, beta);
}

/* What a step takes beside rows of q: rows and columns of d_o, and columns of q. */
TILE_INLINE void copy_others(__local uint *strips, __global const TYPE(X) * q, ulong q_pitch,
                             __global const TYPE(X) * d_o, ulong o_pitch, int query, int queries)
{
    copy_rows(COPY(1), d_o, o_pitch, query, queries);
    copy_columns(COPY(2), d_o, o_pitch, query, queries);
    copy_columns(COPY(3), q, q_pitch, query, queries);
}

UNITS_KERNEL key_value_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                                __global const float *saved, ulong saved_at,
                                __global const float *level, ulong level_at, __global TYPE(X) * dk,
                                ulong dk_at, __global TYPE(X) * dv, ulong dv_at, uint has_dk,
                                uint has_dv, float beta_k, float beta_v)
{
    DECLARE_LOCAL(words, strips, scores, blocks)
    __local float top[STEP], mean[STEP];
#if DROPOUT
    __local uchar kept[STEP * BLOCK / 4];
#endif
    const seat at = seat_of(get_local_id(0));
    const attention_place place =
        attention_at(get_group_id(0), (keys + BLOCK - 1) / BLOCK, heads / group, false);
    const int first = place.block * BLOCK;
    const int here =
        has_lengths ? attention_keys(lengths + lengths_at, place.row, keys) : (int)keys;
    k += k_at + K_AT(place.row, place.head);
    v += v_at + K_AT(place.row, place.head);
    q += q_at + Q_AT(place.row, place.head * group);
    d_o += d_o_at + O_AT(place.row, place.head * group);
    saved += saved_at + STATISTIC_AT(place.row, place.head * group);
    level += level_at + STATISTIC_AT(place.row, place.head * group);

    block_rows block, block_v;
    tile_c sum_k[SUMS], sum_v[SUMS], score[SCORES], product[SCORES];
    float factor_k[TILE_ROWS], factor_v[TILE_ROWS];
#pragma unroll
    for (uint r = 0; r < TILE_ROWS; r++) {
        factor_k[r] = scale * LN2;
        factor_v[r] = 1.0f;
    }
    tile_clear(sum_k, SUMS);
    tile_clear(sum_v, SUMS);
    copy_block(&block, 0, scores, blocks, k, k_row, first, max(here, 1), at);
    copy_block(&block_v, 1, scores, blocks, v, k_row, first, max(here, 1), at);
    for (uint g = 0; g < group && first < here; g++) {
        ATTENTION_DRAWS(place.row, place.head * group + g);
        __global const TYPE(X) *q_head = q + g * HEAD, *d_o_head = d_o + g * HEAD;
        for (int query = causal ? first : 0; query < (int)queries; query += STEP) {
            barrier(CLK_LOCAL_MEM_FENCE);
            copy_rows(COPY(0), q_head, q_row, query, queries);
            if (APART)
                copy_others(strips, q_head, q_row, d_o_head, heads * HEAD, query, queries);
            copy_statistic(top, saved + g * queries, query, queries);
            copy_statistic(mean, level + g * queries, query, queries);
#if DROPOUT
            draw(kept, draws, query, STEP, first, BLOCK);
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
            dots(score, &block, COPY(0), at);
            barrier_if(!APART);
            if (!APART)
                copy_rows(COPY(1), d_o_head, heads * HEAD, query, queries);
            times(score, scale);
            hide_queries(score, at, first, here, query, queries, causal);
            barrier_if(!APART);
            dots(product, &block_v, COPY(1), at);
#if DROPOUT
            drop(product, kept, at, rate, true);
#endif
            differentiate(score, product, top, mean, at);
#if DROPOUT
            drop(score, kept, at, rate, true);
#endif
            score_factors factors = put_scores(scores, score, at);
            barrier_if(SCORES_WAIT);
            if (!APART) {
                copy_columns(COPY(2), d_o_head, heads * HEAD, query, queries);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            fold(sum_v, factors, COPY(2), at);
            barrier_if(SCORES_WAIT);
            if (!APART)
                copy_columns(COPY(3), q_head, q_row, query, queries);
            factors = put_scores(scores, product, at);
            barrier_if(SCORES_WAIT);
            fold(sum_k, factors, COPY(3), at);
        }
    }
    if (has_dv)
        store(dv + dv_at + K_AT(place.row, place.head), sum_v, at, k_row, first, keys, factor_v,
              beta_v);
    if (has_dk)
        store(dk + dk_at + K_AT(place.row, place.head), sum_k, at, k_row, first, keys, factor_k,
              beta_k);
}
#endif
