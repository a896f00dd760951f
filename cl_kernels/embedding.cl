/* SPDX-License-Identifier: MIT
 *
 * Rows of a table by number, and the gradient of the table. A number that names no row gives zeros
 * and has no gradient; nothing is read for it.
 *
 * The gradient is summed in the order of the numbers, without atomics: a row of the table belongs
 * to one work-item (or, by columns, to several), which walks all the numbers and takes up those it
 * owns. */
#include "lib/type.clh"

#ifndef QN_GRADIENT
/* y[i] = table[ids[i]], rows of n elements. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
look_up(__global const TYPE(IDS) * ids, ulong ids_at, __global const TYPE(TABLE) * table,
        ulong table_at, __global TYPE(Y) * y, ulong y_at, ulong count, ulong n, uint rows)
{
    const ulong first = get_global_id(0) * QN_V;
    ids += ids_at;
    table += table_at;
    y += y_at;
    for (ulong i = get_global_id(1); i < count; i += get_global_size(1)) {
        const uint id = (uint)LDI(IDS, ids, i);
        const ulong from = id * n, to = i * n;
        const bool known = id < rows;
        if (first + QN_V <= n)
            STV(Y, y, to + first, known ? LDV(TABLE, table, from + first) : (floatv)(0.0f));
        else
            for (ulong k = first; k < n; k++)
                ST(Y, y, to + k, known ? LD(TABLE, table, from + k) : 0.0f);
    }
}

#else
/* d = beta * d for all `n` elements: what the rows are added to. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void begin(__global TYPE(D) * d,
                                                                    ulong d_at, ulong n, float beta)
{
    const ulong first = get_global_id(0) * QN_V;
    d += d_at;
    if (first + QN_V <= n)
        ACCV(D, d, first, beta, (floatv)(0.0f));
    else
        for (ulong i = first; i < n; i++)
            ACC(D, d, i, beta, 0.0f);
}

/* d[ids[i]] += dy[i], for all i in order. A work-item owns `span` vectors of columns of the rows
 * with a number that leaves get_global_id(1) when divided by get_global_size(1). */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
add_rows(__global const TYPE(IDS) * ids, ulong ids_at, __global const TYPE(DY) * dy, ulong dy_at,
         __global TYPE(D) * d, ulong d_at, ulong count, ulong n, uint rows, uint span)
{
    const ulong first = get_global_id(0) * span * QN_V, last = min(n, first + span * QN_V);
    const uint own = get_global_id(1), turns = get_global_size(1);
    ids += ids_at;
    dy += dy_at;
    d += d_at;
    for (ulong i = 0; i < count; i++) {
        const uint id = (uint)LDI(IDS, ids, i);
        if (id >= rows || id % turns != own)
            continue;
        const ulong from = i * n, to = id * n;
        ulong k = first;
        for (; k + QN_V <= last; k += QN_V)
            STV(D, d, to + k, LDV(D, d, to + k) + LDV(DY, dy, from + k));
        for (; k < last; k++)
            ST(D, d, to + k, LD(D, d, to + k) + LD(DY, dy, from + k));
    }
}
#endif
