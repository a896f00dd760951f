/* SPDX-License-Identifier: MIT
 *
 * Convolutions of 3 x 3 taps with stride and dilation 1 by Winograd's F(2 x 2, 3 x 3)
 * (lib/winograd.clh), for GPUs (lib/winograd_gpu.clh).
 *
 * Rows are channels that are made, columns are tiles of 2 x 2 pixels, terms are channels of the
 * source. Weights are transformed before, into scratch. A work-item copies some of those of a strip
 * and transforms what one tile meets of one channel; it loads them while the strips before are
 * multiplied.
 *
 * Options: S_TYPE, W_TYPE, B_TYPE, D_TYPE
 */
#define SWIZZLE 0
#include "lib/winograd_gpu.clh"

/* Vectors that a work-item copies of a strip of the weights; those of a line of it. */
#define COPIED (STRIP / QN_V / ITEMS)
#define LINE (ROWS / QN_V)
/* Channels of a strip that all work-items copy at once. */
#define CHANNELS (ITEMS / (POINTS * LINE))

/* Transforms the weights of `rows` channels to make, from row0 on: u (row blocks, channels, points,
 * ROWS), 0 past the last row and channel. */
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1))) void
conv2d_winograd_weights(__global const TYPE(W) * w, ulong w_at, __global float *u, ulong u_at,
                        int row0, int rows, int depth, ulong row_step, ulong depth_step, int turned)
{
    const int row = get_global_id(0), c = get_global_id(1), deep = get_global_size(1);
    const bool there = row < rows && c < depth;
    float tap[TAPS], point[POINTS];
    w += w_at + (row0 + row) * row_step + c * depth_step;
    u += u_at + ((ulong)(row / ROWS) * deep + c) * (POINTS * ROWS) + row % ROWS;
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        tap[t] = there ? LD(W, w, turned ? TAPS - 1 - t : t) : 0.0f;
    winograd_taps(point, tap);
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        u[p * ROWS] = point[p];
}

static inline void load_weights(float4 next[COPIED], __global const float *u, uint id)
{
#pragma unroll
    for (uint e = 0; e < COPIED; e++)
        next[e] = ((__global const float4 *)u)[id + e * ITEMS];
}

/* From (channel, point, row) to (point, channel, row). */
static inline void put_weights(__local float4 *strip, const float4 next[COPIED], uint id)
{
    const uint channel = id / (POINTS * LINE), point = id / LINE % POINTS;
#pragma unroll
    for (uint e = 0; e < COPIED; e++)
        strip[(point * DEPTH + channel + e * CHANNELS) * LINE + id % LINE] = next[e];
}

/* Makes `rows` of `channels` channels, from row0 on, with their transformed weights u. The first
 * `front` channels of the source are in s, the others in t. Element (y, x) made meets source rows
 * y - top .. y - top + 2 and columns x - left .. x - left + 2. A row block of u has `deep`
 * channels. Work-groups: (tiles / COLUMNS, rows / ROWS). */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
conv2d_winograd(__global const TYPE(S) * s, ulong s_at, __global const TYPE(S) * t, ulong t_at,
                __global const float *u, ulong u_at, __global const TYPE(B) * b, ulong b_at,
                __global TYPE(D) * d, ulong d_at, int has_bias, float beta, int batch, int depth,
                int front, int channels, int sh, int sw, int dh, int dw, int top, int left,
                int row0, int rows, int deep)
{
    __local float strips[2 * STRIP] __attribute__((aligned(16)));
    __local float *weights = strips, *source = strips + STRIP;
    const uint id = get_local_id(0), lane = id % COLUMNS, line = id / COLUMNS;
    const winograd_seat at = winograd_seat_of(id);
    const int block0 = get_group_id(1) * ROWS, images = front < depth ? 2 : 1;
    const conv_position tile =
        conv_position_at(get_group_id(0) * (ulong)COLUMNS + lane, (dh + 1) / 2, (dw + 1) / 2);
    const int y = 2 * tile.row - top, x = 2 * tile.column - left;
    const ulong plane = (ulong)sh * sw;
    u += u_at + (ulong)block0 * POINTS * deep;
    winograd_sums sums;
    float4 next_u[COPIED];
    COLUMN(S) next_s[4];
    winograd_clear(&sums);
    for (int n = 0; n < images; n++) {
        const int own = n ? depth - front : front, turns = (own + DEPTH - 1) / DEPTH;
        __global const TYPE(S) *row = (n ? t + t_at : s + s_at) +
                                      (tile.image * (ulong)own + line) * plane +
                                      clamp(y, 0, sh - 1) * (long)sw + x;
        /* A turn copies and multiplies the strips that the turn before loaded. */
        for (int turn = 0; turn <= turns; turn++) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn > 0) {
                put_weights((__local float4 *)weights, next_u, id);
                winograd_put(source, next_s, y, sh, line, lane);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn < turns) {
                load_weights(next_u, u, id);
                const bool there = turn * DEPTH + (int)line < own && tile.image < batch;
                winograd_load(next_s, row, y, there ? x : NOWHERE, sh, sw);
                u += DEPTH * POINTS * ROWS;
                row += DEPTH * plane;
            }
            if (turn > 0)
                winograd_multiply(&sums, weights, source, at);
        }
        u -= (turns * DEPTH - own) * (POINTS * ROWS);
    }
    const ulong made = (ulong)dh * dw;
    const int below = 2 * tile.row + 1 < dh, beside = 2 * tile.column + 1 < dw;
    d += d_at + tile.image * (channels * made) + 2 * (ulong)tile.row * dw + 2 * tile.column;
    for (int part = 0; part < PARTS; part++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        winograd_meet(strips, &sums, part, at);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = line; row < MET; row += DEPTH) {
            const int own = block0 + winograd_met(row, part);
            const bool there = own < rows && tile.image < batch;
            const float bias = has_bias && own < rows ? LD(B, b, b_at + row0 + own) : 0.0f;
            float m[POINTS], value[4];
            winograd_gather(m, strips, row, lane);
            winograd_made(value, m);
#pragma unroll
            for (int p = 0; p < 4; p++)
                if (there && p / 2 <= below && p % 2 <= beside)
                    ACC(D, d, (row0 + own) * made + (p / 2) * dw + p % 2, beta, value[p] + bias);
        }
    }
}
