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

/* Row `row` of rows of `width` elements each, of which p is the first. */
#define ROW(X, p, row, width)                                                                      \
    ((__global const TYPE(X) *)((__global const char *)(p) +                                       \
                                (ulong)(uint)(row) * ((width) * (uint)sizeof(BITS(X)))))

/* Two elements of a column of a tile, as they are stored; of 16 bits in 32, as they are loaded. */
typedef float2 winograd_pair_f32;
typedef uint2 winograd_pair_f16, winograd_pair_bf16;
#define PAIR(X) QN_PASTE(winograd_pair_, X##_TYPE)

/* Column j of a tile whose rows begin at d and `below`; 0 if it is not `inside`. */
static inline PAIR(D)
    load_pair(__global const TYPE(D) * d, __global const TYPE(D) * below, int j, bool inside)
{
    PAIR(D) pair = 0;
    if (inside)
        pair = (PAIR(D))(LDB(D, d, j), LDB(D, below, j));
    return pair;
}

/* Transforms a tile; its second row is 0 unless there is one `below`. */
static inline void put_tile(__local float *strip, const PAIR(D) next[2], bool below, uint term,
                            uint line)
{
    float d[4], e[POINTS];
#pragma unroll
    for (int x = 0; x < 2; x++) {
        d[x] = WIDEN_BITS(D, next[x].s0);
        d[2 + x] = below ? WIDEN_BITS(D, next[x].s1) : 0.0f;
    }
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
    const int input = min(column0 + (int)line, depth - 1);
    const int output = min(row0 + (int)line, channels - 1);
    const int down = (dh + 1) / 2, across = (dw + 1) / 2;
    const ulong start = get_group_id(2) * part_tiles;
    const ulong tiles = min(part_tiles, (ulong)batch * down * across - start);
    const int turns = (int)((tiles + DEPTH - 1) / DEPTH);
    const int own_turns = (int)((tiles + DEPTH - 1 - lane) / DEPTH);
    conv_position tile = conv_position_at(start + lane, down, across);
    const conv_position step = conv_position_at(DEPTH, down, across);
    const uint srows = depth * sh, drows = channels * dh;
    const uint srow0 = input * sh, drow0 = output * dh;
    s += s_at;
    d += d_at;
    winograd_sums sums;
    COLUMN(S) next_s[4];
    PAIR(D) next_d[2];
    int next_y = 0;
    winograd_clear(&sums);
    /* A turn transforms and multiplies what the turn before loaded. */
    for (int turn = 0; turn <= turns; turn++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn > 0) {
            put_tile(gradient, next_d, next_y + padding_y < dh - 1, lane, line);
            winograd_put(source, next_s, next_y, sh, lane, line);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const bool exists = turn < own_turns;
        const int y = 2 * tile.row - padding_y, x = exists ? 2 * tile.column - padding_x : NOWHERE;
        winograd_load(next_s, ROW(S, s, tile.image * srows + srow0 + clamp(y, 0, sh - 1), sw) + x,
                      y, x, sh, sw);
        __global const TYPE(D) *made =
            ROW(D, d, tile.image * drows + drow0 + 2 * tile.row, dw) + 2 * tile.column;
        __global const TYPE(D) *below = ROW(D, made, 2 * tile.row + 1 < dh, dw);
        next_d[0] = load_pair(made, below, 0, exists);
        next_d[1] = load_pair(made, below, 1, exists && 2 * tile.column < dw - 1);
        next_y = y;
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
