/* SPDX-License-Identifier: MIT
 *
 * The matrix product for GPUs:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * A work-group of SIDE x SIDE work-items computes TILE x TILE elements of c, over its part of k, in
 * steps of DEPTH: it copies a strip of a and a strip of b to local memory, one vector a work-item,
 * as f32 and with zeros past the edges, then each work-item multiplies EACH rows by one vector of
 * EACH columns, whose sums stay in registers. Part p of k writes copy p of c.
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
#define DEPTH SIDE /* a strip is one vector for each work-item */
/* Floats from one l to the next in local memory; the odd vector spreads a column over the banks. */
#define PITCH (TILE + EACH)

/* EACH neighbours of an operand from element `at` on, of which `rest` exist, then zeros. `aligned`:
 * every `at` is a multiple of EACH, so that one aligned load does it. */
#define DEFINE_LOAD(X)                                                                             \
    static inline floatv load_##X(__global const TYPE(X) * p, ulong at, ulong rest, bool aligned)  \
    {                                                                                              \
        float v[EACH];                                                                             \
        if (rest >= EACH)                                                                          \
            return aligned ? LDA(X, p, at) : LDV(X, p, at);                                        \
        for (ulong e = 0; e < EACH; e++)                                                           \
            v[e] = e < rest ? LD(X, p, at + e) : 0.0f;                                             \
        return QN_PASTE(vload, QN_V)(0, v);                                                        \
    }
DEFINE_LOAD(A)
DEFINE_LOAD(B)

/* Position along the tile's edge (EDGE) and along k (INNER) of the vector of a strip that work-item
 * `id` copies. Neighbouring work-items copy neighbours in memory. */
#define EDGE(along_k, id) ((along_k) ? (id) / (DEPTH / EACH) : (id) % SIDE * EACH)
#define INNER(along_k, id) ((along_k) ? (id) % (DEPTH / EACH) * EACH : (id) / SIDE)

static inline void put(__local floatv *strip, uint edge, uint inner, bool along_k, floatv v)
{
    if (!along_k) {
        strip[(inner * PITCH + edge) / EACH] = v;
        return;
    }
    float element[EACH];
    QN_PASTE(vstore, QN_V)(v, 0, element);
    for (uint e = 0; e < EACH; e++)
        ((__local float *)strip)[(inner + e) * PITCH + edge] = element[e];
}

static inline void copy_a(__local floatv *to, __global const TYPE(A) * a, ulong m, ulong k, ulong i,
                          ulong l, ulong end, bool aligned)
{
    const uint id = get_local_id(1) * SIDE + get_local_id(0);
    const uint edge = EDGE(!A_T, id), inner = INNER(!A_T, id);
    const ulong row = i + edge, at = l + inner;
    floatv v = (floatv)(0.0f);
    if (row < m && at < end)
        v = A_T ? load_A(a, at * m + row, m - row, aligned)
                : load_A(a, row * k + at, end - at, aligned);
    put(to, edge, inner, !A_T, v);
}

static inline void copy_b(__local floatv *to, __global const TYPE(B) * b, ulong n, ulong k, ulong j,
                          ulong l, ulong end, bool aligned)
{
    const uint id = get_local_id(1) * SIDE + get_local_id(0);
    const uint edge = EDGE(B_T, id), inner = INNER(B_T, id);
    const ulong column = j + edge, at = l + inner;
    floatv v = (floatv)(0.0f);
    if (column < n && at < end)
        v = B_T ? load_B(b, column * k + at, end - at, aligned)
                : load_B(b, at * n + column, n - column, aligned);
    put(to, edge, inner, B_T, v);
}

__attribute__((reqd_work_group_size(SIDE, SIDE, 1))) __kernel void
matmul_gpu(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
           __global const TYPE(BIAS) * bias, ulong bias_at,
           __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
           ulong c_at, ulong m, ulong n, ulong k, ulong part_k, float beta, float slope)
{
    __local floatv strip_a[DEPTH * PITCH / EACH], strip_b[DEPTH * PITCH / EACH];
    const int x = get_local_id(0), y = get_local_id(1);
    /* m may be the rows of a whole micro-batch: only dimension 0 allows so many work-groups. */
    const ulong tiles_m = (m + TILE - 1) / TILE, batches = get_num_groups(0) / tiles_m;
    const ulong batch = get_group_id(0) / tiles_m;
    const epilogue how = {beta, slope};
    a_at += batch * m * k;
    b_at += batch * k * n;
    const bool aligned_a = (a_at | (A_T ? m : k)) % EACH == 0;
    const bool aligned_b = (b_at | (B_T ? k : n)) % EACH == 0;
    a += a_at;
    b += b_at;
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
        copy_a(strip_a, a, m, k, i, l, end, aligned_a);
        copy_b(strip_b, b, n, k, j, l, end, aligned_b);
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
#pragma unroll
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
#pragma unroll
            for (ulong e = 0; e < EACH; e++) {
                if (column + e < n) {
#if HAS_BIAS
                    if (begin == 0)
                        v[e] += LD(BIAS, bias, column + e);
#endif
                    finish(c, residual, row * n + column + e, how, v[e]);
                }
            }
        }
    }
}
