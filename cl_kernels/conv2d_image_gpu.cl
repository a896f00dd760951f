/* SPDX-License-Identifier: MIT
 *
 * Convolution for GPUs: the result (weights W, source S the image), or with QN_GRADIENT the
 * gradient of the image (S the gradient of the result), which is also the result of a transposed
 * convolution.
 *
 * A work-group of SIDE x SIDE makes a tile of SIDE * QN_ROWS channels x SIDE * QN_COLUMNS pixels,
 * SIDE terms of the sum at a time: weights and patches go through local memory, QN_ROWS x
 * QN_COLUMNS sums of each work-item stay in registers.
 */
#include "lib/type.clh"
#include "lib/conv2d.clh"

#define SIDE 16
#define TILE_ROWS (SIDE * QN_ROWS)
#define TILE_COLUMNS (SIDE * QN_COLUMNS)

/* A pixel of the tile: row y, column x and offset `at`, counted from channel 0 of the channel
 * group, of the source element that its tap 0 meets. */
typedef struct {
    int y, x;
    long at;
    bool exists;
} conv_pixel;

static inline conv_pixel pixel_at(ulong number, ulong pixels, conv_axis v, conv_axis h, ulong image,
                                  int sw)
{
    conv_pixel pixel = {0, 0, 0, number < pixels};
    if (pixel.exists) {
        const conv_position position = conv_position_at(number, v.count, h.count);
        pixel.y = v.start + v.step * position.row;
        pixel.x = h.start + h.step * position.column;
        pixel.at = (long)(position.image * image) + (long)pixel.y * sw + pixel.x;
    }
    return pixel;
}

/* The source element that term k multiplies for the pixel; 0 in the padding. */
static inline float patch(__global const TYPE(S) * s, conv_pixel pixel, int k, int terms,
                          conv_axis v, conv_axis h, int sh, int sw)
{
    if (k >= terms || !pixel.exists)
        return 0.0f;
    const conv_term term = conv_term_at(k, v, h);
    const int down = term.row * v.move, right = term.column * h.move;
    const int y = pixel.y + down, x = pixel.x + right;
    if (y < 0 || y >= sh || x < 0 || x >= sw)
        return 0.0f;
    return LD(S, s, (ulong)(pixel.at + ((long)term.channel * sh + down) * sw + right));
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
    __local float weight[SIDE][TILE_ROWS + 1];
    __local float panel[SIDE][TILE_COLUMNS + 1];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int residue = get_group_id(2) / groups, group = get_group_id(2) - residue * groups;
    const int taps = kh * kw;
#if QN_GRADIENT
    const int across = min(stride_x, dw), down = residue / across, right = residue - down * across;
    const conv_axis v = conv_gradient_axis(dh, down, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = conv_gradient_axis(dw, right, kw, stride_x, padding_x, dilation_x);
    const ulong row_step = taps, term_step = (ulong)inputs * taps;
#else
    const conv_axis v = conv_forward_axis(dh, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = conv_forward_axis(dw, kw, stride_x, padding_x, dilation_x);
    const ulong row_step = (ulong)inputs * taps, term_step = taps;
#endif
    const ulong plane = (ulong)dh * dw;
    const ulong pixels = (ulong)batch * v.count * h.count;
    const ulong first = get_group_id(0) * (ulong)TILE_COLUMNS;
    const int row0 = get_group_id(1) * TILE_ROWS, images = front < depth ? 2 : 1;
    if (first >= pixels)
        return;
    s += s_at + (ulong)group * depth * sh * sw;
    t += t_at;
    w += w_at + ((ulong)group * channels * depth + input0) * taps;
    b += b_at + group * channels;
    d += d_at;
    conv_pixel pixel[QN_COLUMNS];
    float sum[QN_ROWS][QN_COLUMNS];
    for (int i = 0; i < QN_ROWS; i++)
        for (int j = 0; j < QN_COLUMNS; j++)
            sum[i][j] = 0.0f;
    for (int n = 0; n < images; n++) {
        const int before = n ? front : 0, own = n ? depth - front : front;
        const int terms = own * v.taps * h.taps;
        for (int j = 0; j < QN_COLUMNS; j++)
            pixel[j] =
                pixel_at(first + j * SIDE + lx, pixels, v, h, (ulong)groups * own * sh * sw, sw);
        for (int k0 = 0; k0 < terms; k0 += SIDE) {
            for (int i = 0; i < QN_ROWS; i++) {
                const int row = row0 + i * SIDE + ly, k = k0 + lx;
                float value = 0.0f;
                if (row < channels && k < terms) {
                    const conv_term term = conv_term_at(k, v, h);
                    value = LD(W, w,
                               row * row_step + (before + term.channel) * term_step +
                                   conv_tap(term, v, h, kw));
                }
                weight[lx][i * SIDE + ly] = value;
            }
            for (int j = 0; j < QN_COLUMNS; j++)
                panel[ly][j * SIDE + lx] = patch(n ? t : s, pixel[j], k0 + ly, terms, v, h, sh, sw);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < SIDE; k++)
                for (int i = 0; i < QN_ROWS; i++)
                    for (int j = 0; j < QN_COLUMNS; j++)
                        sum[i][j] =
                            fma(weight[k][i * SIDE + ly], panel[k][j * SIDE + lx], sum[i][j]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
#pragma unroll
    for (int j = 0; j < QN_COLUMNS; j++) {
        const ulong number = first + j * SIDE + lx;
        if (number >= pixels)
            return;
        const conv_position position = conv_position_at(number, v.count, h.count);
        const ulong x = h.at + position.column * (ulong)h.at_step;
        const ulong y = v.at + position.row * (ulong)v.at_step;
        const ulong at = (ulong)position.image * groups * channels * plane + y * dw + x;
        for (int i = 0; i < QN_ROWS; i++) {
            const int row = row0 + i * SIDE + ly;
            if (row < channels)
                ACC(D, d, at + (group * channels + row) * plane, beta,
                    sum[i][j] + (has_bias ? LD(B, b, (ulong)row) : 0.0f));
        }
    }
}
