/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution, for GPUs: a product of patches of the image S and
 * the gradient D of the result, summed over all pixels of the micro-batch.
 *
 * A work-group makes a tile of output channels x terms of the forward sum (lib/tiled.clh) from one
 * part of the pixels. Each work-item loads what belongs to one pixel of the strips, while those
 * before are multiplied. Where the terms lie in the image is in local memory.
 *
 * Options: S_TYPE, D_TYPE, W_TYPE; those of lib/tiled.clh
 */
#include "lib/bits.clh"
#include "lib/conv2d_patch.clh"
#include "lib/tiled.clh"

/* What work-item `id` copies of a strip: its pixel, and every EDGE_STEP-th row or column from its
 * first one on. Neighbours copy neighbours in memory. */
#define PIXEL(id) ((id) % DEPTH)
#define EDGE(id) ((id) / DEPTH)
#define EDGE_STEP (ITEMS / DEPTH)
/* The term that is a column of the tile: neighbouring work-items make neighbouring terms. */
#define TERM(column)                                                                               \
    ((column) / (SIDE * QN_V) * (SIDE * QN_V) + (column) % QN_V * SIDE + (column) / QN_V % SIDE)

static inline void load_gradient(BITS(D) next[QN_ROWS], __global const TYPE(D) * d, bool exists,
                                 int rows, ulong row_step)
{
#pragma unroll
    for (uint e = 0; e < QN_ROWS; e++)
        next[e] = exists && (int)(e * EDGE_STEP) < rows ? LDB(D, d, e * EDGE_STEP * row_step) : 0;
}

static inline void put_gradient(__local float *strip, const BITS(D) next[QN_ROWS])
{
    const uint id = tiled_item();
#pragma unroll
    for (uint e = 0; e < QN_ROWS; e++)
        strip[PIXEL(id) * PITCH_A + EDGE(id) + e * EDGE_STEP] = WIDEN_BITS(D, next[e]);
}

static inline void load_patches(BITS(S) next[QN_COLUMNS], __global const TYPE(S) * s,
                                conv_pixel pixel, const __local conv_offset *offset, int sh, int sw)
{
#pragma unroll
    for (uint e = 0; e < QN_COLUMNS; e++)
        next[e] = conv_patch(s, pixel, offset[EDGE(tiled_item()) + e * EDGE_STEP], sh, sw);
}

static inline void put_patches(__local float *strip, const BITS(S) next[QN_COLUMNS])
{
    const uint id = tiled_item();
#pragma unroll
    for (uint e = 0; e < QN_COLUMNS; e++)
        strip[PIXEL(id) * PITCH_B + EDGE(id) + e * EDGE_STEP] = WIDEN_BITS(S, next[e]);
}

/* Work-groups: (tiles of terms, tile of channels x channel group, parts). Part p of the pixels goes
 * to copy p of the weights, from w on. The image has `depth` of the weights' `inputs` channels,
 * those from input0 on. */
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void
conv2d_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d, ulong d_at,
              __global TYPE(W) * w, ulong w_at, float beta, int batch, int groups, int depth,
              int channels, int sh, int sw, int dh, int dw, int kh, int kw, int stride_y,
              int stride_x, int padding_y, int padding_x, int dilation_y, int dilation_x,
              ulong part_pixels, int inputs, int input0)
{
    __local floatv strip_a[STRIP_A], strip_b[STRIP_B];
    __local conv_offset offset[TILE_COLUMNS];
    const int tiles = (channels + TILE_ROWS - 1) / TILE_ROWS, group = get_group_id(1) / tiles;
    const int row0 = (get_group_id(1) - group * tiles) * TILE_ROWS, channel0 = group * channels;
    const int term0 = get_group_id(0) * TILE_COLUMNS, terms = depth * kh * kw;
    const int row_step = inputs * kh * kw;
    const conv_axis v = conv_forward_axis(dh, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = conv_forward_axis(dw, kw, stride_x, padding_x, dilation_x);
    const ulong image = (ulong)groups * depth * sh * sw, positions = (ulong)dh * dw;
    const ulong start = get_group_id(2) * part_pixels;
    const ulong end = min(start + part_pixels, batch * positions);
    const uint id = tiled_item();
    const int rows = channels - row0 - (int)EDGE(id);
    s += s_at + (ulong)group * depth * sh * sw;
    d += d_at + (channel0 + row0 + EDGE(id)) * positions;
    w += w_at + (get_group_id(2) * (ulong)groups * channels + channel0) * row_step +
         input0 * kh * kw;
    if (id < TILE_COLUMNS) {
        const int term = term0 + TERM(id);
        offset[id] = conv_offset_of(conv_term_at(term, v, h), term < terms, v, h, sh, sw);
    }
    const conv_position step = conv_position_at(DEPTH, dh, dw);
    conv_position at = conv_position_at(start + PIXEL(id), dh, dw);
    const long length = (long)(end - start);
    BITS(D) next_d[QN_ROWS];
    BITS(S) next_s[QN_COLUMNS];
    floatv sum[QN_ROWS][RUNS];
    tiled_clear(sum);
    /* A turn copies and multiplies the strips that the turn before loaded. */
    for (long l = PIXEL(id), turn = 0; turn < length + DEPTH; l += DEPTH, turn += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn > 0) {
            put_gradient((__local float *)strip_a, next_d);
            put_patches((__local float *)strip_b, next_s);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        load_gradient(next_d,
                      d + (ulong)at.image * groups * channels * positions + (ulong)at.row * dw +
                          at.column,
                      l < length, rows, positions);
        load_patches(next_s, s, conv_pixel_at(at, l < length, v, h, image, sw), offset, sh, sw);
        at = conv_position_ahead(at, step, dh, dw);
        if (turn > 0)
            tiled_multiply(sum, strip_a, strip_b);
    }
#pragma unroll
    for (uint r = 0; r < QN_ROWS; r++) {
        const int row = row0 + tiled_row(r);
#pragma unroll
        for (uint i = 0; i < QN_COLUMNS; i++) {
            const int column = term0 + i * SIDE + get_local_id(0);
            if (row < channels && column < terms)
                ACC(W, w, (ulong)row * row_step + column, beta,
                    ((const float *)&sum[r][i / QN_V])[i % QN_V]);
        }
    }
}
