/* SPDX-License-Identifier: MIT
 *
 * y = beta * y + x, block by block: tensors that are parts of each other along one dimension.
 * Blocks begin every `x_step` and `y_step` elements. One of y is `before` elements for which x has
 * nothing and 0 is taken, n that x has, and `after` more for which it has nothing.
 *
 * A work-group takes a piece of up to `span` blocks. */
#include "lib/reduce.clh"

/* Teams of `lanes` work-items take the blocks by turns. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
copy_blocks(__global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at, ulong blocks,
            ulong x_step, ulong y_step, ulong before, ulong n, ulong after, ulong piece, ulong span,
            uint lanes, float beta)
{
    const ulong room = before + n + after, pieces = (room + piece - 1) / piece;
    const ulong group = get_group_id(0), first = group / pieces * span;
    const ulong last = min(blocks, first + span);
    const ulong begin = group % pieces * piece, end = min(room, begin + piece);
    x += x_at;
    y += y_at;
    for (ulong block = first + qn_team(lanes); block < last; block += QN_WG / lanes) {
        const ulong from = block * x_step - before, to = block * y_step;
        ulong low = begin;
        for (int part = 0; part < 3; part++) {
            const ulong edge = part == 0 ? before : part == 1 ? before + n : room;
            const ulong high = clamp(edge, low, end);
            for (ulong k = low + qn_lane(lanes) * QN_V; k + QN_V <= high; k += lanes * QN_V)
                ACCV(Y, y, to + k, beta, part == 1 ? LDV(X, x, from + k) : (floatv)(0.0f));
            for (ulong k = high - (high - low) % QN_V + qn_lane(lanes); k < high; k += lanes)
                ACC(Y, y, to + k, beta, part == 1 ? LD(X, x, from + k) : 0.0f);
            low = high;
        }
    }
}
