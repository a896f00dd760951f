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
 * then walks the tile in column panels of NV vectors. BAND panels of b are packed together, since
 * their rows are then read in longer runs, and each is multiplied with all rows while it is in the
 * first cache. The innermost loop multiplies MR rows by NV vectors, whose sums stay in registers
 * and are then added to those of the KC elements before.
 *
 * Packing turns every type into f32, brings strided elements side by side, and alone handles edges:
 * rows and columns past the end repeat the last one or are 0, and are never stored.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; QN_V;
 *   A_T, B_T     1: a is stored (k, m), b is stored (n, k)
 *   those of lib/finish_tile.clh
 *   MR, NV       rows and vectors of the register tile; QN_V is MR or 2 * MR
 *   BAND         panels of b that are packed together
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

/* Index of packed vector v of a band of b, of element d: panels lie one after another. */
#define B_AT(v, d) ((v) / NV * (KC * NV) + (d)*NV + (v) % NV)

/* Packs a band: elements l .. l + depth - 1 of BAND * NR columns of b, from j on, of which
 * `columns` exist. Vectors with none of these stay as they are: nobody multiplies with them. */
#if B_T
static inline void pack_b(__local floatv *pack, __global const TYPE(B) * b, ulong k, ulong j,
                          int columns, ulong l, int depth)
{
    for (int v = 0; v < BAND * NV && v * QN_V < columns; v++) {
        ulong from[QN_V];
#pragma unroll
        for (int e = 0; e < QN_V; e++)
            from[e] = (j + min(v * QN_V + e, columns - 1)) * k + l;
        int d = 0;
        for (; d + QN_V <= depth; d += QN_V) {
            floatv row[QN_V];
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                row[e] = LDV(B, b, from[e] + d);
            qn_transpose(row);
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                pack[B_AT(v, d + e)] = row[e];
        }
        for (; d < depth; d++) {
            __local float *to = (__local float *)(pack + B_AT(v, d));
#pragma unroll
            for (int e = 0; e < QN_V; e++)
                to[e] = LD(B, b, from[e] + d);
        }
    }
}
#else
/* Rows of b are read once and whole, since each may be in a page of its own. */
static inline void pack_b(__local floatv *pack, __global const TYPE(B) * b, ulong n, ulong j,
                          int columns, ulong l, int depth)
{
    const int whole = min(columns / QN_V, BAND * NV), rest = columns - whole * QN_V;
    for (int d = 0; d < depth; d++) {
        const ulong from = (l + d) * n + j;
        if (whole == BAND * NV) {
#pragma unroll
            for (int v = 0; v < BAND * NV; v++)
                pack[B_AT(v, d)] = LDV(B, b, from + v * QN_V);
            continue;
        }
        for (int v = 0; v < whole; v++)
            pack[B_AT(v, d)] = LDV(B, b, from + v * QN_V);
        __local float *to = (__local float *)(pack + B_AT(whole, d));
        for (int e = 0; rest > 0 && e < QN_V; e++)
            to[e] = e < rest ? LD(B, b, from + whole * QN_V + e) : 0.0f;
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
                    FMA((floatv)(a[r * A_STEP_ROW + l * A_STEP_L]), b[l * NV + v], acc[r][v]);
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
__attribute__((always_inline)) static inline void multiply_rows(__local const float *a,
                                                                __local const floatv *b,
                                                                __local floatv *sum, int rows,
                                                                int depth, bool first, int vectors)
{
    for (int row = 0; row < rows; row += MR)
        multiply(a + A_AT(row, 0), b, sum + row * (NC / QN_V), depth, first, vectors);
}

/* The same for a panel of which `columns` columns exist. */
static inline void multiply_panel(__local const float *a, __local const floatv *b,
                                  __local floatv *sum, int rows, int columns, int depth, bool first)
{
    if (columns > (NV - 1) * QN_V)
        multiply_rows(a, b, sum, rows, depth, first, NV);
    else if (columns > QN_V)
        multiply_rows(a, b, sum, rows, depth, first, 2);
    else
        multiply_rows(a, b, sum, rows, depth, first, 1);
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
matmul_cpu(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
           __global const TYPE(BIAS) * bias, ulong bias_at,
           __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
           ulong c_at, ulong m, ulong n, ulong k, ulong tile_m, ulong tile_n, ulong part_k,
           float beta, float slope)
{
    __local float pack_of_a[MC * KC];
    __local floatv pack_of_b[BAND * KC * NV];
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
        for (int band = 0; band < columns; band += BAND * NR) {
            const int end = min(columns, band + BAND * NR);
            pack_b(pack_of_b, b, B_T ? k : n, j + band, columns - band, l, depth);
            for (int column = band; column < end; column += NR)
                multiply_panel(pack_of_a, pack_of_b + B_AT((column - band) / QN_V, 0),
                               sum + column / QN_V, rows, columns - column, depth, l == begin);
        }
    }

    const tile_place place = {i * n + j, n, rows, columns, j, begin == 0};
    finish_tile(c, residual, bias, place, how, (__local const float *)sum, NC);
}
