/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + x with its dimensions in another order. The host joins dimensions that stay
 * neighbours; then x has n elements side by side, `rows` such runs, and up to four outer
 * dimensions. A work-group walks up to `span` rows in one place of the outer dimensions.
 *
 * In copy_rows the n elements lie side by side in y, too; in transpose_tiles the rows do.
 */
#include "lib/reduce.clh"
#include "lib/shuffle.clh"

/* Sizes of the outer dimensions and their distances in x and y. */
#define OUTER                                                                                      \
    ulong size1, ulong size2, ulong size3, ulong from0, ulong from1, ulong from2, ulong from3,     \
        ulong to0, ulong to1, ulong to2, ulong to3

/* Moves x and y to place `at` of the outer dimensions, the last of which is the fastest. */
#define GO_TO(at)                                                                                  \
    do {                                                                                           \
        const ulong i3 = (at) % size3, rest2 = (at) / size3;                                       \
        const ulong i2 = rest2 % size2, rest1 = rest2 / size2;                                     \
        const ulong i1 = rest1 % size1, i0 = rest1 / size1;                                        \
        x += i0 * from0 + i1 * from1 + i2 * from2 + i3 * from3;                                    \
        y += i0 * to0 + i1 * to1 + i2 * to2 + i3 * to3;                                            \
    } while (0)

#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* Teams of `lanes` work-items take the rows of a strip by turns. */
GROUP_KERNEL copy_rows(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at,
                       OUTER, ulong rows, ulong row_from, ulong row_to, ulong n, ulong span,
                       uint lanes, float beta)
{
    const ulong strips = (rows + span - 1) / span, group = get_group_id(0);
    const ulong first = group % strips * span, last = min(rows, first + span);
    x += x_at;
    y += y_at;
    GO_TO(group / strips);
    for (ulong r = first + qn_team(lanes); r < last; r += QN_WG / lanes) {
        const ulong from = r * row_from, to = r * row_to;
        for (ulong k = qn_lane(lanes) * QN_V; k + QN_V <= n; k += lanes * QN_V)
            ACCV(Y, y, to + k, beta, LDV(X, x, from + k));
        for (ulong k = n - n % QN_V + qn_lane(lanes); k < n; k += lanes)
            ACC(Y, y, to + k, beta, LD(X, x, from + k));
    }
}

#if QN_WG == 1
/* A strip is WIDE columns of x wide, whole cache lines; squares of it are transposed in registers.
 */
#define WIDE (4 * QN_V)
GROUP_KERNEL transpose_tiles(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y,
                             ulong y_at, OUTER, ulong rows, ulong row_from, ulong n, ulong n_to,
                             ulong span, float beta)
{
    const ulong strips = (rows + span - 1) / span, columns = (n + WIDE - 1) / WIDE;
    const ulong strip = get_group_id(0) / columns, first = get_group_id(0) % columns * WIDE;
    const ulong last = min(n, first + WIDE);
    const ulong top = strip % strips * span, bottom = min(rows, top + span);
    x += x_at;
    y += y_at;
    GO_TO(strip / strips);
    ulong r = top;
    for (; r + QN_V <= bottom; r += QN_V) {
        ulong c = first;
        for (; c + QN_V <= last; c += QN_V) {
            floatv square[QN_V];
#pragma unroll
            for (int i = 0; i < QN_V; i++)
                square[i] = LDV(X, x, (r + i) * row_from + c);
            qn_transpose(square);
#pragma unroll
            for (int i = 0; i < QN_V; i++)
                ACCV(Y, y, (c + i) * n_to + r, beta, square[i]);
        }
        for (; c < last; c++)
            for (int i = 0; i < QN_V; i++)
                ACC(Y, y, c * n_to + r + i, beta, LD(X, x, (r + i) * row_from + c));
    }
    for (; r < bottom; r++)
        for (ulong c = first; c < last; c++)
            ACC(Y, y, c * n_to + r, beta, LD(X, x, r * row_from + c));
}
#else
/* Squares of TILE x TILE go through local memory, so that neighbours read and write neighbours. */
#define TILE 32
GROUP_KERNEL transpose_tiles(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y,
                             ulong y_at, OUTER, ulong rows, ulong row_from, ulong n, ulong n_to,
                             ulong span, float beta)
{
    __local float tile[TILE][TILE + 1];
    const ulong strips = (rows + TILE - 1) / TILE, columns = (n + TILE - 1) / TILE;
    const ulong strip = get_group_id(0) / columns, c = get_group_id(0) % columns * TILE;
    const ulong r = strip % strips * TILE;
    const uint along = get_local_id(0) % TILE, across = get_local_id(0) / TILE;
    x += x_at;
    y += y_at;
    GO_TO(strip / strips);
    for (uint i = across; i < TILE; i += QN_WG / TILE)
        if (r + i < rows && c + along < n)
            tile[i][along] = LD(X, x, (r + i) * row_from + c + along);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = across; i < TILE; i += QN_WG / TILE)
        if (r + along < rows && c + i < n)
            ACC(Y, y, (c + i) * n_to + r + along, beta, tile[along][i]);
}
#endif
