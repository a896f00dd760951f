/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution, for GPUs: a product of patches of the image S and
 * the gradient D of the result, summed over all pixels of the micro-batch.
 *
 * A work-group of SIDE x SIDE makes a tile of SIDE * QN_ROWS output channels x SIDE * QN_COLUMNS
 * terms of the forward sum from one part of the pixels, SIDE pixels at a time, both operands
 * through local memory.
 */
#include "lib/type.clh"
#include "lib/conv2d.clh"

#define SIDE 16
#define TILE_ROWS (SIDE * QN_ROWS)
#define TILE_COLUMNS (SIDE * QN_COLUMNS)

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
    __local float gradient[SIDE][TILE_ROWS + 1];
    __local float panel[SIDE][TILE_COLUMNS + 1];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int tiles = (channels + TILE_ROWS - 1) / TILE_ROWS, group = get_group_id(1) / tiles;
    const int row0 = (get_group_id(1) - group * tiles) * TILE_ROWS, channel0 = group * channels;
    const int term0 = get_group_id(0) * TILE_COLUMNS, terms = depth * kh * kw;
    const int row_step = inputs * kh * kw;
    const conv_axis v = conv_forward_axis(dh, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = conv_forward_axis(dw, kw, stride_x, padding_x, dilation_x);
    const ulong image = (ulong)groups * depth * sh * sw, positions = (ulong)dh * dw;
    const ulong start = get_group_id(2) * part_pixels;
    const ulong end = min(start + part_pixels, batch * positions);
    s += s_at + (ulong)group * depth * sh * sw;
    d += d_at;
    w += w_at + (get_group_id(2) * (ulong)groups * channels + channel0) * row_step +
         input0 * kh * kw;
    conv_term term[QN_COLUMNS];
    float sum[QN_ROWS][QN_COLUMNS];
    for (int j = 0; j < QN_COLUMNS; j++)
        term[j] = conv_term_at(term0 + j * SIDE + ly, v, h);
    for (int i = 0; i < QN_ROWS; i++)
        for (int j = 0; j < QN_COLUMNS; j++)
            sum[i][j] = 0.0f;
    for (ulong first = start; first < end; first += SIDE) {
        const ulong number = first + lx;
        const conv_position at = conv_position_at(number, dh, dw);
        const ulong n = at.image, position = (ulong)at.row * dw + at.column;
        const int y0 = v.start + v.step * at.row, x0 = h.start + h.step * at.column;
        for (int i = 0; i < QN_ROWS; i++) {
            const int row = row0 + i * SIDE + ly;
            gradient[lx][i * SIDE + ly] =
                number < end && row < channels
                    ? LD(D, d, (n * groups * channels + channel0 + row) * positions + position)
                    : 0.0f;
        }
        for (int j = 0; j < QN_COLUMNS; j++) {
            const int y = y0 + term[j].row * v.move, x = x0 + term[j].column * h.move;
            const bool inside = y >= 0 && y < sh && x >= 0 && x < sw;
            panel[lx][j * SIDE + ly] =
                number < end && term[j].channel < depth && inside
                    ? LD(S, s, n * image + ((ulong)term[j].channel * sh + y) * sw + x)
                    : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < SIDE; k++)
            for (int i = 0; i < QN_ROWS; i++)
                for (int j = 0; j < QN_COLUMNS; j++)
                    sum[i][j] = fma(gradient[k][i * SIDE + ly], panel[k][j * SIDE + lx], sum[i][j]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < QN_ROWS; i++)
        for (int j = 0; j < QN_COLUMNS; j++) {
            const int row = row0 + i * SIDE + ly, column = term0 + j * SIDE + lx;
            if (row < channels && column < terms)
                ACC(W, w, (ulong)row * row_step + column, beta, sum[i][j]);
        }
}
