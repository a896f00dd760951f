/* SPDX-License-Identifier: MIT
 *
 * The gradients of the weight and the bias of a norm, from sums that were made in parts.
 */
#include "lib/type.clh"

#ifndef DW_TYPE
#define DW_TYPE f32
#endif
#ifndef DB_TYPE
#define DB_TYPE f32
#endif
#define F_TYPE f32

/* A work-item per channel: the `parts` sums of dy (for the bias) and of dy * xhat, in order. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
affine_gradient(__global const float *sum0, ulong sum0_at, __global const float *sum1,
                ulong sum1_at, __global TYPE(DW) *dw, ulong dw_at, __global TYPE(DB) *db,
                ulong db_at, ulong parts, ulong channels, int has_weight, int has_bias,
                float beta_weight, float beta_bias)
{
    sum0 += sum0_at;
    sum1 += sum1_at;
    dw += dw_at;
    db += db_at;
    const ulong channel = get_global_id(0);
    if (channel >= channels)
        return;
    float weight = 0.0f, bias = 0.0f;
    for (ulong p = 0; p < parts; p++) {
        bias += LD(F, sum0, p * channels + channel);
        weight += LD(F, sum1, p * channels + channel);
    }
    if (has_weight)
        ACC(DW, dw, channel, beta_weight, weight);
    if (has_bias)
        ACC(DB, db, channel, beta_bias, bias);
}
