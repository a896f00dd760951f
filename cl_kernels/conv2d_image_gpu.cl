/* SPDX-License-Identifier: MIT
 *
 * Convolution for GPUs: the result (weights W, source S the image), or with QN_GRADIENT the
 * gradient of the image (S the gradient of the result), which is also the result of a transposed
 * convolution.
 *
 * A work-group makes a tile of channels x pixels (lib/tiled.clh): the strips are weights and
 * patches of the source. Each work-item loads one term of some channels' weights and some terms of
 * one pixel, while the strips before are multiplied. Where the terms of a strip lie in the source
 * is in local memory.
 *
 * Options: S_TYPE, W_TYPE, B_TYPE, D_TYPE; QN_GRADIENT; those of lib/tiled.clh
 *   QN_TAPS, QN_STRIDE, QN_DILATION  those of the window, if they are the same both ways and known
 */
#include "lib/bits.clh"
#include "lib/conv2d_patch.clh"
#include "lib/tiled.clh"

/* What work-item `id` copies: of the weights' strip a term, and every ROW_STEP-th row from its
 * first one on; of the patches' a pixel, and every TERM_STEP-th term. Neighbours copy neighbours in
 * memory. */
#define WEIGHT_TERM(id) ((id) % DEPTH)
#define ROW(id) ((id) / DEPTH)
#define ROW_STEP (ITEMS / DEPTH)
#define PIXEL(id) ((id) % TILE_COLUMNS)
#define TERM(id) ((id) / TILE_COLUMNS)
#define TERM_STEP (ITEMS / TILE_COLUMNS)
/* The column of a pixel in its tile: neighbouring work-items make neighbouring pixels. */
#define COLUMN(pixel)                                                                              \
    ((pixel) / (SIDE * QN_V) * (SIDE * QN_V) + (pixel) % SIDE * QN_V + (pixel) / SIDE % QN_V)

static inline conv_axis axis_of(int size, int residue, int taps, int stride, int padding,
                                int dilation)
{
    return QN_GRADIENT ? conv_gradient_axis(size, residue, taps, stride, padding, dilation)
                       : conv_forward_axis(size, taps, stride, padding, dilation);
}

static inline void load_weights(BITS(W) next[QN_ROWS], __global const TYPE(W) * w, bool exists,
                                int rows, uint row_step)
{
#pragma unroll
    for (uint e = 0; e < QN_ROWS; e++)
        next[e] = exists && (int)(e * ROW_STEP) < rows ? LDB(W, w, e * ROW_STEP * row_step) : 0;
}

static inline void put_weights(__local float *strip, const BITS(W) next[QN_ROWS])
{
    const uint id = tiled_item();
#pragma unroll
    for (uint e = 0; e < QN_ROWS; e++)
        strip[WEIGHT_TERM(id) * PITCH_A + ROW(id) + e * ROW_STEP] = WIDEN_BITS(W, next[e]);
}

static inline void load_patches(BITS(S) next[QN_COLUMNS], __global const TYPE(S) * from,
                                conv_pixel pixel, const __local conv_offset *offset, int sh, int sw)
{
#pragma unroll
    for (uint e = 0; e < QN_COLUMNS; e++)
        next[e] = conv_patch(from, pixel, offset[TERM(tiled_item()) + e * TERM_STEP], sh, sw);
}

static inline void put_patches(__local float *strip, const BITS(S) next[QN_COLUMNS])
{
    const uint id = tiled_item();
#pragma unroll
    for (uint e = 0; e < QN_COLUMNS; e++)
        strip[(TERM(id) + e * TERM_STEP) * PITCH_B + COLUMN(PIXEL(id))] = WIDEN_BITS(S, next[e]);
}

/* Adds the bias to the rows of the work-item that there are. */
static inline void add_bias(floatv sum[QN_ROWS][RUNS], __global const TYPE(B) * b, int rows)
{
#pragma unroll
    for (uint r = 0; r < QN_ROWS; r++)
        if ((int)r < rows)
#pragma unroll
            for (uint run = 0; run < RUNS; run++)
                sum[r][run] += LD(B, b, r);
}

/* Stores the first `rows` of column i of the work-item, which are `plane` elements apart. */
static inline void store_column(floatv sum[QN_ROWS][RUNS], uint i, __global TYPE(D) * d, int rows,
                                ulong plane, float beta)
{
#pragma unroll
    for (uint r = 0; r < QN_ROWS; r++)
        if ((int)r < rows)
            ACC(D, d, r * plane, beta, ((const float *)&sum[r][i / QN_V])[i % QN_V]);
}

/* `batch` images of `groups` x `depth` source channels of sh x sw become `groups` x `channels`
 * channels of dh x dw. The first `front` source channels are in s, the others in t. A row of the
 * weights has `inputs` channels, and those from input0 on take part. Work-groups: (tiles of pixels,
 * tiles of channels, residue x channel group). */
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void
conv2d_image(__global const TYPE(S) * s, ulong s_at, __global const TYPE(W) * w, ulong w_at,
             __global const TYPE(B) * b, ulong b_at, __global TYPE(D) * d, ulong d_at, int has_bias,
             float beta, int batch, int groups, int depth, int channels, int sh, int sw, int dh,
             int dw, int kh, int kw, int stride_y, int stride_x, int padding_y, int padding_x,
             int dilation_y, int dilation_x, int inputs, int input0, __global const TYPE(S) * t,
             ulong t_at, int front)
{
    __local floatv strip_a[STRIP_A], strip_b[STRIP_B];
    __local conv_offset offset[DEPTH];
    const int residue = get_group_id(2) / groups, group = get_group_id(2) - residue * groups;
#ifdef QN_TAPS
    kh = kw = QN_TAPS;
    stride_y = stride_x = QN_STRIDE;
    dilation_y = dilation_x = QN_DILATION;
#endif
    const int taps = kh * kw, across = QN_GRADIENT ? min(stride_x, dw) : 1;
    const int down = residue / across, right = residue - down * across;
    const conv_axis v = axis_of(dh, down, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = axis_of(dw, right, kw, stride_x, padding_x, dilation_x);
    const uint row_step = (QN_GRADIENT ? 1 : inputs) * taps;
    const uint term_step = (QN_GRADIENT ? inputs : 1) * taps;
    const ulong first = get_group_id(0) * (ulong)TILE_COLUMNS;
    const int row0 = get_group_id(1) * TILE_ROWS, images = front < depth ? 2 : 1;
    if (first >= (ulong)batch * v.count * h.count)
        return;
    s += s_at + (ulong)group * depth * sh * sw;
    t += t_at;
    w += w_at + ((ulong)group * channels * depth + input0) * taps;
    const uint id = tiled_item();
    const int rows = channels - row0 - (int)ROW(id);
    w += (row0 + ROW(id)) * (ulong)row_step;
    floatv sum[QN_ROWS][RUNS];
    tiled_clear(sum);
    for (int n = 0; n < images; n++) {
        const int before = n ? front : 0, own = n ? depth - front : front;
        const int terms = own * v.taps * h.taps, strips = (terms + DEPTH - 1) / DEPTH;
        if (terms == 0) /* of pixels that no tap meets */
            continue;
        const conv_position at = conv_position_at(first + PIXEL(id), v.count, h.count);
        const conv_pixel pixel =
            conv_pixel_at(at, at.image < batch, v, h, (ulong)groups * own * sh * sw, sw);
        __global const TYPE(S) *from = n ? t : s;
        __global const TYPE(W) *weights = w + (before * term_step + v.tap0 * kw + h.tap0);
        const conv_term step = conv_term_at(DEPTH, v, h);
        conv_term term = conv_term_at(WEIGHT_TERM(id), v, h);
        BITS(W) next_w[QN_ROWS];
        BITS(S) next_s[QN_COLUMNS];
        /* A turn copies and multiplies the strips that the turn before loaded. */
        for (int turn = 0; turn <= strips; turn++) {
            const bool exists = term.channel < own;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn > 0) {
                put_weights((__local float *)strip_a, next_w);
                put_patches((__local float *)strip_b, next_s);
            }
            if (id < DEPTH)
                offset[id] = conv_offset_of(term, exists, v, h, sh, sw);
            barrier(CLK_LOCAL_MEM_FENCE);
            load_weights(next_w,
                         weights + (term.channel * term_step + term.row * v.tap_step * kw +
                                    term.column * h.tap_step),
                         exists, rows, row_step);
            load_patches(next_s, from, pixel, offset, sh, sw);
            term = conv_term_ahead(term, step, v, h);
            if (turn > 0)
                tiled_multiply(sum, strip_a, strip_b);
        }
    }
    const int row = row0 + tiled_row(0), made = channels - row;
    if (has_bias)
        add_bias(sum, b + b_at + group * channels + row, made);
    const ulong plane = (ulong)dh * dw;
    const conv_position step = conv_position_at(SIDE, v.count, h.count);
    conv_position at = conv_position_at(first + get_local_id(0), v.count, h.count);
#pragma unroll
    for (uint i = 0; i < QN_COLUMNS; i++) {
        const ulong x = h.at + at.column * (ulong)h.at_step;
        const ulong y = v.at + at.row * (ulong)v.at_step;
        const ulong channel = ((ulong)at.image * groups + group) * channels + row;
        /* One condition a store: of two, each within the other, a compiler for CPUs heeds one. */
        const int stored = at.image < batch ? made : 0;
        store_column(sum, i, d + d_at + channel * plane + y * dw + x, stored, plane, beta);
        at = conv_position_ahead(at, step, v.count, h.count);
    }
}
