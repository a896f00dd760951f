/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution with one input channel in each channel group, for
 * CPUs: a work-item makes the taps of one output channel, each in a vector of sums. The window is
 * fixed per program: QN_KH x QN_KW taps.
 */
#include "lib/conv2d_band.clh"
#include "lib/reduce.clh"

#define TAPS (QN_KH * QN_KW)

/* Elements at .. at + lanes - 1 of d, then zeros. d has `size` elements: a whole vector is loaded
 * where it does not reach past them. */
static inline floatv load_lanes(__global const TYPE(D) * d, ulong at, int lanes, ulong size)
{
    if (lanes >= QN_V)
        return LDV(D, d, at);
    if (at + QN_V <= size)
        return select((floatv)(0.0f), LDV(D, d, at),
                      QN_PASTE(convert_int, QN_V)(QN_LANES) < (intv)(lanes));
    float lane[QN_V];
    for (int i = 0; i < QN_V; i++)
        lane[i] = i < lanes ? LD(D, d, at + i) : 0.0f;
    return QN_PASTE(vload, QN_V)(0, lane);
}

/* The gradient of the result: `size` elements in rows of `dw`. For each tap an element meets one
 * float of the band. Floats of the band from that one to the one that the element below meets
 * (row_step), that the right neighbour meets (step), and that the same element meets with the tap
 * below (down) or to the right (right). */
typedef struct {
    ulong size;
    int dw, row_step, step, down, right;
} band_result;

/* total[t] += the products of tap t over one band: `rows` rows of the result from `at` on. The sum
 * of the band is added to the total, as a long sum made of short ones has their rounding error. */
static inline void add_band(floatv *total, __local const float *band, __global const TYPE(D) * d,
                            ulong at, int rows, band_result result)
{
    floatv sum[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        sum[t] = (floatv)(0.0f);
    for (int r = 0; r < rows; r++, at += result.dw, band += result.row_step)
        for (int x = 0; x < result.dw; x += QN_V) {
            const floatv gradient = load_lanes(d, at + x, result.dw - x, result.size);
            __local const float *met = band + x * result.step;
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                sum[t] = FMA(gradient,
                             band_load(met + t / QN_KW * result.down + t % QN_KW * result.right,
                                       result.step),
                             sum[t]);
        }
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        total[t] += sum[t];
}

/* Work-groups: (output channels). `rows` rows of the result are taken at a time. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_depthwise_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d,
                        ulong d_at, __global TYPE(W) * w, ulong w_at, float beta, int batch,
                        int groups, int depth, int channels, int sh, int sw, int dh, int dw, int kh,
                        int kw, int stride_y, int stride_x, int padding_y, int padding_x,
                        int dilation_y, int dilation_x, int rows, int pitch)
{
    __local float band[QN_BAND];
    floatv total[TAPS];
    s += s_at;
    d += d_at;
    w += w_at;
    const int channel = get_global_id(0), group = channel / channels;
    const int reach = (QN_KH - 1) * dilation_y + 1;
    const band_result result = {(ulong)batch * groups * channels * dh * dw,
                                dw,
                                stride_y * pitch,
                                stride_x,
                                dilation_y * pitch,
                                dilation_x};
    const band_source source =
        band_source_of((ulong)batch * groups * sh * sw, sh, sw, padding_y, padding_x, 1, 1, pitch);
    for (int t = 0; t < TAPS; t++)
        total[t] = (floatv)(0.0f);
    for (int n = 0; n < batch; n++)
        for (int row0 = 0; row0 < dh; row0 += rows) {
            const int here = min(rows, dh - row0);
            band_pack(band, s, ((ulong)n * groups + group) * sh * sw, row0 * stride_y,
                      (here - 1) * stride_y + reach, source);
            add_band(total, band, d, (((ulong)n * groups * channels + channel) * dh + row0) * dw,
                     here, result);
        }
    for (int t = 0; t < TAPS; t++)
        ACC(W, w, (ulong)channel * TAPS + t, beta, qn_hadd(total[t]));
}
