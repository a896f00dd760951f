/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution, for CPUs: a product of patches of the image S and
 * the gradient D of the result, summed over all pixels of the micro-batch.
 *
 * A work-item makes QN_DEPTH columns (terms of the forward sum) of QN_WIDE vectors of output
 * channels from one part of the pixels. For QN_ROW pixels at a time it packs the patches as rows,
 * and the gradient transposed, so that vectors hold channels; QN_MR x QN_NR vectors of sums stay in
 * registers, and are then added to the sums of earlier pixels: a long sum made of short ones has
 * their rounding error. QN_MR and QN_V divide QN_DEPTH; QN_NR divides QN_WIDE.
 * QN_SHORT: 1 if runs of neighbouring pixels are of one or two vectors.
 */
#include "lib/conv2d_cpu.clh"
#if QN_SHORT
#include "lib/conv2d_short.clh"
#else
#include "lib/conv2d_long.clh"
#endif
#include "lib/conv2d_block.clh"

#define COLUMNS (QN_V * QN_WIDE)

/* The gradient of the result: `size` elements in all, `channels` planes of `positions` each. */
typedef struct {
    ulong size, positions, channels;
} conv_result;

/* Copies `lanes` elements from element `at` on, in whole vectors. */
static inline void copy_run(__local float *to, __global const TYPE(D) * d, ulong at, int lanes,
                            ulong size)
{
    for (int i = 0; i < lanes; i += QN_V) {
        if (at + i + QN_V <= size) {
            conv_store(to + i, LDV(D, d, at + i));
            continue;
        }
        for (int j = i; j < lanes; j++)
            to[j] = LD(D, d, at + j);
    }
}

/* Neighbouring pixels of one image: the first's number in the panel, and where channel 0 has it. */
typedef struct {
    int lane, lanes;
    ulong at;
} conv_piece;

/* Fills in the pieces of `lanes` pixels from `first` on; gives their number. */
static inline int find_pieces(conv_piece *piece, ulong first, int lanes, conv_result result)
{
    int count = 0;
    for (int lane = 0; lane < lanes; lane += piece[count++].lanes) {
        const ulong image = (first + lane) / result.positions;
        const ulong position = first + lane - image * result.positions;
        piece[count].lane = lane;
        piece[count].lanes = (int)min((ulong)(lanes - lane), result.positions - position);
        piece[count].at = image * result.channels * result.positions + position;
    }
    return count;
}

/* Copies channel `channel` of `lanes` pixels; zeros up to QN_ROW. */
static inline void copy_channel(__local float *to, __global const TYPE(D) * d,
                                const conv_piece *piece, int pieces, int lanes, int channel,
                                conv_result result)
{
    for (int i = 0; i < pieces; i++)
        copy_run(to + piece[i].lane, d, piece[i].at + channel * result.positions, piece[i].lanes,
                 result.size);
    conv_clear(to + lanes, QN_ROW - lanes);
}

/* Packs QN_V channels from `channel` on, of which `channels` exist, as vector number `vector` of
 * each pixel's row of QN_WIDE vectors. */
static inline void pack_gradient(__local floatv *gradient, __local float *stage,
                                 __global const TYPE(D) * d, const conv_piece *piece, int pieces,
                                 int lanes, int channel, int channels, int vector,
                                 conv_result result)
{
    for (int i = 0; i < QN_V; i++)
        if (i < channels)
            copy_channel(stage + i * QN_ROW, d, piece, pieces, lanes, channel + i, result);
        else
            conv_clear(stage + i * QN_ROW, QN_ROW);
    for (int n = 0; n < QN_ROW; n += QN_V) {
        floatv row[QN_V];
#pragma unroll
        for (int i = 0; i < QN_V; i++)
            row[i] = QN_PASTE(vload, QN_V)(0, stage + i * QN_ROW + n);
        qn_transpose(row);
#pragma unroll
        for (int i = 0; i < QN_V; i++)
            gradient[(n + i) * QN_WIDE + vector] = row[i];
    }
}

/* sum += patches * gradient: QN_MR terms x QN_NR vectors of channels. */
static inline void multiply(__local floatv *sum, __local const float *panel,
                            __local const floatv *gradient)
{
    floatv a[QN_MR * QN_NR];
#pragma unroll
    for (int i = 0; i < QN_MR * QN_NR; i++)
        a[i] = (floatv)(0.0f);
    for (int n = 0; n < QN_ROW; n++) {
#pragma unroll
        for (int i = 0; i < QN_MR; i++) {
            const floatv patch = (floatv)(panel[i * QN_ROW + n]);
#pragma unroll
            for (int j = 0; j < QN_NR; j++)
                a[i * QN_NR + j] = FMA(patch, gradient[n * QN_WIDE + j], a[i * QN_NR + j]);
        }
    }
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < QN_NR; j++)
            sum[i * QN_WIDE + j] += a[i * QN_NR + j];
}

/* Work-groups: (tiles of terms, tile of channels x channel group, parts). Part p of the pixels goes
 * to copy p of the weights, from w on. The image has `depth` of the weights' `inputs` channels,
 * those from input0 on. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d, ulong d_at,
              __global TYPE(W) * w, ulong w_at, float beta, int batch, int groups, int depth,
              int channels, int sh, int sw, int dh, int dw, int kh, int kw, int stride_y,
              int stride_x, int padding_y, int padding_x, int dilation_y, int dilation_x,
              ulong part_pixels, int inputs, int input0)
{
    __local float panel[QN_PANEL(QN_DEPTH)];
    __local float stage[QN_PANEL(QN_V)];
    __local floatv gradient[QN_ROW * QN_WIDE];
    __local floatv sum[QN_DEPTH * QN_WIDE];
    conv_pixels tile;
    conv_piece piece[QN_ROW];
    s += s_at;
    d += d_at;
    w += w_at;
    const int blocks = (channels + COLUMNS - 1) / COLUMNS, group = get_group_id(1) / blocks;
    const int column0 = (get_group_id(1) - group * blocks) * COLUMNS;
    const int columns = min(COLUMNS, channels - column0);
    const int channel0 = group * channels + column0;
    const conv_axis v = conv_forward_axis(dh, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = conv_forward_axis(dw, kw, stride_x, padding_x, dilation_x);
    const ulong image = (ulong)groups * depth * sh * sw, positions = (ulong)dh * dw;
    const conv_source source = {batch * image, image, (long)group * depth * sh * sw, sh, sw};
    const conv_result result = {batch * positions * groups * channels, positions,
                                (ulong)groups * channels};
    const int terms = depth * kh * kw, row = inputs * kh * kw;
    const int term0 = get_group_id(0) * QN_DEPTH, here = min(QN_DEPTH, terms - term0);
    const ulong start = get_group_id(2) * part_pixels;
    const ulong end = min(start + part_pixels, batch * positions);
    for (int i = 0; i < QN_DEPTH * QN_WIDE; i++)
        sum[i] = (floatv)(0.0f);
    conv_clear(panel, QN_DEPTH * QN_ROW);
    for (ulong first = start; first < end; first += QN_ROW) {
        const int lanes = (int)min((ulong)QN_ROW, end - first);
        conv_find_pixels(&tile, first, lanes, v, h, source);
        conv_pack_rows(panel, s, &tile, conv_term_at(term0, v, h), here, v, h, source);
        const int pieces = find_pieces(piece, first, lanes, result);
        for (int j = 0; j < QN_WIDE; j++)
            pack_gradient(gradient, stage, d, piece, pieces, lanes, channel0 + j * QN_V,
                          columns - j * QN_V, j, result);
        for (int i = 0; i < here; i += QN_MR)
            for (int j = 0; j < QN_WIDE; j += QN_NR)
                multiply(sum + i * QN_WIDE + j, panel + i * QN_ROW, gradient + j);
    }
    w += (get_group_id(2) * (ulong)groups * channels + channel0) * row + input0 * kh * kw + term0;
    for (int j = 0; j < columns; j += QN_V)
        for (int i = 0; i < here; i += QN_V)
            conv_store_block(w, (ulong)j * row + i, row, sum + i * QN_WIDE + j / QN_V, QN_WIDE,
                             min(QN_V, columns - j), min(QN_V, here - i), beta);
}
