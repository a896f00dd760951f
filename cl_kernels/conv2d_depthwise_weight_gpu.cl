/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution with one input channel in each channel group, for
 * GPUs: a work-group makes one tap of one output channel.
 */
#include "lib/reduce.clh"

/* Work-groups: (output channels, rows of the kernel, columns of the kernel). */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
conv2d_depthwise_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d,
                        ulong d_at, __global TYPE(W) * w, ulong w_at, float beta, int batch,
                        int groups, int depth, int channels, int sh, int sw, int dh, int dw, int kh,
                        int kw, int stride_y, int stride_x, int padding_y, int padding_x,
                        int dilation_y, int dilation_x)
{
    __local float part[QN_WG];
    s += s_at;
    d += d_at;
    w += w_at;
    const ulong channel = get_group_id(0), group = channel / channels;
    const int down = get_group_id(1) * dilation_y - padding_y;
    const int right = get_group_id(2) * dilation_x - padding_x;
    const ulong positions = (ulong)dh * dw;
    float total = 0.0f;
    for (int n = 0; n < batch; n++) {
        const ulong source = ((ulong)n * groups + group) * sh * sw;
        const ulong result = ((ulong)n * groups * channels + channel) * positions;
        float sum = 0.0f;
        for (ulong p = get_local_id(0); p < positions; p += QN_WG) {
            const ulong row = p / dw;
            const int y = (int)row * stride_y + down, x = (int)(p - row * dw) * stride_x + right;
            if (y >= 0 && y < sh && x >= 0 && x < sw)
                sum = FMA(LD(D, d, result + p), LD(S, s, source + (ulong)y * sw + x), sum);
        }
        total += sum;
    }
    total = qn_group_sum(total, part);
    if (get_local_id(0) == 0)
        ACC(W, w, (channel * kh + get_group_id(1)) * kw + get_group_id(2), beta, total);
}
