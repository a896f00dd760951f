/* SPDX-License-Identifier: MIT
 *
 * Means over the first tokens of each row: x is (rows, tokens, n), y is (rows, n).
 */
#include "lib/strip.clh"

#ifndef LENGTH_TYPE
#define LENGTH_TYPE i32
#endif

/* Tokens that are summed by themselves, so that the rounding error of a long row is hardly above
 * that of a short one. */
#define QN_TOKENS 64ul

/* How many tokens of a row count. */
static inline ulong length_of(__global const TYPE(LENGTH) *lengths, int has_lengths, ulong row,
                              ulong tokens)
{
    return has_lengths ? (ulong)clamp((long)LDI(LENGTH, lengths, row), 0l, (long)tokens) : tokens;
}

__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
forward(__global const TYPE(X) *x, ulong x_at, __global const TYPE(LENGTH) *lengths,
        ulong lengths_at, __global TYPE(Y) *y, ulong y_at, ulong rows, ulong tokens, ulong n,
        int has_lengths)
{
    QN_STRIP;
    x += x_at;
    lengths += lengths_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < blocks; row += get_global_size(1)) {
        const ulong length = length_of(lengths, has_lengths, row, tokens);
        floatv total[QN_SPAN], sum[QN_SPAN];
        for (ulong k = 0; k < QN_SPAN; k++)
            total[k] = (floatv)(0.0f);
        for (ulong begin = 0; begin < length; begin += QN_TOKENS) {
            for (ulong k = 0; k < QN_SPAN; k++)
                sum[k] = (floatv)(0.0f);
            for (ulong token = begin; token < min(length, begin + QN_TOKENS); token++)
                for (ulong c = first; c < last; c += step)
                    sum[(c - first) / step] += QN_GET(X, x, (row * tokens + token) * n + c);
            for (ulong k = 0; k < QN_SPAN; k++)
                total[k] += sum[k];
        }
        const float share = length ? 1.0f / (float)length : 0.0f;
        for (ulong c = first; c < last; c += step)
            QN_PUT(Y, y, row * n + c, total[(c - first) / step] * share);
    }
}

/* dx, whose rows are all tokens. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
backward(__global const TYPE(Y) *dy, ulong dy_at, __global const TYPE(LENGTH) *lengths,
         ulong lengths_at, __global TYPE(X) *dx, ulong dx_at, ulong rows, ulong tokens, ulong n,
         int has_lengths, float beta)
{
    QN_STRIP;
    dy += dy_at;
    lengths += lengths_at;
    dx += dx_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1))
        for (ulong at = block * QN_BLOCK; at < min(rows, (block + 1) * QN_BLOCK); at++) {
            const ulong row = at / tokens;
            const ulong length = length_of(lengths, has_lengths, row, tokens);
            const bool counts = at % tokens < length;
            const float share = 1.0f / (float)length;
            for (ulong c = first; c < last; c += step) {
                const floatv g = QN_GET(Y, dy, row * n + c) * share;
                QN_ADD(X, dx, at * n + c, beta, counts ? g : (floatv)(0.0f));
            }
        }
}
