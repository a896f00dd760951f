/* SPDX-License-Identifier: MIT
 *
 * The matrix product for CPUs where a has few rows, so that packing b, whose elements are used few
 * times, does not pay:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other. If the second operand has
 * few columns, the host exchanges both operands (c^T = b^T * a^T): then c (m, n) of the kernel is
 * stored (n, m), and so is the residual.
 *
 * One work-item is one work-group. It computes all rows of TILE_N columns of c, over its part of k
 * (part p writes copy p of c), DEPTH elements of k at a time: it packs a as f32, with zeros for the
 * rows past the end, and reads b from where it is, along its stored rows. If b is stored (n, k), a
 * stored row is one column of b: sums are vectors along k, added up at the end of the DEPTH
 * elements. Otherwise it is one term of all columns: several stored rows at a time are added to the
 * sums of the tile.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; QN_V;
 *   A_T, B_T, C_T  1: a is stored (k, m), b is stored (n, k), c and residual are stored (n, m)
 *   HAS_BIAS       0: `bias` is not touched; it has n elements, or m if C_T
 *   those of lib/epilogue.clh
 *   ROWS           m, rounded up to a power of two, at most QN_V
 *   TILE_N, DEPTH  multiples of 2 * QN_V
 */
#include "lib/epilogue.clh"
#include "lib/shuffle.clh"

/* Index of packed element (row, l) of a; index of the sum of (row, column); elements from one row
 * to the next. */
#if B_T
#define A_AT(row, l) ((row)*DEPTH + (l))
#define SUM_AT(row, column) ((column)*ROWS + (row))
#else
#define A_AT(row, l) ((l)*ROWS + (row))
#define SUM_AT(row, column) ((row)*TILE_N + (column))
#endif

/* Packs elements l .. l + depth - 1 of the rows of a, with zeros for rows past the end and up to a
 * multiple of QN_V. */
static inline void pack_a(__local float *pack, __global const TYPE(A) * a, int m, ulong k, ulong l,
                          int depth)
{
    const int padded = (depth + QN_V - 1) / QN_V * QN_V;
    for (int r = 0; r < ROWS; r++)
        for (int d = 0; d < padded; d++) {
            float v = 0.0f;
            if (r < m && d < depth)
                v = LD(A, a, A_T ? (l + d) * m + r : r * k + l + d);
            pack[A_AT(r, d)] = v;
        }
}

/* The first `count` of a vector's elements, then zeros. */
static inline floatv load_some(__global const TYPE(B) * b, ulong at, int count)
{
    floatv v = (floatv)(0.0f);
    for (int e = 0; e < min(count, QN_V); e++)
        ((float *)&v)[e] = LD(B, b, at + e);
    return v;
}

#if B_T
/* Columns computed at once: ROWS * COLUMNS sums are the elements of one vector. */
#define COLUMNS (QN_V / ROWS)

/* Adds the products of the terms d .. d + QN_V - 1 of each column; columns past the end repeat the
 * last one. */
static inline void add_terms(floatv *acc, __local const float *pack, __global const TYPE(B) * b,
                             ulong k, int columns, int d)
{
#pragma unroll
    for (int q = 0; q < COLUMNS; q++) {
        const floatv column = LDV(B, b, min(q, columns - 1) * k + d);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            acc[q * ROWS + r] =
                FMA(QN_PASTE(vload, QN_V)(0, pack + A_AT(r, d)), column, acc[q * ROWS + r]);
    }
}

/* The same of the `count` terms from d on, less than QN_V. */
static inline void add_last(floatv *acc, __local const float *pack, __global const TYPE(B) * b,
                            ulong k, int columns, int d, int count)
{
    for (int q = 0; q < COLUMNS; q++) {
        const floatv column = load_some(b, min(q, columns - 1) * k + d, count);
        for (int r = 0; r < ROWS; r++)
            acc[q * ROWS + r] =
                FMA(QN_PASTE(vload, QN_V)(0, pack + A_AT(r, d)), column, acc[q * ROWS + r]);
    }
}

/* Adds `depth` terms: b points to the first term of the first column, its columns are `pitch`
 * elements apart. */
static inline void multiply(__local float *sum, __local const float *pack,
                            __global const TYPE(B) * b, ulong pitch, int columns, int depth)
{
    for (int column = 0; column < columns; column += COLUMNS) {
        floatv acc[QN_V];
#pragma unroll
        for (int i = 0; i < QN_V; i++)
            acc[i] = (floatv)(0.0f);
        int d = 0;
        for (; d + QN_V <= depth; d += QN_V)
            add_terms(acc, pack, b + column * pitch, pitch, columns - column, d);
        if (d < depth)
            add_last(acc, pack, b + column * pitch, pitch, columns - column, d, depth - d);
        qn_transpose(acc);
        floatv total = acc[0];
#pragma unroll
        for (int i = 1; i < QN_V; i++)
            total += acc[i];
        __local float *to = sum + SUM_AT(0, column);
        QN_PASTE(vstore, QN_V)(QN_PASTE(vload, QN_V)(0, to) + total, 0, to);
    }
}
#else
/* Stored rows of b that are in registers at once, and vectors of each. */
enum { TERMS = 8, VECTORS = 2, WIDE = VECTORS * QN_V };

/* Adds the products of TERMS rows to VECTORS vectors of sums. */
static inline void add_rows(__local float *sum, __local const float *pack,
                            __global const TYPE(B) * b, ulong pitch)
{
    floatv row[TERMS][VECTORS];
#pragma unroll
    for (int d = 0; d < TERMS; d++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            row[d][v] = LDV(B, b, d * pitch + v * QN_V);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            __local float *to = sum + SUM_AT(r, v * QN_V);
            floatv total = QN_PASTE(vload, QN_V)(0, to);
#pragma unroll
            for (int d = 0; d < TERMS; d++)
                total = FMA((floatv)(pack[A_AT(r, d)]), row[d][v], total);
            QN_PASTE(vstore, QN_V)(total, 0, to);
        }
}

/* As add_rows() for one row and one vector, of which `columns` elements exist. */
static inline void add_some(__local float *sum, __local const float *pack,
                            __global const TYPE(B) * b, int columns)
{
    const floatv row = load_some(b, 0, columns);
    for (int r = 0; r < ROWS; r++) {
        __local float *to = sum + SUM_AT(r, 0);
        QN_PASTE(vstore, QN_V)
        (FMA((floatv)(pack[A_AT(r, 0)]), row, QN_PASTE(vload, QN_V)(0, to)), 0, to);
    }
}

/* Adds `depth` terms: b points to the first column of the first term, its stored rows are `pitch`
 * elements apart. */
static inline void multiply(__local float *sum, __local const float *pack,
                            __global const TYPE(B) * b, ulong pitch, int columns, int depth)
{
    for (int l = 0; l < depth; l += TERMS) {
        int done = 0;
        if (l + TERMS <= depth)
            for (; done + WIDE <= columns; done += WIDE)
                add_rows(sum + done, pack + A_AT(0, l), b + l * pitch + done, pitch);
        for (int d = l; d < min(l + TERMS, depth); d++)
            for (int column = done; column < columns; column += QN_V)
                add_some(sum + column, pack + A_AT(0, d), b + d * pitch + column, columns - column);
    }
}
#endif

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
matmul_thin(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
            __global const TYPE(BIAS) * bias, ulong bias_at,
            __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
            ulong c_at, ulong m, ulong n, ulong k, ulong part_k, float beta, float slope)
{
    __local float pack[ROWS * DEPTH], sum[ROWS * TILE_N];
    const ulong batch = get_group_id(0), batches = get_num_groups(0);
    const epilogue how = {beta, slope};
    a += a_at + batch * m * k;
    b += b_at + batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong j = get_group_id(1) * TILE_N;
    const int columns = (int)min((ulong)TILE_N, n - j);
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);

    for (int i = 0; i < ROWS * TILE_N; i++)
        sum[i] = 0.0f;
    for (ulong l = begin; l < end; l += DEPTH) {
        const int depth = (int)min((ulong)DEPTH, end - l);
        pack_a(pack, a, m, k, l, depth);
        multiply(sum, pack, b + (B_T ? j * k + l : l * n + j), B_T ? k : n, columns, depth);
    }

    const int outer = C_T ? columns : (int)m, inner = C_T ? (int)m : columns;
    for (int p = 0; p < outer; p++)
        for (int q = 0; q < inner; q++) {
            const int row = C_T ? q : p, column = C_T ? p : q;
            float v = sum[SUM_AT(row, column)];
#if HAS_BIAS
            if (begin == 0)
                v += LD(BIAS, bias, C_T ? row : j + column);
#endif
            finish(c, residual, C_T ? (j + column) * m + row : row * n + j + column, how, v);
        }
}
