/* SPDX-License-Identifier: MIT
 *
 * Softmax along rows of n elements.
 */
#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/row.clh"

#ifndef Y_TYPE
#define Y_TYPE f32
#endif
#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef DY_TYPE
#define DY_TYPE f32
#endif

#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* A work-group per `span` rows. A row of -inf alone gives zeros. */
ROW_KERNEL forward(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                   ulong rows, ulong n, uint span)
{
    __local float part[QN_WG];
    x += x_at;
    y += y_at;
    const ulong first = get_group_id(0) * span, last = min(rows, first + span);
    const ulong lane = get_local_id(0);
    for (ulong row = first; row < last; row++) {
        const ulong at = row * n;
        const row_exp own = row_exp_sum(x + at, n, part);
        const float top = own.top, factor = own.sum == 0.0f ? 0.0f : 1.0f / own.sum;
        for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V)
            STV(Y, y, at + i, qn_exp_floatv(LDV(X, x, at + i) - top) * factor);
        for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
            ST(Y, y, at + i, qn_exp_float(LD(X, x, at + i) - top) * factor);
    }
}

/* The sum of y * dy over a row. */
static inline float row_product(__global const TYPE(Y) *y, __global const TYPE(DY) *dy, ulong n,
                                __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv sum = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V)
        sum = FMA(LDV(Y, y, i), LDV(DY, dy, i), sum);
    float rest = qn_hadd(sum);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest = FMA(LD(Y, y, i), LD(DY, dy, i), rest);
    return qn_group_sum(rest, part);
}

/* A work-group per `span` rows. */
ROW_KERNEL backward(__global const TYPE(Y) *y, ulong y_at, __global const TYPE(DY) *dy,
                    ulong dy_at, __global TYPE(DX) *dx, ulong dx_at, ulong rows, ulong n,
                    uint span, float beta)
{
    __local float part[QN_WG];
    y += y_at;
    dy += dy_at;
    dx += dx_at;
    const ulong first = get_group_id(0) * span, last = min(rows, first + span);
    const ulong lane = get_local_id(0);
    for (ulong row = first; row < last; row++) {
        const ulong at = row * n;
        const float level = row_product(y + at, dy + at, n, part);
        for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V)
            ACCV(DX, dx, at + i, beta, LDV(Y, y, at + i) * (LDV(DY, dy, at + i) - level));
        for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
            ACC(DX, dx, at + i, beta, LD(Y, y, at + i) * (LD(DY, dy, at + i) - level));
    }
}
