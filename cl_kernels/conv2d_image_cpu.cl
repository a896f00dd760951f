/* SPDX-License-Identifier: MIT
 *
 * Convolution for CPUs: the result (weights W, source S the image), or with QN_GRADIENT the
 * gradient of the image (S the gradient of the result), which is also the result of a transposed
 * convolution.
 *
 * A work-item makes tiles of `block` channels x tile_pixels, as a product of weights and patches. A
 * panel of QN_DEPTH terms is packed, then multiplied with all the channels: QN_MR of them x QN_NR
 * vectors of sums stay in registers. Terms are added in their order. QN_MR divides `block`, which
 * is at most QN_BLOCK; QN_NR divides QN_NV. QN_SHORT: 1 if runs of neighbouring pixels are of one
 * or two vectors.
 */
#include "lib/conv2d_cpu.clh"
#if QN_SHORT
#include "lib/conv2d_short.clh"
#else
#include "lib/conv2d_long.clh"
#endif

/* Pixels lane .. lane + lanes - 1 of a tile, which are `step` elements apart in the image made. */
typedef struct {
    int lane, lanes, step;
    ulong at; /* element of the first pixel, if it were in channel 0 of the first image */
} conv_span;

/* Fills in the spans of `lanes` pixels from number `first` on: one for each row of the image, or
 * one for rows that follow one another in memory. Gives the number of spans. */
static inline int find_spans(conv_span *span, ulong first, int lanes, conv_axis v, conv_axis h,
                             ulong image, int dw)
{
    conv_position position = conv_position_at(first, v.count, h.count);
    int count = 0;
    for (int lane = 0; lane < lanes;) {
        const int here = min(h.count - position.column, lanes - lane);
        const ulong row = v.at + position.row * (ulong)v.at_step;
        const ulong at = position.image * image + row * dw + h.at + position.column * h.at_step;
        if (h.at_step == 1 && count > 0 && span[count - 1].at + span[count - 1].lanes == at) {
            span[count - 1].lanes += here;
        } else {
            span[count].lane = lane;
            span[count].lanes = here;
            span[count].step = h.at_step;
            span[count].at = at;
            count++;
        }
        lane += here;
        position = conv_next_row(position, v);
    }
    return count;
}

/* d = beta * d + sum + bias for one channel of a tile; the channel begins `at` elements behind
 * channel 0. */
static inline void store_spans(__global TYPE(D) * d, ulong at, const __local float *sum,
                               const conv_span *span, int spans, float bias, float beta)
{
    for (int n = 0; n < spans; n++) {
        const __local float *value = sum + span[n].lane;
        const ulong to = at + span[n].at;
        int i = 0;
        for (; span[n].step == 1 && i + QN_V <= span[n].lanes; i += QN_V)
            ACCV(D, d, to + i, beta, QN_PASTE(vload, QN_V)(0, value + i) + bias);
        for (; i < span[n].lanes; i++)
            ACC(D, d, to + (ulong)i * span[n].step, beta, value[i] + bias);
    }
}

/* Index of packed weight (row, term), in the order of memory: neighbours are the terms of a row in
 * the forward pass, the rows of a term in the gradient. */
#if QN_GRADIENT
#define WEIGHT_AT(row, term) ((term)*QN_MR + (row))
#else
#define WEIGHT_AT(row, term) ((row)*QN_DEPTH + (term))
#endif

/* Packs QN_MR rows of weights: element (i, k) lies at w[row[i] + term[k]]. In the forward pass the
 * elements of a row are neighbours; in the gradient of an image, if the kernel has one tap, the
 * QN_MR elements of a term are. */
static inline void pack_weights(__local float *pack, __global const TYPE(W) * w, const ulong *row,
                                const uint *term, int terms)
{
#if QN_GRADIENT
    const bool together = row[QN_MR - 1] == row[0] + QN_MR - 1;
    for (int k = 0; k < terms; k++) {
#pragma unroll
        for (int i = 0; i < QN_MR; i++)
            pack[WEIGHT_AT(i, k)] = LD(W, w, (together ? row[0] + i : row[i]) + term[k]);
    }
#else
    for (int i = 0; i < QN_MR; i++) {
        const ulong at = row[i] + term[0];
        int k = 0;
        for (; k + QN_V <= terms; k += QN_V)
            conv_store(pack + WEIGHT_AT(i, k), LDV(W, w, at + k));
        for (; k < terms; k++)
            pack[WEIGHT_AT(i, k)] = LD(W, w, at + k);
    }
#endif
}

/* sum += weights * panel: QN_MR rows x `vectors` of the QN_NV vectors of pixels. A constant tells
 * how many, at most QN_NR. */
__attribute__((always_inline)) static inline void multiply(__local floatv *sum,
                                                           __local const float *panel,
                                                           __local const float *pack, int terms,
                                                           int vectors)
{
    floatv a[QN_MR * QN_NR];
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < vectors; j++)
            a[i * QN_NR + j] = sum[i * QN_NV + j];
    for (int k = 0; k < terms; k++) {
        floatv patch[QN_NR];
#pragma unroll
        for (int j = 0; j < vectors; j++)
            patch[j] = QN_PASTE(vload, QN_V)(j, panel + k * QN_ROW);
#pragma unroll
        for (int i = 0; i < QN_MR; i++) {
            const floatv weight = (floatv)(pack[WEIGHT_AT(i, k)]);
#pragma unroll
            for (int j = 0; j < vectors; j++)
                a[i * QN_NR + j] = FMA(weight, patch[j], a[i * QN_NR + j]);
        }
    }
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < vectors; j++)
            sum[i * QN_NV + j] = a[i * QN_NR + j];
}

/* sum += weights * panel for `lanes` pixels and every channel of the block, whose weights are rows
 * row0 .. row0 + rows - 1, row_step elements apart. Up to a multiple of QN_MR the last row is
 * repeated; its surplus sums are not stored. */
static inline void multiply_rows(__local floatv *sum, __local const float *panel,
                                 __local float *pack, __global const TYPE(W) * w, const uint *term,
                                 int terms, int row0, int rows, ulong row_step, int lanes)
{
    for (int i = 0; i < rows; i += QN_MR) {
        ulong row[QN_MR];
#pragma unroll
        for (int j = 0; j < QN_MR; j++)
            row[j] = (row0 + min(i + j, rows - 1)) * row_step;
        pack_weights(pack, w, row, term, terms);
        int j = 0;
        for (; (j + QN_NR - 1) * QN_V < lanes; j += QN_NR)
            multiply(sum + i * QN_NV + j, panel + j * QN_V, pack, terms, QN_NR);
        for (; j * QN_V < lanes; j++)
            multiply(sum + i * QN_NV + j, panel + j * QN_V, pack, terms, 1);
    }
}

/* `batch` images of `groups` x `depth` source channels of sh x sw become `groups` x `channels`
 * channels of dh x dw. The first `front` source channels are in s, the others in t. A row of the
 * weights has `inputs` channels, and those from input0 on take part. Work-groups: (tiles /
 * tiles_each, blocks of channels, channel group). The stride divides the pixels of an image's
 * gradient into residues (lib/conv2d.clh); a work-item makes all residues of a tile one after
 * another, since they are neighbours in the image. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_image(__global const TYPE(S) * s, ulong s_at, __global const TYPE(W) * w, ulong w_at,
             __global const TYPE(B) * b, ulong b_at, __global TYPE(D) * d, ulong d_at, int has_bias,
             float beta, int batch, int groups, int depth, int channels, int sh, int sw, int dh,
             int dw, int kh, int kw, int stride_y, int stride_x, int padding_y, int padding_x,
             int dilation_y, int dilation_x, int inputs, int input0, __global const TYPE(S) * t,
             ulong t_at, int front, uint tiles_each, int block, int tile_pixels)
{
    __local float panel[QN_PANEL(QN_DEPTH)];
    __local float pack[QN_MR * QN_DEPTH];
    __local floatv sum[QN_BLOCK * QN_NV];
    conv_pixels tile;
    conv_span span[QN_ROW];
    uint weight[QN_DEPTH]; /* where a row has them */
    s += s_at;
    t += t_at;
    w += w_at;
    b += b_at;
    d += d_at;
    const int group = get_group_id(2), taps = kh * kw;
#if QN_GRADIENT
    const int across = min(stride_x, dw), residues = across * min(stride_y, dh);
    const ulong row_step = taps, term_step = (ulong)inputs * taps;
#else
    const int residues = 1;
    const ulong row_step = (ulong)inputs * taps, term_step = taps;
#endif
    const ulong plane = (ulong)dh * dw;
    const int row0 = get_group_id(1) * block, rows = min(block, channels - row0);
    const int channel0 = group * channels + row0, images = front < depth ? 2 : 1;
    w += ((ulong)group * channels * depth + input0) * taps;
    for (uint n = 0; n < tiles_each * residues; n++) {
#if QN_GRADIENT
        const int residue = n % residues, down = residue / across, right = residue - down * across;
        const conv_axis v = conv_gradient_axis(dh, down, kh, stride_y, padding_y, dilation_y);
        const conv_axis h = conv_gradient_axis(dw, right, kw, stride_x, padding_x, dilation_x);
#else
        const conv_axis v = conv_forward_axis(dh, kh, stride_y, padding_y, dilation_y);
        const conv_axis h = conv_forward_axis(dw, kw, stride_x, padding_x, dilation_x);
#endif
        const ulong pixels = (ulong)batch * v.count * h.count;
        const ulong first = (get_group_id(0) * (ulong)tiles_each + n / residues) * tile_pixels;
        if (first >= pixels)
            continue;
        const int lanes = (int)min((ulong)tile_pixels, pixels - first);
        for (int i = 0; i < block * QN_NV; i++)
            sum[i] = (floatv)(0.0f);
        for (int j = 0; j < images; j++) {
            const int before = j ? front : 0, own = j ? depth - front : front;
            const int terms = own * v.taps * h.taps;
            const conv_source source = conv_source_of(batch, groups, group, own, sh, sw);
            conv_find_pixels(&tile, first, lanes, v, h, source);
            for (int k = 0; k < terms; k += QN_DEPTH) {
                const int here = min(QN_DEPTH, terms - k);
                conv_term term = conv_term_at(k, v, h);
                for (int i = 0; i < here; i++) {
                    weight[i] =
                        (uint)((before + term.channel) * term_step) + conv_tap(term, v, h, kw);
                    term = conv_next_term(term, v, h);
                }
                conv_pack_rows(panel, j ? t : s, &tile, conv_term_at(k, v, h), here, v, h, source);
                multiply_rows(sum, panel, pack, w, weight, here, row0, rows, row_step, lanes);
            }
        }
        const int spans =
            find_spans(span, first, lanes, v, h, (ulong)groups * channels * plane, dw);
        for (int i = 0; i < rows; i++)
            store_spans(d, (channel0 + i) * plane, (const __local float *)(sum + i * QN_NV), span,
                        spans, has_bias ? LD(B, b, (ulong)(channel0 + i)) : 0.0f, beta);
    }
}
