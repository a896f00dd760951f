/* SPDX-License-Identifier: MIT
 *
 * Elementwise functions of two tensors of one shape. A work-item handles QN_V neighbouring
 * elements, the last one what is left of them. y may lie in the place of a or b. */
#include "lib/type.clh"

/* y = a + b */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
add(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
    __global TYPE(Y) * y, ulong y_at, ulong n, float beta)
{
    const ulong first = get_global_id(0) * QN_V;
    a += a_at;
    b += b_at;
    y += y_at;
    if (first + QN_V <= n) {
        const floatv result = LDV(A, a, first) + LDV(B, b, first);
        STV(Y, y, first, result);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float result = LD(A, a, i) + LD(B, b, i);
        ST(Y, y, i, result);
    }
}

/* y = beta * y + a * b */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
multiply(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
         __global TYPE(Y) * y, ulong y_at, ulong n, float beta)
{
    const ulong first = get_global_id(0) * QN_V;
    a += a_at;
    b += b_at;
    y += y_at;
    if (first + QN_V <= n) {
        const floatv result = LDV(A, a, first) * LDV(B, b, first);
        ACCV(Y, y, first, beta, result);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float result = LD(A, a, i) * LD(B, b, i);
        ACC(Y, y, i, beta, result);
    }
}
