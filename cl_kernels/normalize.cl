/* SPDX-License-Identifier: MIT
 *
 * Images to numbers: y = (x / QN_WHITE - mean[c]) / deviation[c], where QN_WHITE is 255 for bytes
 * and 1 for f32. A row is one channel of one image; a work-item handles QN_V neighbouring pixels,
 * the last one what is left of them. */
#include "lib/type.clh"

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
normalize_images(__global const TYPE(X) * x, ulong x_at, __global const TYPE(MEAN) * mean,
                 ulong mean_at, __global const TYPE(DEVIATION) * deviation, ulong deviation_at,
                 __global TYPE(Y) * y, ulong y_at, ulong rows, ulong n, ulong channels)
{
    const ulong first = get_global_id(0) * QN_V;
    mean += mean_at;
    deviation += deviation_at;
    x += x_at;
    y += y_at;
    for (ulong row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const ulong at = row * n, channel = row % channels;
        const float m = LD(MEAN, mean, channel), d = LD(DEVIATION, deviation, channel);
        if (first + QN_V <= n)
            STV(Y, y, at + first, (LDV(X, x, at + first) / (float)QN_WHITE - m) / d);
        else
            for (ulong i = first; i < n; i++)
                ST(Y, y, at + i, (LD(X, x, at + i) / (float)QN_WHITE - m) / d);
    }
}
