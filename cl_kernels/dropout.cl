/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + mask * scale * x: forward with beta 0, backward with x, y the gradients. A
 * sample has `each` rows of n elements; a work-item draws four numbers and handles the four
 * elements of its row that they belong to. y may lie in the place of x. */
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
        __global const uint *block, ulong block_at, ulong rows, ulong n, uint each, uint node,
        float rate, float scale, float beta)
{
    const ulong group = get_global_id(0), first = group * 4;
    __global const qn_control *control = QN_CONTROL_READ(block, block_at);
    const uint2 key = (uint2)(control->seed_lo, control->seed_hi);
    x += x_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < rows && first < n; row += get_global_size(1)) {
        const ulong at = row * n, sample = row / each;
        const uint draw = (uint)((row - sample * each) * ((n + 3) / 4) + group);
        const uint4 drawn =
            qn_philox((uint4)(control->update, control->sample + (uint)sample, node, draw), key);
        if (first + 4 <= n) {
            const float4 unit =
                (float4)(qn_unit(drawn.x), qn_unit(drawn.y), qn_unit(drawn.z), qn_unit(drawn.w));
            const float4 kept = (float4)(scale)*LDV(X, x, at + first);
            const float4 result = unit >= (float4)(rate) ? kept : (float4)(0.0f);
            ACCV(Y, y, at + first, beta, result);
            continue;
        }
        for (ulong i = first; i < n; i++) {
            const bool keeps = qn_unit(word(drawn, i - first)) >= rate;
            const float result = keeps ? scale * LD(X, x, at + i) : 0.0f;
            ACC(Y, y, at + i, beta, result);
        }
    }
}
