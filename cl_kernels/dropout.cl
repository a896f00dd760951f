/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + mask * scale * x: forward with beta 0, backward with x, y the gradients. A
 * sample has `each` rows of n elements, each padded to whole draws of four numbers; a work-item
 * handles QN_V neighbouring elements of its rows, the last one what is left of them. y may lie in
 * the place of x. */
#include "lib/control.clh"
#include "lib/random.clh"
#include "lib/type.clh"

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
dropout(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at,
        __global const uint *block, ulong block_at, ulong rows, ulong n, uint each, uint node,
        float rate, float scale, float beta)
{
    const ulong first = get_global_id(0) * QN_V, padded = (n + 3) / 4 * 4;
    __global const qn_control *control = QN_CONTROL_READ(block, block_at);
    struct qn_dice dice;
    dice.key = (uint2)(control->seed_lo, control->seed_hi);
    dice.x = control->update;
    dice.z = node;
    x += x_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < rows && first < n; row += get_global_size(1)) {
        const ulong at = row * n, sample = row / each, place = (row - sample * each) * padded;
        dice.y = control->sample + (uint)sample;
        if (first + QN_V <= n) {
            const floatv unit = qn_unit_lanes(qn_dice_words(dice, place + first));
            const floatv kept = (floatv)(scale)*LDV(X, x, at + first);
            const floatv result = unit >= (floatv)(rate) ? kept : (floatv)(0.0f);
            ACCV(Y, y, at + first, beta, result);
            continue;
        }
        for (ulong i = first; i < n; i++) {
            const bool keeps = qn_unit(qn_dice_word(dice, place + i)) >= rate;
            const float result = keeps ? scale * LD(X, x, at + i) : 0.0f;
            ACC(Y, y, at + i, beta, result);
        }
    }
}
