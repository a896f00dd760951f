/* SPDX-License-Identifier: MIT
 *
 * Adding a bias along dimension 1 of (b, c, ...), and its gradient. Two layouts: planes, where the
 * elements of one channel lie side by side (n > 1 of them), and rows, where the channels do.
 *
 * The gradient of the bias of planes sums in a fixed order: QN_WG work-items take planes by turns,
 * then add up in a tree. That of rows is column_sum.cl. */
#include "lib/reduce.clh"

#ifndef QN_GRADIENT
/* Row r of n elements belongs to channel r % channels. y may lie in the place of x. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
bias_planes(__global const TYPE(X) * x, ulong x_at, __global const TYPE(BIAS) * bias, ulong bias_at,
            __global TYPE(Y) * y, ulong y_at, ulong rows, ulong n, ulong channels)
{
    const ulong first = get_global_id(0) * QN_V;
    bias += bias_at;
    x += x_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const ulong at = row * n;
        const float b = LD(BIAS, bias, row % channels);
        if (first + QN_V <= n)
            STV(Y, y, at + first, LDV(X, x, at + first) + b);
        else
            for (ulong i = first; i < n; i++)
                ST(Y, y, at + i, LD(X, x, at + i) + b);
    }
}

/* Rows of n elements, one a channel. y may lie in the place of x. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
bias_rows(__global const TYPE(X) * x, ulong x_at, __global const TYPE(BIAS) * bias, ulong bias_at,
          __global TYPE(Y) * y, ulong y_at, ulong rows, ulong n)
{
    const ulong first = get_global_id(0) * QN_V;
    bias += bias_at;
    x += x_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const ulong at = row * n;
        if (first + QN_V <= n)
            STV(Y, y, at + first, LDV(X, x, at + first) + LDV(BIAS, bias, first));
        else
            for (ulong i = first; i < n; i++)
                ST(Y, y, at + i, LD(X, x, at + i) + LD(BIAS, bias, i));
    }
}

#else
/* The sum of n neighbouring elements. */
static inline float sum_plane(__global const TYPE(DY) * dy, ulong n)
{
    floatv sums = (floatv)(0.0f);
    float sum = 0.0f;
    ulong i = 0;
    for (; i + QN_V <= n; i += QN_V)
        sums += LDV(DY, dy, i);
    for (; i < n; i++)
        sum += LD(DY, dy, i);
    return sum + qn_hadd(sums);
}

/* One work-group a channel; a work-item sums every QN_WG-th plane. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
bias_planes_gradient(__global const TYPE(DY) * dy, ulong dy_at, __global TYPE(DB) * db, ulong db_at,
                     ulong n, ulong channels, ulong samples, float beta)
{
    __local float part[QN_WG];
    const ulong channel = get_group_id(0);
    dy += dy_at;
    db += db_at;
    float sum = 0.0f;
    for (ulong s = get_local_id(0); s < samples; s += QN_WG)
        sum += sum_plane(dy + (s * channels + channel) * n, n);
    const float result = qn_group_sum(sum, part);
    if (get_local_id(0) == 0)
        ACC(DB, db, channel, beta, result);
}
#endif
