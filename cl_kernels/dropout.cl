/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + mask * scale * x: forward with beta 0, backward with x, y the gradients. A
 * sample has `each` rows of n elements; a work-item draws four numbers and handles the four elements
 * of its row that they belong to. y may lie in the place of x. */
#define QN_V 4
#include "lib/control.clh"
#include "lib/random.clh"
#include "lib/type.clh"

static inline uint word(uint4 drawn, ulong which)
{
    return which == 0 ? drawn.x : which == 1 ? drawn.y : which == 2 ? drawn.z : drawn.w;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
dropout(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at,
        __global const uint *block, ulong block_at, ulong n, uint each, uint node, float rate,
        float scale, float beta)
{
    const ulong first = get_global_id(0) * 4, row = get_global_id(1), sample = row / each;
    __global const qn_control *control = QN_CONTROL_READ(block, block_at);
    x += x_at + row * n;
    y += y_at + row * n;
    if (first >= n)
        return;
    const uint draw = (uint)((row - sample * each) * ((n + 3) / 4) + get_global_id(0));
    const uint4 drawn =
        qn_philox((uint4)(control->update, control->sample + (uint)sample, node, draw),
                  (uint2)(control->seed_lo, control->seed_hi));
    if (first + 4 <= n) {
        const float4 unit =
            (float4)(qn_unit(drawn.x), qn_unit(drawn.y), qn_unit(drawn.z), qn_unit(drawn.w));
        const float4 result =
            unit >= (float4)(rate) ? (float4)(scale)*LDV(X, x, first) : (float4)(0.0f);
        ACCV(Y, y, first, beta, result);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float result = qn_unit(word(drawn, i - first)) >= rate ? scale * LD(X, x, i) : 0.0f;
        ACC(Y, y, i, beta, result);
    }
}
