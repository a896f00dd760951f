/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of convolutions of 3 x 3 taps with stride and dilation 1 by
 * Winograd's F(3 x 3, 2 x 2) (lib/winograd.clh), for GPUs (lib/winograd_gpu.clh).
 *
 * Rows are output channels, columns are input channels, terms are tiles of 2 x 2 pixels. A
 * work-item transforms what a tile has of one output channel and meets of one input channel; it
 * loads them while those before are multiplied.
 *
 * Options: S_TYPE, D_TYPE, W_TYPE
 */
#define SWIZZLE 4
#include "lib/winograd_gpu.clh"

/* The 2 x 2 elements of a tile, of rows `width` apart; of `inside` the bits of winograd_square. */
static inline void load_tile(BITS(D) next[4], __global const TYPE(D) * d, int width, uint inside)
{
#pragma unroll
    for (int p = 0; p < 4; p++)
        next[p] = inside >> (4 * (p / 2) + p % 2) & 1 ? LDB(D, d, p / 2 * width + p % 2) : 0;
}

static inline void put_tile(__local float *strip, const BITS(D) next[4], uint term, uint line)
{
    float d[4], e[POINTS];
#pragma unroll
    for (int p = 0; p < 4; p++)
        d[p] = WIDEN_BITS(D, next[p]);
    winograd_tile(e, d);
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        strip[p * STEP + PLACE(term, line)] = e[p];
}

/* Part p of the tiles goes to copy p of the weights, from w on. The image has `depth` of the
 * weights' `inputs` channels, those from input0 on. Work-groups: (input channels / COLUMNS, output
 * channels / ROWS, parts). */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
conv2d_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d, ulong d_at,
              __global TYPE(W) * w, ulong w_at, float beta, int batch, int groups, int depth,
              int channels, int sh, int sw, int dh, int dw, int kh, int kw, int stride_y,
              int stride_x, int padding_y, int padding_x, int dilation_y, int dilation_x,
              ulong part_tiles, int inputs, int input0)
{
    __local float strips[2 * STRIP] __attribute__((aligned(16)));
    __local float *gradient = strips, *source = strips + STRIP;
    const uint id = get_local_id(0), lane = id % DEPTH, line = id / DEPTH;
    const winograd_seat at = winograd_seat_of(id);
    const int column0 = get_group_id(0) * COLUMNS, row0 = get_group_id(1) * ROWS;
    const int input = column0 + line, output = row0 + line;
    const int down = (dh + 1) / 2, across = (dw + 1) / 2;
    const ulong start = get_group_id(2) * part_tiles;
    const ulong end = min(start + part_tiles, (ulong)batch * down * across);
    const int turns = (int)((end - start + DEPTH - 1) / DEPTH);
    conv_position tile = conv_position_at(start + lane, down, across);
    const conv_position step = conv_position_at(DEPTH, down, across);
    const ulong splane = (ulong)sh * sw, dplane = (ulong)dh * dw;
    s += s_at + input * splane;
    d += d_at + output * dplane;
    winograd_sums sums;
    BITS(S) next_s[POINTS];
    BITS(D) next_d[4];
    winograd_clear(&sums);
    /* A turn transforms and multiplies what the turn before loaded. */
    for (int turn = 0; turn <= turns; turn++) {
        const bool exists = start + turn * DEPTH + lane < end;
        const int y = 2 * tile.row - padding_y, x = 2 * tile.column - padding_x;
        const uint met = winograd_square(winograd_inside(y, sh), winograd_inside(x, sw));
        const uint made = winograd_made_inside(tile, batch, dh, dw);
        __global const TYPE(S) * row[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            row[i] = s + (long)(tile.image * (depth * splane)) + (long)(y + i) * sw + x;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn > 0) {
            put_tile(gradient, next_d, lane, line);
            winograd_put(source, next_s, lane, line);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        load_tile(next_d,
                  d + tile.image * (channels * dplane) + 2 * (ulong)tile.row * dw + 2 * tile.column,
                  dw, exists && output < channels ? made : 0);
        winograd_load(next_s, row, exists && input < depth ? met : 0);
        tile = conv_position_ahead(tile, step, down, across);
        if (turn > 0)
            winograd_multiply(&sums, gradient, source, at);
    }
    w += w_at + get_group_id(2) * ((ulong)channels * inputs * TAPS);
    for (int part = 0; part < PARTS; part++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        winograd_meet(strips, &sums, part, at);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint r = id / COLUMNS; r < MET; r += DEPTH) {
            const int own = row0 + winograd_met(r, part), column = column0 + id % COLUMNS;
            const bool there = own < channels && column < depth;
            float m[POINTS], tap[TAPS];
            winograd_gather(m, strips, r, id % COLUMNS);
            winograd_gradient(tap, m);
            const ulong to = ((ulong)own * inputs + input0 + column) * TAPS;
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                if (there)
                    ACC(W, w, to + t, beta, tap[t]);
        }
    }
}
