/* SPDX-License-Identifier: MIT
 *
 * (a - b)^2, element by element, in f32.
 */
#include "lib/type.clh"

#ifndef A_TYPE
#define A_TYPE f32
#endif
#ifndef B_TYPE
#define B_TYPE f32
#endif
#ifndef D_TYPE
#define D_TYPE f32
#endif
#define F_TYPE f32

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

/* A work-item per QN_V elements. */
ELEMENT_KERNEL forward(__global const TYPE(A) *a, ulong a_at, __global const TYPE(B) *b,
                       ulong b_at, __global float *y, ulong y_at, ulong n)
{
    a += a_at;
    b += b_at;
    y += y_at;
    ulong i = get_global_id(0) * (ulong)QN_V;
    if (i + QN_V <= n) {
        const floatv d = LDV(A, a, i) - LDV(B, b, i);
        STV(F, y, i, d * d);
        return;
    }
    for (; i < n; i++) {
        const float d = LD(A, a, i) - LD(B, b, i);
        ST(F, y, i, d * d);
    }
}

/* d = factor * (a - b) * dy, with factor 2 for a and -2 for b. */
ELEMENT_KERNEL backward(__global const TYPE(A) *a, ulong a_at, __global const TYPE(B) *b,
                        ulong b_at, __global const float *dy, ulong dy_at, __global TYPE(D) *d,
                        ulong d_at, ulong n, float factor, float beta)
{
    a += a_at;
    b += b_at;
    dy += dy_at;
    d += d_at;
    ulong i = get_global_id(0) * (ulong)QN_V;
    if (i + QN_V <= n) {
        ACCV(D, d, i, beta, factor * (LDV(A, a, i) - LDV(B, b, i)) * LDV(F, dy, i));
        return;
    }
    for (; i < n; i++)
        ACC(D, d, i, beta, factor * (LD(A, a, i) - LD(B, b, i)) * LD(F, dy, i));
}
