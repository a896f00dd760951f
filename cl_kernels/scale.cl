/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + a * x, over all elements: forward and backward of scale, and with a = 1 the copies
 * and sums of other operators. A work-item handles QN_V neighbouring elements, the last one what is
 * left of them. y may lie in the place of x. */
#include "lib/type.clh"

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
scale(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at, ulong n, float a,
      float beta)
{
    const ulong first = get_global_id(0) * QN_V;
    x += x_at;
    y += y_at;
    if (first + QN_V <= n) {
        const floatv result = (floatv)(a)*LDV(X, x, first);
        ACCV(Y, y, first, beta, result);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float result = a * LD(X, x, i);
        ACC(Y, y, i, beta, result);
    }
}
