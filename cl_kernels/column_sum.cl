/* SPDX-License-Identifier: MIT
 *
 * Sums along the columns of x (rows, n), in a fixed order: first over blocks of rows, then over the
 * blocks. */
#include "lib/reduce.clh"
#include "lib/strip.clh"

#ifdef QN_SPAN
/* part (blocks, n): the sums over each block of rows. cl_kernels/chain.cl sums in the same order.
 */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
sum_blocks(__global const TYPE(X) * x, ulong x_at, __global float *part, ulong part_at, ulong rows,
           ulong n)
{
    QN_STRIP;
    x += x_at;
    part += part_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1)) {
        const ulong end = min(rows, (block + 1) * QN_BLOCK);
        floatv sums[QN_SPAN];
        for (ulong k = first; k < last; k += step)
            sums[(k - first) / QN_V] = (floatv)(0.0f);
        for (ulong row = block * QN_BLOCK; row < end; row++)
            for (ulong k = first; k < last; k += step)
                sums[(k - first) / QN_V] += QN_GET(X, x, row * n + k);
        for (ulong k = first; k < last; k += step)
            QN_PUT(PART, part, block * n + k, sums[(k - first) / QN_V]);
    }
}
#else
/* y = beta * y + the sums of x. One work-group for QN_V columns, or for a single one of those that
 * are left over; a work-item sums every QN_WG-th row, then they add up in a tree. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
sum_columns(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at, ulong n,
            ulong rows, float beta)
{
    __local floatv part[QN_WG];
    const ulong vectors = n / QN_V, group = get_group_id(0);
    const bool full = group < vectors;
    const ulong column = full ? group * QN_V : vectors * QN_V + (group - vectors);
    const uint id = get_local_id(0);
    x += x_at;
    y += y_at;
    floatv sums = (floatv)(0.0f);
    for (ulong s = id; s < rows; s += QN_WG) {
        if (full)
            sums += LDV(X, x, s * n + column);
        else
            sums.s0 += LD(X, x, s * n + column);
    }
    part[id] = sums;
    for (uint half_ = QN_WG / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_)
            part[id] += part[id + half_];
    }
    if (id == 0 && full)
        ACCV(Y, y, column, beta, part[0]);
    if (id == 0 && !full)
        ACC(Y, y, column, beta, part[0].s0);
}
#endif
