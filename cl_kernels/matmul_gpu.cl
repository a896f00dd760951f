/* SPDX-License-Identifier: MIT
 *
 * The matrix product for GPUs:
 *
 *     c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n)
 *
 * or a batch of such products, whose operands lie one after the other.
 *
 * A work-group makes a tile of c (lib/tiled.clh) over its part of k. Part p of k writes copy p of
 * c. Each work-item copies a piece of either strip while the strips before are multiplied: with
 * loads of up to 128 bits inside the matrices, else element by element, with zeros past their
 * edges.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; QN_ROWS = QN_COLUMNS
 *   A_T, B_T     1: a is stored (k, m), b is stored (n, k)
 *   HAS_BIAS     0: `bias` is not touched
 *   those of lib/epilogue.clh
 */
#define PIECE_WIDTH QN_ROWS
#include "lib/epilogue.clh"
#include "lib/piece.clh"
#include "lib/tiled.clh"

#define TILE TILE_ROWS
#define PITCH PITCH_A

/* Element (edge, l) of an operand, a row or column of c and a position along k, is
 * p[edge * line + l] if it is stored along k, else p[l * line + edge]. */
#define ALONG_A (!A_T)
#define ALONG_B (B_T)
#define AT(along, edge, l, line) ((along) ? (edge) * (line) + (l) : (l) * (line) + (edge))

/* The first element, in its tile, of the piece that work-item `id` copies. Neighbours copy
 * neighbours in memory. */
#define PIECES (DEPTH / PIECE_WIDTH) /* of a line along k */
#define PIECE_EDGE(along, id) ((along) ? (id) / PIECES : (id) % SIDE * PIECE_WIDTH)
#define PIECE_L(along, id) ((along) ? (id) % PIECES * PIECE_WIDTH : (id) / SIDE)

/* How many elements of a piece there are, none if negative, where so many lie ahead of its first
 * along the edge and along k. */
static inline int piece_rest(bool along, int edges, int terms)
{
    if (along)
        return edges > 0 ? terms : 0;
    return terms > 0 ? edges : 0;
}

/* The piece at p, with zeros behind the first `rest` elements; `whole`: all are there, aligned. */
#define DEFINE_LOAD(X)                                                                             \
    static inline PIECE(X) load_##X(__global const TYPE(X) * p, bool whole, int rest)              \
    {                                                                                              \
        BITS(X) element[PIECE_WIDTH];                                                              \
        if (whole)                                                                                 \
            return LDP(X, p, 0);                                                                   \
        for (int e = 0; e < PIECE_WIDTH; e++)                                                      \
            element[e] = e < rest ? LDB(X, p, e) : 0;                                              \
        return QN_PASTE(vload, PIECE_WIDTH)(0, element);                                           \
    }
DEFINE_LOAD(A)
DEFINE_LOAD(B)

static inline void put(__local float *strip, bool along, floatp v)
{
    const uint id = tiled_item(), edge = PIECE_EDGE(along, id), l = PIECE_L(along, id);
    float element[PIECE_WIDTH];
    QN_PASTE(vstore, PIECE_WIDTH)(v, 0, element);
    if (along) {
#pragma unroll
        for (uint e = 0; e < PIECE_WIDTH; e++)
            strip[(l + e) * PITCH + edge] = element[e];
        return;
    }
#pragma unroll
    for (uint e = 0; e < PIECE_WIDTH; e += QN_V)
        *(__local floatv *)(strip + l * PITCH + edge + e) = QN_PASTE(vload, QN_V)(0, element + e);
}

__attribute__((reqd_work_group_size(SIDE, SIDE, 1))) __kernel void
matmul_gpu(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
           __global const TYPE(BIAS) * bias, ulong bias_at,
           __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
           ulong c_at, ulong m, ulong n, ulong k, ulong part_k, float beta, float slope)
{
    __local floatv vectors_a[STRIP_A], vectors_b[STRIP_B];
    __local float *strip_a = (__local float *)vectors_a, *strip_b = (__local float *)vectors_b;
    /* m may be the rows of a whole micro-batch: only dimension 0 allows so many work-groups. */
    const ulong tiles_m = (m + TILE - 1) / TILE, batches = get_num_groups(0) / tiles_m;
    const ulong batch = get_group_id(0) / tiles_m;
    const epilogue how = {beta, slope};
    const ulong line_a = A_T ? m : k, line_b = B_T ? k : n;
    a_at += batch * m * k;
    b_at += batch * k * n;
    a += a_at;
    b += b_at;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong i = get_group_id(0) % tiles_m * TILE, j = get_group_id(1) * TILE;
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);
    const bool inside = i + TILE <= m && j + TILE <= n &&
                        (a_at | b_at | line_a | line_b | begin) % PIECE_WIDTH == 0;

    const uint id = tiled_item();
    const ulong edge_a = i + PIECE_EDGE(ALONG_A, id), edge_b = j + PIECE_EDGE(ALONG_B, id);
    const uint l_a = PIECE_L(ALONG_A, id), l_b = PIECE_L(ALONG_B, id);
    a += AT(ALONG_A, edge_a, begin + l_a, line_a);
    b += AT(ALONG_B, edge_b, begin + l_b, line_b);
    const int rows = (int)min((long)m - (long)edge_a, (long)TILE);
    const int columns = (int)min((long)n - (long)edge_b, (long)TILE);
    long rest = (long)(end - begin); /* terms from those of `next` on; and those in its strips */
    int terms = (int)min(rest, (long)DEPTH);
    PIECE(A) next_a = load_A(a, inside && terms == DEPTH, piece_rest(ALONG_A, rows, terms - l_a));
    PIECE(B)
    next_b = load_B(b, inside && terms == DEPTH, piece_rest(ALONG_B, columns, terms - l_b));
    floatv sum[QN_ROWS][RUNS];
    tiled_clear(sum);
    while (rest > 0) {
        barrier(CLK_LOCAL_MEM_FENCE);
        put(strip_a, ALONG_A, WIDEN(A, next_a));
        put(strip_b, ALONG_B, WIDEN(B, next_b));
        barrier(CLK_LOCAL_MEM_FENCE);
        a += AT(ALONG_A, 0, DEPTH, line_a);
        b += AT(ALONG_B, 0, DEPTH, line_b);
        rest -= DEPTH;
        terms = (int)min(rest, (long)DEPTH);
        next_a = load_A(a, inside && terms == DEPTH, piece_rest(ALONG_A, rows, terms - l_a));
        next_b = load_B(b, inside && terms == DEPTH, piece_rest(ALONG_B, columns, terms - l_b));
        tiled_multiply(sum, vectors_a, vectors_b);
    }

#pragma unroll
    for (uint r = 0; r < QN_ROWS; r++) {
        const ulong row = i + tiled_row(r);
#pragma unroll
        for (uint h = 0; h < RUNS; h++) {
            const ulong column = j + tiled_column(h);
            if (row < m && column + QN_V <= n) {
                floatv v = sum[r][h];
#if HAS_BIAS
                if (begin == 0)
                    v += LDV(BIAS, bias, column);
#endif
                finish_vector(c, residual, row * n + column, how, v);
            } else if (row < m) {
                float v[QN_V];
                QN_PASTE(vstore, QN_V)(sum[r][h], 0, v);
#pragma unroll
                for (uint e = 0; e < QN_V; e++) {
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
}
