/* SPDX-License-Identifier: MIT
 *
 * Convolutions of 3 x 3 taps with stride and dilation 1 by Winograd's F(2 x 2, 3 x 3)
 * (lib/winograd.clh), for GPUs.
 *
 * A work-group makes ROWS channels of TILES tiles, DEPTH channels of the source at a time. For each
 * point two strips of local memory have what is multiplied: ROWS transformed weights and TILES
 * transformed elements of each channel. A work-item copies some of the weights and transforms what
 * one tile meets of one channel; it loads them while the strips before are multiplied. SHARE
 * work-items have the sums of a point, each those of QN_ROWS rows and QN_ROWS tiles, until these
 * meet in local memory and are transformed.
 *
 * Options: S_TYPE, W_TYPE, B_TYPE, D_TYPE
 */
#include "lib/bits.clh"
#include "lib/conv2d.clh"
#define WINOGRAD_TYPE float
#include "lib/winograd.clh"

#define ITEMS 256
#define ROWS 32
#define TILES 32
#define DEPTH (ITEMS / TILES)
/* Work-items of a point, along an edge of its sums; rows and vectors of tiles of each. */
#define EDGE 4
#define SHARE (EDGE * EDGE)
#define EACH (ROWS / EDGE)
#define RUNS (TILES / EDGE / QN_V)
/* Floats of a strip; of a point in it; and vectors that a work-item copies of the weights. */
#define STRIP (POINTS * DEPTH * TILES)
#define STEP (DEPTH * TILES)
#define COPIED (STRIP / QN_V / ITEMS)
/* Where the sums meet, some rows of each work-item at a time, in as much memory as two strips. */
#define MET (2 * STRIP / POINTS / TILES)
#define PARTS (ROWS / MET)
#define MET_EACH (EACH / PARTS)

/* A work-item's sums: of a point, rows from `row` on, tiles of run h from h * TILES / RUNS + column
 * on. */
typedef struct {
    uint point, row, column;
} seat;

static inline seat seat_of(uint id)
{
    const seat at = {id / SHARE, id % SHARE / EDGE * EACH, id % EDGE * QN_V};
    return at;
}

/* Transforms the weights of `rows` channels to make, from row0 on: u (row blocks, channels, points,
 * ROWS), 0 past the last row and channel. */
__kernel void conv2d_winograd_weights(__global const TYPE(W) * w, ulong w_at, __global float *u,
                                      ulong u_at, int row0, int rows, int depth, ulong row_step,
                                      ulong depth_step, int turned)
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

/* --- strips --- */

static inline void load_weights(float4 next[COPIED], __global const float *u, uint id)
{
#pragma unroll
    for (uint e = 0; e < COPIED; e++)
        next[e] = ((__global const float4 *)u)[id + e * ITEMS];
}

/* From (channel, point, row) to (point, channel, row). */
static inline void put_weights(__local float4 *strip, const float4 next[COPIED], uint id)
{
    const uint line = ROWS / QN_V;
#pragma unroll
    for (uint e = 0; e < COPIED; e++) {
        const uint at = id + e * ITEMS, channel = at / (POINTS * line), point = at / line % POINTS;
        strip[(point * DEPTH + channel) * line + at % line] = next[e];
    }
}

/* The 4 x 4 elements of a tile's channel, of which rows begin at `row`; `inside` has a bit for each
 * that exists. */
static inline void load_source(BITS(S) next[POINTS], __global const TYPE(S) *const row[4],
                               uint inside)
{
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        next[p] = inside >> p & 1 ? LDB(S, row[p / 4], p % 4) : 0;
}

static inline void put_source(__local float *strip, const BITS(S) next[POINTS], uint id)
{
    float s[POINTS], v[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        s[p] = WIDEN_BITS(S, next[p]);
    winograd_source(v, s);
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        strip[p * STEP + id] = v[p];
}

static inline void multiply(float4 sum[EACH][RUNS], const __local float *weights,
                            const __local float *source, seat at)
{
    weights += at.point * STEP + at.row;
    source += at.point * STEP + at.column;
#pragma unroll 2
    for (uint c = 0; c < DEPTH; c++) {
        float4 tiles[RUNS];
#pragma unroll
        for (uint h = 0; h < RUNS; h++)
            tiles[h] = *(const __local float4 *)(source + c * TILES + h * (TILES / RUNS));
#pragma unroll
        for (uint r = 0; r < EACH; r++)
#pragma unroll
            for (uint h = 0; h < RUNS; h++)
                sum[r][h] = fma((float4)(weights[c * ROWS + r]), tiles[h], sum[r][h]);
    }
}

/* --- the end --- */

/* met (points, MET, TILES) = the sums of rows part * MET_EACH .. of each work-item's. */
static inline void meet(__local float *met, float4 sum[EACH][RUNS], int part, seat at)
{
#pragma unroll
    for (uint r = 0; r < MET_EACH; r++)
#pragma unroll
        for (uint h = 0; h < RUNS; h++) {
            const uint row = at.row / PARTS + r, column = h * (TILES / RUNS) + at.column;
            float4 sums = sum[r][h];
#pragma unroll
            for (int p = 1; p < PARTS; p++)
                sums = part == p ? sum[p * MET_EACH + r][h] : sums;
            *(__local float4 *)(met + (at.point * MET + row) * TILES + column) = sums;
        }
}

/* Of 4 bits in a row, those of elements first .. first + 3 that lie in 0 .. size - 1. */
static inline uint inside_of(int first, int size)
{
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        bits |= (uint)(first + i) < (uint)size ? 1u << i : 0;
    return bits;
}

/* Where both are set: bit 4 * y + x. */
static inline uint square_of(uint rows, uint columns)
{
    return (rows & 1 ? columns : 0) | (rows & 2 ? columns << 4 : 0) |
           (rows & 4 ? columns << 8 : 0) | (rows & 8 ? columns << 12 : 0);
}

/* Makes `rows` of `channels` channels, from row0 on, with their transformed weights u. The first
 * `front` channels of the source are in s, the others in t. Element (y, x) made meets source rows
 * y - top .. y - top + 2 and columns x - left .. x - left + 2. A row block of u has `deep`
 * channels. Work-groups: (tiles / TILES, rows / ROWS). */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
conv2d_winograd(__global const TYPE(S) * s, ulong s_at, __global const TYPE(S) * t, ulong t_at,
                __global const float *u, ulong u_at, __global const TYPE(B) * b, ulong b_at,
                __global TYPE(D) * d, ulong d_at, int has_bias, float beta, int batch, int depth,
                int front, int channels, int sh, int sw, int dh, int dw, int top, int left,
                int row0, int rows, int deep)
{
    __local float strips[2 * STRIP] __attribute__((aligned(16)));
    __local float *weights = strips, *source = strips + STRIP;
    const uint id = get_local_id(0), lane = id % TILES, line = id / TILES;
    const seat at = seat_of(id);
    const int block0 = get_group_id(1) * ROWS, images = front < depth ? 2 : 1;
    const conv_position tile =
        conv_position_at(get_group_id(0) * (ulong)TILES + lane, (dh + 1) / 2, (dw + 1) / 2);
    const int y = 2 * tile.row - top, x = 2 * tile.column - left;
    const uint inside = tile.image < batch ? square_of(inside_of(y, sh), inside_of(x, sw)) : 0;
    const ulong plane = (ulong)sh * sw;
    u += u_at + (ulong)block0 * POINTS * deep;
    float4 sum[EACH][RUNS], next_u[COPIED];
    BITS(S) next_s[POINTS];
#pragma unroll
    for (uint r = 0; r < EACH; r++)
#pragma unroll
        for (uint h = 0; h < RUNS; h++)
            sum[r][h] = (float4)(0.0f);
    for (int n = 0; n < images; n++) {
        const int own = n ? depth - front : front, turns = (own + DEPTH - 1) / DEPTH;
        __global const TYPE(S) * row[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            row[i] = (n ? t + t_at : s + s_at) + (long)((tile.image * (ulong)own + line) * plane) +
                     (long)(y + i) * sw + x;
        /* A turn copies and multiplies the strips that the turn before loaded. */
        for (int turn = 0; turn <= turns; turn++) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn > 0) {
                put_weights((__local float4 *)weights, next_u, id);
                put_source(source, next_s, id);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn < turns) {
                load_weights(next_u, u, id);
                load_source(next_s, row, turn * DEPTH + (int)line < own ? inside : 0);
                u += DEPTH * POINTS * ROWS;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    row[i] += DEPTH * plane;
            }
            if (turn > 0)
                multiply(sum, weights, source, at);
        }
        u -= (turns * DEPTH - own) * (POINTS * ROWS);
    }
    const ulong made = (ulong)dh * dw;
    const uint stored = tile.image < batch ? square_of(inside_of(2 * tile.row, dh) & 3,
                                                       inside_of(2 * tile.column, dw) & 3)
                                           : 0;
    d += d_at + tile.image * (channels * made) + 2 * (ulong)tile.row * dw + 2 * tile.column;
    for (int part = 0; part < PARTS; part++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        meet(strips, sum, part, at);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = line; row < MET; row += DEPTH) {
            const int own = block0 + (row / MET_EACH) * EACH + part * MET_EACH + row % MET_EACH;
            const uint there = own < rows ? stored : 0;
            const float bias = has_bias && own < rows ? LD(B, b, b_at + row0 + own) : 0.0f;
            float m[POINTS], value[4];
#pragma unroll
            for (int p = 0; p < POINTS; p++)
                m[p] = strips[(p * MET + row) * TILES + lane];
            winograd_made(value, m);
#pragma unroll
            for (int p = 0; p < 4; p++)
                if (there >> (4 * (p / 2) + p % 2) & 1)
                    ACC(D, d, (row0 + own) * made + (p / 2) * dw + p % 2, beta, value[p] + bias);
        }
    }
}
