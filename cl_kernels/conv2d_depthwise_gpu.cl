/* SPDX-License-Identifier: MIT
 *
 * Convolution with one input channel in each channel group, for GPUs: a work-item makes one element
 * of the result (weights W, source S the image), or with QN_GRADIENT of the gradient of the image
 * (S the gradient of the result).
 */
#include "lib/type.clh"

/* Along one axis, the source element that tap t of element `at` meets; -1: none. */
static inline int met(int at, int t, int size, int stride, int padding, int dilation)
{
#if QN_GRADIENT
    const int place = at + padding - t * dilation, source = place / stride;
    const bool there = place >= 0 && source * stride == place && source < size;
#else
    const int source = at * stride - padding + t * dilation;
    const bool there = source >= 0 && source < size;
#endif
    return there ? source : -1;
}

/* `batch` images of `groups` x `depth` source channels of sh x sw become `groups` x `channels`
 * channels of dh x dw, where depth or channels is 1. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
conv2d_depthwise(__global const TYPE(S) * s, ulong s_at, __global const TYPE(W) * w, ulong w_at,
                 __global const TYPE(B) * b, ulong b_at, __global TYPE(D) * d, ulong d_at,
                 int has_bias, float beta, int batch, int groups, int depth, int channels, int sh,
                 int sw, int dh, int dw, int kh, int kw, int stride_y, int stride_x, int padding_y,
                 int padding_x, int dilation_y, int dilation_x)
{
    s += s_at;
    w += w_at;
    b += b_at;
    d += d_at;
    const ulong at = get_global_id(0), row = at / dw, plane = row / dh, made = groups * channels;
    const int x = (int)(at - row * dw), y = (int)(row - plane * dh);
    const ulong image = plane / made, channel = plane - image * made, group = channel / channels;
    if (image >= (ulong)batch)
        return;
    float sum = has_bias ? LD(B, b, channel) : 0.0f;
    for (int j = 0; j < depth; j++)
        for (int i = 0; i < kh; i++) {
            const int from_y = met(y, i, sh, stride_y, padding_y, dilation_y);
            const ulong line = (((image * groups + group) * depth + j) * sh + from_y) * sw;
            for (int k = 0; k < kw && from_y >= 0; k++) {
                const int from_x = met(x, k, sw, stride_x, padding_x, dilation_x);
                if (from_x >= 0)
                    sum = FMA(LD(W, w, ((channel * depth + j) * kh + i) * kw + k),
                              LD(S, s, line + from_x), sum);
            }
        }
    ACC(D, d, at, beta, sum);
}
