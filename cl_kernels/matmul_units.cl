/* SPDX-License-Identifier: MIT
 *
 * The matrix product by matrix units:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * A work-group of TEAMS_M x TEAMS_N teams computes EDGE_M x EDGE_N elements of c, over its part of
 * k, in steps of TILE_DEPTH words: it copies a strip of a and a strip of b to local memory, as
 * words of factors (lib/tile_strip.clh), then each team multiplies TILES_M x TILES_N tiles, whose
 * sums stay in registers. Where both operands are aligned, the next strips are loaded meanwhile:
 * into registers or, of operands of 16 bits, into other strips, as they lie (lib/tile_copy.clh).
 * Part p of k writes copy p of c.
 *
 * An operand of more bits than a factor is split: its strip of words (unit_word) is followed by one
 * of rests (unit_rest), and both are multiplied; only the product of two rests, below the last bit,
 * is left out.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; those of lib/tile.clh and lib/epilogue.clh;
 *   A_T, B_T          1: a is stored (k, m), b is stored (n, k)
 *   HAS_BIAS          0: `bias` is not touched
 *   SPLIT_A, SPLIT_B  1: a, b is split
 *   TEAMS_M, TEAMS_N, TILES_M, TILES_N
 *   STAGES            strips of each operand; of more than 1 they are copied as they lie
 */
#define TEAMS (TEAMS_M * TEAMS_N)
#define GROUP (TEAMS * TILE_LANES)
#define EDGE_M (TEAMS_M * TILES_M * TILE_M)
#define EDGE_N (TEAMS_N * TILES_N * TILE_N)
/* Terms of a step; parts of k begin at a multiple of them. */
#define TERMS (TILE_DEPTH * UNIT_PACK)
/* Vectors that a work-item loads at once. */
#define HELD_A STRIP_HELD(EDGE_M, A_TYPE, !A_T, TILE_PAIRED)
#define HELD_B STRIP_HELD(EDGE_N, B_TYPE, B_T, 0)
#define TILE_COPIED (STAGES > 1)
#define TILE_EDGE_A EDGE_M
#define TILE_EDGE_B EDGE_N
#define TILE_ALONG_A !A_T
#define TILE_ALONG_B B_T

#include "lib/epilogue.clh"
#include "lib/tile_strip.clh"

/* Words of a strip; from its first to those of row or column `row`, and there to a lane's. */
#if TILE_COPIED
#include "lib/tile_copy.clh"
#define STRIP_A COPY_WORDS(EDGE_M)
#define STRIP_B COPY_WORDS(EDGE_N)
#define ROW_A(row) copied_row(!A_T, row)
#define ROW_B(row) copied_row(B_T, row)
#define SEAT_A(lane) tile_seat_a(lane)
#define SEAT_B(lane) tile_seat_b(lane)
#define gather copy_gather
#else
#define STRIP_A (EDGE_M * TILE_PITCH_A)
#define STRIP_B (EDGE_N * TILE_PITCH_B)
#define ROW_A(row) ((row)*TILE_PITCH_A)
#define ROW_B(row) ((row)*TILE_PITCH_B)
#define SEAT_A(lane) 0
#define SEAT_B(lane) 0
#define gather strip_gather
#endif
/* Tiles whose products of a step are summed apart, or 0. Units of layout mma round what they add to
 * a sum towards zero, by which a long sum of factors of 32 bits would lose its last digits. */
#define APART (UNIT_PACK == 1 && TILE_LAYOUT_NUMBER == tile_layout_mma ? 2 : 0)
/* Words of the strips of a step. */
#define STRIPS (STRIP_A * (1 + SPLIT_A) + STRIP_B * (1 + SPLIT_B))

#define LIKE_A ((strip){EDGE_M, STRIP_TYPE(A_TYPE), !A_T, SPLIT_A, true, false})
#define LIKE_B ((strip){EDGE_N, STRIP_TYPE(B_TYPE), B_T, SPLIT_B, false, false})

TILE_INLINE void load_columns(tile_b b[TILES_N], const __local uint *columns, uint lane)
{
#pragma unroll TILE_UNROLL
    for (uint q = 0; q < TILES_N; q++)
        b[q] = tile_load_b(columns + ROW_B(q * TILE_N), lane);
}

/* sum += a * b, of `count` tiles. */
TILE_INLINE void multiply_row(tile_c *sum, tile_a a, const tile_b *b, uint count, uint lane)
{
#pragma unroll TILE_UNROLL
    for (uint q = 0; q < count; q++)
        tile_multiply(&sum[q], a, b[q], lane);
}

/* sum += (a + rest_a) * (b + rest_b), without the product of the rests: small products first. */
TILE_INLINE void multiply_split(tile_c *sum, tile_a a, tile_a rest_a, const tile_b *b,
                                const tile_b *rest_b, uint count, uint lane)
{
    if (SPLIT_A)
        multiply_row(sum, rest_a, b, count, lane);
    if (SPLIT_B)
        multiply_row(sum, a, rest_b, count, lane);
    multiply_row(sum, a, b, count, lane);
}

/* The same of a whole row, APART tiles at a time. */
TILE_INLINE void multiply_apart(tile_c sum[TILES_N], tile_a a, tile_a rest_a,
                                const tile_b b[TILES_N], const tile_b rest_b[TILES_N], uint lane)
{
#if APART
#pragma unroll TILE_UNROLL
    for (uint first = 0; first < TILES_N; first += APART) {
        tile_c part[APART];
        tile_clear(part, APART);
        multiply_split(part, a, rest_a, b + first, rest_b + first, APART, lane);
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < APART; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++)
                sum[first + q].v[e] += part[q].v[e];
    }
#else
    multiply_split(sum, a, rest_a, b, rest_b, TILES_N, lane);
#endif
}

/* The strips in local memory; what the lane loads of the team's first row and column; whether c has
 * any there. */
struct strips {
    __local uint *a, *b, *rows, *columns;
    uint lane;
    bool has_tiles;
};

/* sum += the product of the team's rows of a strip of a and its columns of one of b, `stage` words
 * from the first strips on: small products first. */
TILE_INLINE void multiply(tile_c sum[TILES_M][TILES_N], const struct strips *at, uint stage)
{
    const __local uint *rows = at->rows + stage, *columns = at->columns + stage;
    const uint lane = at->lane;
    tile_b b[TILES_N], rest_b[TILES_N];
    if (!at->has_tiles)
        return;
    load_columns(b, columns, lane);
    if (SPLIT_B)
        load_columns(rest_b, columns + STRIP_B, lane);
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++) {
        const __local uint *row = rows + ROW_A(r * TILE_M);
        tile_a a = tile_load_a(row, lane), rest_a = a;
        if (SPLIT_A)
            rest_a = tile_load_a(row + STRIP_A, lane);
        multiply_apart(sum[r], a, rest_a, b, rest_b, lane);
    }
}

/* Whether each row, from element `at` on, begins at a multiple of 16 bytes. */
static inline bool is_aligned(ulong at, ulong row, ulong bytes)
{
    return (at | row) % STRIP_VECTOR(bytes) == 0;
}

#if TILE_COPIED
/* Where the strips of the next step are copied from. */
struct feed {
    copy_queue queue;
    const __global uchar *a[COPY_EACH(EDGE_M)], *b[COPY_EACH(EDGE_N)];
    ulong step_a, step_b;
    uint seat_a, seat_b;
};

TILE_INLINE void copy_step(struct feed *feed, const struct strips *at, uint stage, bool exists)
{
    if (exists) {
        copy_strip(&feed->queue, at->a + stage * STRIPS, LIKE_A, feed->seat_a, feed->a,
                   feed->step_a);
        copy_strip(&feed->queue, at->b + stage * STRIPS, LIKE_B, feed->seat_b, feed->b,
                   feed->step_b);
    }
    copy_commit(&feed->queue);
}
#endif

/* Adds the products of whole steps of aligned operands from l on, and returns where they end: the
 * next strips are loaded while these are multiplied. */
#if TILE_COPIED
TILE_INLINE ulong add_steps(tile_c sum[TILES_M][TILES_N], const struct strips *at,
                            strip_source from_a, strip_source from_b, ulong i, ulong j, ulong l,
                            ulong end)
{
    const uint steps = l < end ? (end - l) / TERMS : 0;
    struct feed feed = {.step_a = strip_step(LIKE_A, from_a),
                        .step_b = strip_step(LIKE_B, from_b),
                        .seat_a = copy_seat(LIKE_A),
                        .seat_b = copy_seat(LIKE_B)};
    copy_aim(feed.a, LIKE_A, from_a, i, l);
    copy_aim(feed.b, LIKE_B, from_b, j, l);
#pragma unroll
    for (uint stage = 0; stage < STAGES - 1; stage++)
        copy_step(&feed, at, stage, stage < steps);
    for (uint first = 0; first < steps; first += STAGES) {
#pragma unroll TILE_UNROLL
        for (uint stage = 0; stage < STAGES; stage++)
            if (first + stage < steps) {
                copy_wait(&feed.queue);
                barrier(CLK_LOCAL_MEM_FENCE);
                copy_step(&feed, at, (stage + STAGES - 1) % STAGES,
                          first + stage + STAGES - 1 < steps);
                multiply(sum, at, stage * STRIPS);
            }
    }
    return l + (ulong)steps * TERMS;
}
#else
TILE_INLINE ulong add_steps(tile_c sum[TILES_M][TILES_N], const struct strips *at,
                            strip_source from_a, strip_source from_b, ulong i, ulong j, ulong l,
                            ulong end)
{
    const uint steps = l < end ? (end - l) / TERMS : 0;
    const ulong step_a = strip_step(LIKE_A, from_a), step_b = strip_step(LIKE_B, from_b);
    const struct strips kept = {tile_kept_words(at->a + strip_seat(LIKE_A)),
                                tile_kept_words(at->b + strip_seat(LIKE_B)),
                                tile_kept_words(at->rows),
                                tile_kept_words(at->columns),
                                at->lane,
                                at->has_tiles};
    uint4 held_a[HELD_A], held_b[HELD_B];
    const __global uchar *next_a[HELD_A], *next_b[HELD_B];
    const __global uchar *first_a = strip_first(LIKE_A, from_a, i, l),
                         *first_b = strip_first(LIKE_B, from_b, j, l);
    uint apart_a[HELD_A], apart_b[HELD_B];
    strip_aim(next_a, LIKE_A, from_a, i, l);
    strip_aim(next_b, LIKE_B, from_b, j, l);
    strip_apart(apart_a, LIKE_A, next_a, first_a);
    strip_apart(apart_b, LIKE_B, next_b, first_b);
    if (steps > 0) {
        strip_load(held_a, LIKE_A, next_a);
        strip_load(held_b, LIKE_B, next_b);
    }
    for (uint left = steps; left > 0; left--) {
        barrier(CLK_LOCAL_MEM_FENCE);
        strip_store(kept.a, LIKE_A, held_a);
        strip_store(kept.b, LIKE_B, held_b);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (left > 1) {
            first_a += step_a;
            first_b += step_b;
            strip_aim_from(next_a, LIKE_A, first_a, apart_a);
            strip_aim_from(next_b, LIKE_B, first_b, apart_b);
            strip_load(held_a, LIKE_A, next_a);
            strip_load(held_b, LIKE_B, next_b);
        }
        multiply(sum, &kept, 0);
    }
    return l + (ulong)steps * TERMS;
}
#endif

/* Finishes what the team has of c, whose first element is (i, j). */
TILE_INLINE void finish_tiles(tile_c sum[TILES_M][TILES_N], __global TYPE(C) * c,
                              const __global TYPE(RESIDUAL) * residual,
                              const __global TYPE(BIAS) * bias, ulong i, ulong j, ulong m, ulong n,
                              epilogue how, uint lane)
{
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++) {
                const ulong row = i + r * TILE_M + tile_row(lane, e);
                const ulong column = j + q * TILE_N + tile_column(lane, e);
                if (row >= m || column >= n)
                    continue;
                float v = sum[r][q].v[e];
#if HAS_BIAS
                if (bias)
                    v += LD(BIAS, bias, column);
#endif
                finish(c, residual, row * n + column, how, v);
            }
}

TILE_KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void
matmul_units(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
             __global const TYPE(BIAS) * bias, ulong bias_at,
             __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
             ulong c_at, ulong m, ulong n, ulong k, ulong part_k, float beta, float slope)
{
    __local uint4 words[STAGES * STRIPS / 4];
    __local uint *strips = (__local uint *)words;
    const uint team = tile_team(get_local_id(0)), lane = get_local_id(0) % TILE_LANES;
    const uint team_i = team / TEAMS_N * TILES_M * TILE_M,
               team_j = team % TEAMS_N * TILES_N * TILE_N;
    /* m may be the rows of a whole micro-batch: only dimension 0 allows so many work-groups. */
    const ulong tiles_m = (m + EDGE_M - 1) / EDGE_M, batches = get_num_groups(0) / tiles_m;
    const ulong batch = get_group_id(0) / tiles_m;
    const epilogue how = {beta, slope};
    a_at += batch * m * k;
    b_at += batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;
    const strip_source from_a = {(const __global uchar *)(a + a_at), m, k};
    const strip_source from_b = {(const __global uchar *)(b + b_at), n, k};

    const ulong i = get_group_id(0) % tiles_m * EDGE_M, j = get_group_id(1) * EDGE_N;
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);
    __local uint *strip_b = strips + STRIP_A * (1 + SPLIT_A);
    const struct strips at = {strips,
                              strip_b,
                              strips + ROW_A(team_i) + SEAT_A(lane),
                              strip_b + ROW_B(team_j) + SEAT_B(lane),
                              lane,
                              i + team_i < m && j + team_j < n};
    const bool aligned =
        is_aligned(a_at, A_T ? m : k, sizeof *a) && is_aligned(b_at, B_T ? k : n, sizeof *b);

    tile_c sum[TILES_M][TILES_N];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
        tile_clear(sum[r], TILES_N);

    ulong l = begin;
    if (aligned)
        l = add_steps(sum, &at, from_a, from_b, i, j, l, end);
    for (; l < end; l += TERMS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        gather(at.a, LIKE_A, from_a, i, l, end);
        gather(at.b, LIKE_B, from_b, j, l, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(sum, &at, 0);
    }
    finish_tiles(sum, c, residual, begin == 0 ? bias : 0, i + team_i, j + team_j, m, n, how, lane);
}
