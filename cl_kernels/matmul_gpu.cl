/* SPDX-License-Identifier: MIT
 *
 * The matrix product in the shape that GPUs want:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * A work-group of SIDE x SIDE work-items computes TILE x TILE elements of c, over its part of k, in
 * steps of DEPTH: it copies a strip of a and a strip of b to local memory, as f32 and with zeros
 * past the edges, then each work-item multiplies EACH rows by one vector of EACH columns, whose
 * sums stay in registers. Part p of k writes the p-th copy of c.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; QN_V is EACH;
 *   A_T, B_T     1: a is stored (k, m), b is stored (n, k)
 *   HAS_BIAS     0: `bias` is not touched
 *   those of lib/epilogue.clh
 */
#include "lib/epilogue.clh"

#define SIDE 16
#define EACH QN_V
#define TILE (SIDE * EACH)
#define DEPTH 16
/* Floats from one l to the next in local memory; the odd vector spreads a column over the banks. */
#define PITCH (TILE + EACH)

/* Element w of a strip in the order in which the operand is stored, so that neighbouring work-items
 * read neighbouring addresses: its place along the tile's edge and its place along k. */
#define EDGE(rows_along_k, w) ((rows_along_k) ? (w) / DEPTH : (w) % TILE)
#define INNER(rows_along_k, w) ((rows_along_k) ? (w) % DEPTH : (w) / TILE)

static inline void load_a(__local float *to, __global const TYPE(A) *a, ulong m, ulong k, ulong i,
                          ulong l, ulong end)
{
    const uint id = get_local_id(1) * SIDE + get_local_id(0);
    for (uint w = id; w < TILE * DEPTH; w += SIDE * SIDE) {
        const uint edge = EDGE(!A_T, w), inner = INNER(!A_T, w);
        const ulong row = i + edge, at = l + inner;
        float v = 0.0f;
        if (row < m && at < end)
            v = LD(A, a, A_T ? at * m + row : row * k + at);
        to[inner * PITCH + edge] = v;
    }
}

static inline void load_b(__local float *to, __global const TYPE(B) *b, ulong n, ulong k, ulong j,
                          ulong l, ulong end)
{
    const uint id = get_local_id(1) * SIDE + get_local_id(0);
    for (uint w = id; w < TILE * DEPTH; w += SIDE * SIDE) {
        const uint edge = EDGE(B_T, w), inner = INNER(B_T, w);
        const ulong column = j + edge, at = l + inner;
        float v = 0.0f;
        if (column < n && at < end)
            v = LD(B, b, B_T ? column * k + at : at * n + column);
        to[inner * PITCH + edge] = v;
    }
}

__attribute__((reqd_work_group_size(SIDE, SIDE, 1))) __kernel void
matmul_gpu(__global const TYPE(A) *a, ulong a_at, __global const TYPE(B) *b, ulong b_at,
           __global const TYPE(BIAS) *bias, ulong bias_at, __global const TYPE(RESIDUAL) *residual,
           ulong residual_at, __global TYPE(C) *c, ulong c_at, ulong m, ulong n, ulong k,
           ulong part_k, float beta, float slope)
{
    __local floatv strip_a[DEPTH * PITCH / EACH], strip_b[DEPTH * PITCH / EACH];
    const int x = get_local_id(0), y = get_local_id(1);
    /* m may be the rows of a whole micro-batch: dimension 0 has no bound that matters. */
    const ulong tiles_m = (m + TILE - 1) / TILE, batches = get_num_groups(0) / tiles_m;
    const ulong batch = get_group_id(0) / tiles_m;
    const epilogue how = {beta, slope};
    a += a_at + batch * m * k;
    b += b_at + batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong i = get_group_id(0) % tiles_m * TILE, j = get_group_id(1) * TILE;
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);

    floatv sum[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++)
        sum[r] = (floatv)(0.0f);
    for (ulong l = begin; l < end; l += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_a((__local float *)strip_a, a, m, k, i, l, end);
        load_b((__local float *)strip_b, b, n, k, j, l, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < DEPTH; d++) {
            const __local float *factor = (const __local float *)strip_a + d * PITCH + y * EACH;
            const floatv columns = strip_b[d * (PITCH / EACH) + x];
#pragma unroll
            for (int r = 0; r < EACH; r++)
                sum[r] = fma((floatv)(factor[r]), columns, sum[r]);
        }
    }

    const ulong column = j + x * EACH;
    for (int r = 0; r < EACH; r++) {
        const ulong row = i + y * EACH + r;
        if (row < m && column + EACH <= n) {
            floatv v = sum[r];
#if HAS_BIAS
            if (begin == 0)
                v += LDV(BIAS, bias, column);
#endif
            finish_vector(c, residual, row * n + column, how, v);
        } else if (row < m) {
            float v[EACH];
            QN_PASTE(vstore, QN_V)(sum[r], 0, v);
            for (ulong e = 0; column + e < n; e++) {
#if HAS_BIAS
                if (begin == 0)
                    v[e] += LD(BIAS, bias, column + e);
#endif
                finish(c, residual, row * n + column + e, how, v[e]);
            }
        }
    }
}
