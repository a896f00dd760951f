/* SPDX-License-Identifier: MIT
 *
 * The gradient of the bias of conv2d and conv_transpose2d.
 */
#define X_TYPE D_TYPE
#include "lib/row.clh"

/* g = beta * g + d summed over images and pixels: a work-group for each channel, whose teams of
 * `lanes` work-items take the images in turn. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
conv2d_bias(__global const TYPE(D) * d, ulong d_at, __global TYPE(G) * g, ulong g_at, float beta,
            int batch, int channels, ulong positions, uint lanes)
{
    __local float part[QN_WG];
    d += d_at;
    g += g_at;
    const uint lane = qn_lane(lanes), channel = get_group_id(0);
    float sum = 0.0f;
    for (int image = qn_team(lanes); image < batch; image += QN_WG / lanes) {
        const ulong at = ((ulong)image * channels + channel) * positions;
        sum += row_sum(d + at, positions, lane, lanes);
    }
    sum = qn_group_sum(sum, part);
    if (get_local_id(0) == 0)
        ACC(G, g, (ulong)channel, beta, sum);
}
