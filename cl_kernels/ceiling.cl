/* SPDX-License-Identifier: MIT
 *
 * What a device reaches at best, for benchmarks to be compared with.
 *
 * Options: QN_V; QN_GROUP, the work-items of a work-group.
 */
#include "lib/type.clh"

#define CHAINS 12 /* independent sums: more than the latency of a multiply-add hides behind */

/* rounds * CHAINS fused multiply-adds of a vector for each work-item, from registers alone. */
__kernel __attribute__((reqd_work_group_size(QN_GROUP, 1, 1))) void
multiply_add(__global float *x, ulong x_at, float a, float b, int rounds)
{
    floatv sum[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        sum[i] = (floatv)((float)i);
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            sum[i] = FMA(sum[i], (floatv)(a), (floatv)(b));
    }
#pragma unroll
    for (int i = 1; i < CHAINS; i++)
        sum[0] += sum[i];
    QN_PASTE(vstore, QN_V)(sum[0], get_global_id(0), x + x_at);
}

/* y = x, `each` vectors for each work-group. */
__kernel __attribute__((reqd_work_group_size(QN_GROUP, 1, 1))) void
copy(__global const float *x, ulong x_at, __global float *y, ulong y_at, int each)
{
    const ulong first = get_group_id(0) * (ulong)each;
    x += x_at + first * QN_V;
    y += y_at + first * QN_V;
    for (int i = get_local_id(0); i < each; i += QN_GROUP)
        QN_PASTE(vstore, QN_V)(QN_PASTE(vload, QN_V)(i, x), i, y);
}

/* Nothing: what a launch costs. */
__kernel __attribute__((reqd_work_group_size(QN_GROUP, 1, 1))) void
nothing(__global float *x, ulong x_at, int never)
{
    if (never)
        x[x_at] = 0.0f;
}
