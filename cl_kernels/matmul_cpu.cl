/* SPDX-License-Identifier: MIT
 *
 * The matrix product for CPUs:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * One work-item is one work-group. It computes a tile of tile_m x tile_n elements of c, over its
 * part of k (part p writes copy p of c), KC elements of k at a time: it packs tile_m x KC of a,
 * then walks the tile in column panels of NV vectors. A panel of b is packed, and multiplied with
 * all rows while it is in the first cache. The innermost loop multiplies MR rows by NV vectors,
 * whose sums stay in registers and are then added to those of the KC elements before.
 *
 * Packing turns every type into f32, brings strided elements side by side, and alone handles edges:
 * rows and columns past the end repeat the last one or are 0, and are never stored.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; QN_V;
 *   A_T, B_T     1: a is stored (k, m), b is stored (n, k)
 *   those of lib/finish_tile.clh
 *   MR, NV       rows and vectors of the register tile; QN_V is MR or 2 * MR
 *   MC, NC, KC   bounds of tile_m, tile_n (multiples of QN_V and NV * QN_V) and of packed k
 */
#include "lib/finish_tile.clh"
#include "lib/shuffle.clh"

#define NR (NV * QN_V)

/* Index of packed element (row, l) of a. If a is stored (m, k), packed rows are rows; if (k, m),
 * panels of MR rows: packing stores whole vectors in both cases. */
#if A_T
#define A_AT(row, l) ((row) / MR * MR * KC + (l)*MR + (row) % MR)
#define A_STEP_ROW 1
#define A_STEP_L MR
#else
#define A_AT(row, l) ((row)*KC + (l))
#define A_STEP_ROW KC
#define A_STEP_L 1
#endif

/* Rows of whole register tiles. */
static inline int padded(int rows)
{
    return (rows + MR - 1) / MR * MR;
}

/* Packs rows i .. i + rows - 1 of a, elements l .. l + depth - 1 of each. Lines of a are read once
 * and whole. */
#if A_T
/* Elements l (x) and l + 1 (y) of QN_V rows, in whole vectors: neighbours in a panel. */
static inline void put_pair(__local float *pack, int row, int l, floatv x, floatv y)
{
#if MR == QN_V
    QN_PASTE(vstore, QN_V)(x, 0, pack + A_AT(row, l));
    QN_PASTE(vstore, QN_V)(y, 0, pack + A_AT(row, l + 1));
#else
    QN_PASTE(vstore, QN_V)((floatv)(x.lo, y.lo), 0, pack + A_AT(row, l));
    QN_PASTE(vstore, QN_V)((floatv)(x.hi, y.hi), 0, pack + A_AT(row + MR, l));
#endif
}

/* Element l of the rows from `row` on. */
static inline void put_rest(__local float *pack, __global const TYPE(A) * a, ulong from, int row,
                            int rows, int l)
{
    for (; row < padded(rows); row++)
        pack[A_AT(row, l)] = row < rows ? LD(A, a, from + row) : 0.0f;
}

static inline void pack_a(__local float *pack, __global const TYPE(A) * a, ulong m, ulong i,
                          int rows, ulong l, int depth)
{
    int d = 0;
    for (; d + 2 <= depth; d += 2) {
        const ulong from = (l + d) * m + i;
        int r = 0;
        for (; r + QN_V <= rows; r += QN_V)
            put_pair(pack, r, d, LDV(A, a, from + r), LDV(A, a, from + m + r));
        put_rest(pack, a, from, r, rows, d);
        put_rest(pack, a, from + m, r, rows, d + 1);
    }
    if (d < depth)
        put_rest(pack, a, (l + d) * m + i, 0, rows, d);
}
#else
static inline void pack_a(__local float *pack, __global const TYPE(A) * a, ulong k, ulong i,
                          int rows, ulong l, int depth)
{
    for (int r = 0; r < padded(rows); r++) {
        __local float *to = pack + A_AT(r, 0);
        const ulong from = (i + min(r, rows - 1)) * k + l;
        int d = 0;
        for (; d + QN_V <= depth; d += QN_V)
            QN_PASTE(vstore, QN_V)(LDV(A, a, from + d), 0, to + d);
        for (; d < depth; d++)
            to[d] = LD(A, a, from + d);
    }
}
#endif

/* Packs a panel: elements l .. l + depth - 1 of NR columns of b, from j on, of which `columns`
 * exist. Rows of b are read once and whole, since each may be in a page of its own. */
#if B_T
static inline void pack_b(__local floatv *pack, __global const TYPE(B) * b, ulong k, ulong j,
                          int columns, ulong l, int depth)
{
    for (int v = 0; v < NV; v++) {
        const int first = v * QN_V;
        int d = 0;
        for (; d + QN_V <= depth; d += QN_V) {
            floatv row[QN_V];
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                row[e] = LDV(B, b, (j + min(first + e, columns - 1)) * k + l + d);
            qn_transpose(row);
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                pack[(d + e) * NV + v] = row[e];
        }
        for (; d < depth; d++) {
            __local float *to = (__local float *)(pack + d * NV + v);
            for (int e = 0; e < QN_V; e++)
                to[e] = LD(B, b, (j + min(first + e, columns - 1)) * k + l + d);
        }
    }
}
#else
static inline void pack_b(__local floatv *pack, __global const TYPE(B) * b, ulong n, ulong j,
                          int columns, ulong l, int depth)
{
    for (int d = 0; d < depth; d++) {
        const ulong from = (l + d) * n + j;
        if (columns >= NR) {
#pragma unroll
            for (int v = 0; v < NV; v++)
                pack[d * NV + v] = LDV(B, b, from + v * QN_V);
        } else {
            __local float *to = (__local float *)(pack + d * NV);
            for (int e = 0; e < NR; e++)
                to[e] = e < columns ? LD(B, b, from + e) : 0.0f;
        }
    }
}
#endif

/* sum += MR rows of a times the first `vectors` vectors of a panel of b: the register tile. A
 * constant tells how many, at most NV. */
__attribute__((always_inline)) static inline void multiply(__local const float *a,
                                                           __local const floatv *b,
                                                           __local floatv *sum, int depth,
                                                           bool first, int vectors)
{
    floatv acc[MR][NV];
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < vectors; v++)
            acc[r][v] = (floatv)(0.0f);
    for (int l = 0; l < depth; l++) {
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < vectors; v++)
                acc[r][v] =
                    fma((floatv)(a[r * A_STEP_ROW + l * A_STEP_L]), b[l * NV + v], acc[r][v]);
    }
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < vectors; v++) {
            __local floatv *to = sum + r * (NC / QN_V) + v;
            *to = first ? acc[r][v] : *to + acc[r][v];
        }
}

/* The same for `rows` rows of packed a, of which those past the last are made, too. */
__attribute__((always_inline)) static inline void
multiply_rows(__local const float *a, __local const floatv *b, __local floatv *sum, int rows,
              int depth, bool first, int vectors)
{
    for (int row = 0; row < rows; row += MR)
        multiply(a + A_AT(row, 0), b, sum + row * (NC / QN_V), depth, first, vectors);
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
matmul_cpu(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
           __global const TYPE(BIAS) * bias, ulong bias_at,
           __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
           ulong c_at, ulong m, ulong n, ulong k, ulong tile_m, ulong tile_n, ulong part_k,
           float beta, float slope)
{
    __local float pack_of_a[MC * KC];
    __local floatv pack_of_b[KC * NV];
    __local floatv sum[MC * (NC / QN_V)];
    const ulong tiles_m = (m + tile_m - 1) / tile_m, batches = get_num_groups(1) / tiles_m;
    const ulong batch = get_group_id(1) / tiles_m;
    const epilogue how = {beta, slope};
    a += a_at + batch * m * k;
    b += b_at + batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong i = get_group_id(1) % tiles_m * tile_m, j = get_group_id(0) * tile_n;
    const int rows = (int)min(tile_m, m - i), columns = (int)min(tile_n, n - j);
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);

    for (ulong l = begin; l < end; l += KC) {
        const int depth = (int)min((ulong)KC, end - l);
        pack_a(pack_of_a, a, A_T ? m : k, i, rows, l, depth);
        for (int column = 0; column < columns; column += NR) {
            pack_b(pack_of_b, b, B_T ? k : n, j + column, columns - column, l, depth);
            const int vectors = (columns - column + QN_V - 1) / QN_V;
            __local floatv *to = sum + column / QN_V;
            if (vectors >= NV)
                multiply_rows(pack_of_a, pack_of_b, to, rows, depth, l == begin, NV);
            else if (vectors == 2)
                multiply_rows(pack_of_a, pack_of_b, to, rows, depth, l == begin, 2);
            else
                multiply_rows(pack_of_a, pack_of_b, to, rows, depth, l == begin, 1);
        }
    }

    const tile_place place = {i * n + j, n, rows, columns, j, begin == 0};
    finish_tile(c, residual, bias, place, how, (__local const float *)sum, NC);
}
