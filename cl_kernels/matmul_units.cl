/* SPDX-License-Identifier: MIT
 *
 * The matrix product by matrix units:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * A work-group of TEAMS_M x TEAMS_N teams computes EDGE_M x EDGE_N elements of c, over its part of
 * k, in steps of DEPTH words: it copies a strip of a and a strip of b to local memory, as words of
 * factors (lib/tile_factor.clh) with zeros past the edges, then each team multiplies TILES_M x
 * TILES_N tiles, whose sums stay in registers. Part p of k writes copy p of c.
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
 */
#include "lib/epilogue.clh"
#include "lib/tile.clh"

#define TEAMS (TEAMS_M * TEAMS_N)
#define GROUP (TEAMS * TILE_LANES)
#define EDGE_M (TEAMS_M * TILES_M * TILE_M)
#define EDGE_N (TEAMS_N * TILES_N * TILE_N)
#define DEPTH (2 * TILE_WORDS)
/* Words from one row of a strip to the next; the 4 extra words spread a team's loads over the banks
 * of local memory. */
#define PITCH (DEPTH + 4)
#define STRIP_A (EDGE_M * PITCH)
#define STRIP_B (EDGE_N * PITCH)

/* Position along the strip's edge (PLACE) and along k (INNER) of word w of a strip; words are in
 * the order of memory, so that neighbouring work-items read neighbouring addresses. */
#define PLACE(along_k, w, edge) ((along_k) ? (w) / DEPTH : (w) % (edge))
#define INNER(along_k, w, edge) ((along_k) ? (w) % DEPTH : (w) / (edge))

static inline void load_a(__local uint *to, __global const TYPE(A) * a, ulong m, ulong k, ulong i,
                          ulong l, ulong end)
{
    for (uint w = get_local_id(0); w < EDGE_M * DEPTH; w += GROUP) {
        const uint place = PLACE(!A_T, w, EDGE_M), inner = INNER(!A_T, w, EDGE_M);
        const ulong row = i + place;
        float v[UNIT_PACK];
        for (uint e = 0; e < UNIT_PACK; e++) {
            const ulong at = l + inner * UNIT_PACK + e;
            v[e] = 0.0f;
            if (row < m && at < end)
                v[e] = LD(A, a, A_T ? at * m + row : row * k + at);
        }
        to[place * PITCH + inner] = unit_word(v);
#if SPLIT_A
        to[STRIP_A + place * PITCH + inner] = unit_rest(v);
#endif
    }
}

static inline void load_b(__local uint *to, __global const TYPE(B) * b, ulong n, ulong k, ulong j,
                          ulong l, ulong end)
{
    for (uint w = get_local_id(0); w < EDGE_N * DEPTH; w += GROUP) {
        const uint place = PLACE(B_T, w, EDGE_N), inner = INNER(B_T, w, EDGE_N);
        const ulong column = j + place;
        float v[UNIT_PACK];
        for (uint e = 0; e < UNIT_PACK; e++) {
            const ulong at = l + inner * UNIT_PACK + e;
            v[e] = 0.0f;
            if (column < n && at < end)
                v[e] = LD(B, b, B_T ? column * k + at : at * n + column);
        }
        to[place * PITCH + inner] = unit_word(v);
#if SPLIT_B
        to[STRIP_B + place * PITCH + inner] = unit_rest(v);
#endif
    }
}

/* sum += the product of the team's rows of strip a and its columns of strip b. */
static inline void multiply(tile_c sum[TILES_M][TILES_N], const __local uint *rows,
                            const __local uint *columns, uint lane)
{
#pragma unroll TILE_UNROLL
    for (uint d = 0; d < DEPTH; d += TILE_WORDS) {
        tile_a a[TILES_M];
        tile_b b[TILES_N];
#pragma unroll TILE_UNROLL
        for (uint r = 0; r < TILES_M; r++)
            a[r] = tile_load_a(rows + r * TILE_M * PITCH + d, PITCH, lane);
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
            b[q] = tile_load_b(columns + q * TILE_N * PITCH + d, PITCH, lane);
#pragma unroll TILE_UNROLL
        for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
            for (uint q = 0; q < TILES_N; q++)
                tile_multiply(&sum[r][q], a[r], b[q], lane);
    }
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void
matmul_units(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
             __global const TYPE(BIAS) * bias, ulong bias_at,
             __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
             ulong c_at, ulong m, ulong n, ulong k, ulong part_k, float beta, float slope)
{
    __local uint strip_a[STRIP_A * (1 + SPLIT_A)], strip_b[STRIP_B * (1 + SPLIT_B)];
    const uint team = get_local_id(0) / TILE_LANES, lane = get_local_id(0) % TILE_LANES;
    const uint team_i = team / TEAMS_N * TILES_M * TILE_M,
               team_j = team % TEAMS_N * TILES_N * TILE_N;
    const __local uint *rows = strip_a + team_i * PITCH, *columns = strip_b + team_j * PITCH;
    /* m may be the rows of a whole micro-batch: only dimension 0 allows so many work-groups. */
    const ulong tiles_m = (m + EDGE_M - 1) / EDGE_M, batches = get_num_groups(0) / tiles_m;
    const ulong batch = get_group_id(0) / tiles_m;
    const epilogue how = {beta, slope};
    a += a_at + batch * m * k;
    b += b_at + batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong i = get_group_id(0) % tiles_m * EDGE_M, j = get_group_id(1) * EDGE_N;
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);
    const bool has_tiles = i + team_i < m && j + team_j < n;

    tile_c sum[TILES_M][TILES_N];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
            for (uint e = 0; e < TILE_EACH; e++)
                sum[r][q].v[e] = 0.0f;
    for (ulong l = begin; l < end; l += DEPTH * UNIT_PACK) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_a(strip_a, a, m, k, i, l, end);
        load_b(strip_b, b, n, k, j, l, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!has_tiles)
            continue;
#if SPLIT_A
        multiply(sum, rows + STRIP_A, columns, lane);
#endif
#if SPLIT_B
        multiply(sum, rows, columns + STRIP_B, lane);
#endif
        multiply(sum, rows, columns, lane);
    }

#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++) {
                const ulong row = i + team_i + r * TILE_M + tile_row(lane, e);
                const ulong column = j + team_j + q * TILE_N + tile_column(lane, e);
                if (row >= m || column >= n)
                    continue;
                float v = sum[r][q].v[e];
#if HAS_BIAS
                if (begin == 0)
                    v += LD(BIAS, bias, column);
#endif
                finish(c, residual, row * n + column, how, v);
            }
}
