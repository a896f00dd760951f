/* SPDX-License-Identifier: MIT
 *
 * Convolution with one input channel in each channel group, for CPUs: the result (weights W, source
 * S the image), or with QN_GRADIENT the gradient of the image: the same sum with the taps in
 * reverse order, and as S the gradient of the result, its elements spread by the stride.
 *
 * A work-item makes some rows of the planes of one group: a band of the source is packed, and
 * vectors hold neighbouring pixels. The window is fixed per program: QN_KH x QN_KW taps.
 */
#include "lib/conv2d_band.clh"

#define TAPS (QN_KH * QN_KW)

static inline void load_taps(float *tap, __global const TYPE(W) * w, ulong at)
{
    for (int t = 0; t < TAPS; t++)
        tap[QN_GRADIENT ? TAPS - 1 - t : t] = LD(W, w, at + t);
}

/* sum + the products of all taps with the elements of the band that QN_V neighbouring pixels meet,
 * from `from` on. The next tap below is `down` floats further in the band, the one to the right
 * `right` floats. */
static inline floatv add_taps(floatv sum, __local const float *from, const float *tap, int down,
                              int right, int step)
{
#pragma unroll
    for (int y = 0; y < QN_KH; y++)
#pragma unroll
        for (int x = 0; x < QN_KW; x++)
            sum = FMA((floatv)(tap[y * QN_KW + x]), band_load(from + y * down + x * right, step),
                      sum);
    return sum;
}

/* Moves `count` rows of `columns` floats, which are `pitch` floats apart, so that they lie one
 * after another without gaps. */
static inline void close_up(__local float *rows, int count, int columns, int pitch)
{
    for (int r = 1; r < count && columns < pitch; r++)
        for (int x = 0; x < columns; x += QN_V) {
            const floatv value = QN_PASTE(vload, QN_V)(0, rows + r * pitch + x);
            QN_PASTE(vstore, QN_V)(value, 0, rows + r * columns + x);
        }
}

static inline void store_rows(__global TYPE(D) * d, ulong at, __local const float *made, int count,
                              float beta)
{
    int i = 0;
    for (; i + QN_V <= count; i += QN_V)
        ACCV(D, d, at + i, beta, QN_PASTE(vload, QN_V)(0, made + i));
    for (; i < count; i++)
        ACC(D, d, at + i, beta, made[i]);
}

/* `batch` images of `groups` x `depth` source channels of sh x sw become `groups` x `channels`
 * channels of dh x dw, where depth or channels is 1. Work-groups: (image x channel group, bands of
 * `rows` rows made). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_depthwise(__global const TYPE(S) * s, ulong s_at, __global const TYPE(W) * w, ulong w_at,
                 __global const TYPE(B) * b, ulong b_at, __global TYPE(D) * d, ulong d_at,
                 int has_bias, float beta, int batch, int groups, int depth, int channels, int sh,
                 int sw, int dh, int dw, int kh, int kw, int stride_y, int stride_x, int padding_y,
                 int padding_x, int dilation_y, int dilation_x, int rows, int pitch)
{
    __local float band[QN_BAND];
    __local float made[QN_MADE];
    float tap[TAPS];
#if QN_GRADIENT
    const int top = (QN_KH - 1) * dilation_y - padding_y, step_y = 1, spread_y = stride_y;
    const int left = (QN_KW - 1) * dilation_x - padding_x, step_x = 1, spread_x = stride_x;
#else
    const int top = padding_y, step_y = stride_y, spread_y = 1;
    const int left = padding_x, step_x = stride_x, spread_x = 1;
#endif
    s += s_at;
    w += w_at;
    b += b_at;
    d += d_at;
    const ulong plane = get_global_id(0); /* in the whole micro-batch */
    const int group = (int)(plane - plane / groups * groups);
    const int row0 = get_global_id(1) * rows, here = min(rows, dh - row0);
    const int reach = (QN_KH - 1) * dilation_y + 1, wide = (dw + QN_V - 1) / QN_V * QN_V;
    const band_source source = band_source_of((ulong)batch * groups * depth * sh * sw, sh, sw, top,
                                              left, spread_y, spread_x, pitch);
    for (int j = 0; j < depth; j++) {
        band_pack(band, s, (plane * depth + j) * sh * sw, row0 * step_y,
                  (here - 1) * step_y + reach, source);
        for (int c = 0; c < channels; c++) {
            const int channel = group * channels + c;
            const float bias = has_bias ? LD(B, b, (ulong)channel) : 0.0f;
            load_taps(tap, w, (ulong)(group * channels * depth + c + j) * TAPS);
            for (int r = 0; r < here; r++)
                for (int x = 0; x < dw; x += QN_V) {
                    __local float *to = made + r * wide + x;
                    const floatv before = j ? QN_PASTE(vload, QN_V)(0, to) : (floatv)(bias);
                    const __local float *from = band + r * step_y * pitch + x * step_x;
                    const floatv sum =
                        add_taps(before, from, tap, dilation_y * pitch, dilation_x, step_x);
                    QN_PASTE(vstore, QN_V)(sum, 0, to);
                }
            if (j < depth - 1)
                continue;
            close_up(made, here, dw, wide);
            store_rows(d, ((plane * channels + c) * dh + row0) * dw, made, here * dw, beta);
        }
    }
}
