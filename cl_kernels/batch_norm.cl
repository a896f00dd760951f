/* SPDX-License-Identifier: MIT
 *
 * Batch norm over groups of rows. x is (rows, channels, inner); statistics are (groups, channels);
 * group g holds the rows from g * group on, the last one may be short.
 */
#include "lib/control.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/row.clh"

#ifndef Y_TYPE
#define Y_TYPE f32
#endif
#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef DY_TYPE
#define DY_TYPE f32
#endif
#ifndef W_TYPE
#define W_TYPE f32
#endif
#ifndef B_TYPE
#define B_TYPE f32
#endif
#ifndef QN_RUNNING
#define QN_RUNNING 0 /* 1: the second statistic is a variance, not 1 / deviation */
#endif
#define F_TYPE f32

#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
#define CHANNEL_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

/* This work-item's share of the squared distances from `centre`. */
static inline float row_squares(__global const TYPE(X) *x, ulong n, float centre, uint lane,
                                uint lanes)
{
    float total = 0.0f;
    for (ulong start = 0; start < n; start += QN_ROW_BLOCK) {
        const ulong end = min(n, start + QN_ROW_BLOCK);
        floatv sum = (floatv)(0.0f);
        for (ulong i = start + lane * QN_V; i + QN_V <= end; i += lanes * QN_V) {
            const floatv d = LDV(X, x, i) - centre;
            sum = fma(d, d, sum);
        }
        total += qn_hadd(sum);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float d = LD(X, x, i) - centre;
        total = fma(d, d, total);
    }
    return total;
}

/* A work-group per (channel, group). `moment`: the number of rows times the unbiased variance. */
GROUP_KERNEL statistics(__global const TYPE(X) *x, ulong x_at, __global float *mean, ulong mean_at,
                        __global float *rstd, ulong rstd_at, __global float *moment,
                        ulong moment_at, int rows, int channels, int group, ulong inner,
                        uint lanes, float eps)
{
    __local float part[QN_WG];
    x += x_at;
    mean += mean_at;
    rstd += rstd_at;
    moment += moment_at;
    const ulong at = get_group_id(0), number = at / channels, channel = at - number * channels;
    const int first = (int)number * group, last = min(first + group, rows);
    const int teams = QN_WG / lanes, own = first + (int)qn_team(lanes);
    const float count = (float)((ulong)(last - first) * inner);
    float sum = 0.0f, squares = 0.0f;
    for (int s = own; s < last; s += teams)
        sum += row_sum(x + ((ulong)s * channels + channel) * inner, inner, qn_lane(lanes), lanes);
    const float centre = qn_group_sum(sum, part) / count;
    for (int s = own; s < last; s += teams)
        squares += row_squares(x + ((ulong)s * channels + channel) * inner, inner, centre,
                               qn_lane(lanes), lanes);
    squares = qn_group_sum(squares, part);
    if (get_local_id(0) == 0) {
        ST(F, mean, at, centre);
        ST(F, rstd, at, 1.0f / sqrt(squares / count + eps));
        ST(F, moment, at, (float)(last - first) * (squares / fmax(count - 1.0f, 1.0f)));
    }
}

/* A work-item per channel: the groups in order. What is gathered is weighed by samples of `each`
 * rows. */
CHANNEL_KERNEL gather(__global const float *mean, ulong mean_at, __global const float *moment,
                      ulong moment_at, __global float *sum0, ulong sum0_at, __global float *sum1,
                      ulong sum1_at, int rows, int channels, int group, int each, float beta0,
                      float beta1)
{
    mean += mean_at;
    moment += moment_at;
    sum0 += sum0_at;
    sum1 += sum1_at;
    const int channel = get_global_id(0);
    if (channel >= channels)
        return;
    float means = 0.0f, moments = 0.0f;
    ulong at = channel;
    for (int first = 0; first < rows; first += group, at += channels) {
        means = fma((float)min(group, rows - first), LD(F, mean, at), means);
        moments += LD(F, moment, at);
    }
    ACC(F, sum0, channel, beta0, means / (float)each);
    ACC(F, sum1, channel, beta1, moments / (float)each);
}

/* A work-group per channel and `span` rows. */
GROUP_KERNEL normalise(__global const TYPE(X) *x, ulong x_at, __global const float *mean,
                       ulong mean_at, __global const float *spread, ulong spread_at,
                       __global const TYPE(W) *weight, ulong weight_at,
                       __global const TYPE(B) *bias, ulong bias_at, __global TYPE(Y) *y,
                       ulong y_at, int rows, int channels, int group, ulong inner, uint lanes,
                       int span, float eps, int has_weight, int has_bias)
{
    x += x_at;
    mean += mean_at;
    spread += spread_at;
    weight += weight_at;
    bias += bias_at;
    y += y_at;
    const ulong number = get_group_id(0) / channels, channel = get_group_id(0) - number * channels;
    const int first = (int)number * span, last = min(first + span, rows);
    const uint lane = qn_lane(lanes);
    const float w = has_weight ? LD(W, weight, channel) : 1.0f;
    const float shift = has_bias ? LD(B, bias, channel) : 0.0f;
    for (int s = first + (int)qn_team(lanes); s < last; s += (int)(QN_WG / lanes)) {
        const ulong row = ((ulong)s * channels + channel) * inner;
        const ulong at = (ulong)(s / group) * channels + channel;
        const float centre = LD(F, mean, at), raw = LD(F, spread, at);
        const float scale = w * (QN_RUNNING ? 1.0f / sqrt(raw + eps) : raw);
        for (ulong i = lane * QN_V; i + QN_V <= inner; i += lanes * QN_V) {
            const floatv d = LDV(X, x, row + i) - centre;
            STV(Y, y, row + i, fma(d, (floatv)(scale), (floatv)(shift)));
        }
        for (ulong i = inner - inner % QN_V + lane; i < inner; i += lanes)
            ST(Y, y, row + i, fma(LD(X, x, row + i) - centre, scale, shift));
    }
}

/* This work-item's share of the sums of dy and of dy * (x - centre) over a row. */
static inline float2 row_products(__global const TYPE(X) *x, __global const TYPE(DY) *dy, ulong n,
                                  float centre, uint lane, uint lanes)
{
    float2 total = (float2)(0.0f);
    for (ulong start = 0; start < n; start += QN_ROW_BLOCK) {
        const ulong end = min(n, start + QN_ROW_BLOCK);
        floatv sum = (floatv)(0.0f), product = (floatv)(0.0f);
        for (ulong i = start + lane * QN_V; i + QN_V <= end; i += lanes * QN_V) {
            const floatv g = LDV(DY, dy, i);
            sum += g;
            product = fma(g, LDV(X, x, i) - centre, product);
        }
        total += (float2)(qn_hadd(sum), qn_hadd(product));
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float g = LD(DY, dy, i);
        total += (float2)(g, g * (LD(X, x, i) - centre));
    }
    return total;
}

/* A work-group per (channel, group): sums of dy and of dy * xhat. */
GROUP_KERNEL sums(__global const TYPE(X) *x, ulong x_at, __global const TYPE(DY) *dy, ulong dy_at,
                  __global const float *mean, ulong mean_at, __global const float *rstd,
                  ulong rstd_at, __global float *sum0, ulong sum0_at, __global float *sum1,
                  ulong sum1_at, int rows, int channels, int group, ulong inner, uint lanes)
{
    __local float part[QN_WG];
    x += x_at;
    dy += dy_at;
    mean += mean_at;
    rstd += rstd_at;
    sum0 += sum0_at;
    sum1 += sum1_at;
    const ulong at = get_group_id(0), number = at / channels, channel = at - number * channels;
    const int first = (int)number * group, last = min(first + group, rows);
    const float centre = LD(F, mean, at);
    float2 sum = (float2)(0.0f);
    for (int s = first + (int)qn_team(lanes); s < last; s += (int)(QN_WG / lanes)) {
        const ulong row = ((ulong)s * channels + channel) * inner;
        sum += row_products(x + row, dy + row, inner, centre, qn_lane(lanes), lanes);
    }
    sum.x = qn_group_sum(sum.x, part);
    sum.y = qn_group_sum(sum.y, part);
    if (get_local_id(0) == 0) {
        ST(F, sum0, at, sum.x);
        ST(F, sum1, at, sum.y * LD(F, rstd, at));
    }
}

/* A work-group per channel and `span` rows. */
GROUP_KERNEL input_gradient(__global const TYPE(X) *x, ulong x_at, __global const TYPE(DY) *dy,
                            ulong dy_at, __global const float *mean, ulong mean_at,
                            __global const float *rstd, ulong rstd_at, __global const float *sum0,
                            ulong sum0_at, __global const float *sum1, ulong sum1_at,
                            __global const TYPE(W) *weight, ulong weight_at,
                            __global TYPE(DX) *dx, ulong dx_at, int rows, int channels,
                            int group, ulong inner, uint lanes, int span, int has_weight,
                            float beta)
{
    x += x_at;
    dy += dy_at;
    mean += mean_at;
    rstd += rstd_at;
    sum0 += sum0_at;
    sum1 += sum1_at;
    weight += weight_at;
    dx += dx_at;
    const ulong number = get_group_id(0) / channels, channel = get_group_id(0) - number * channels;
    const int begin = (int)number * span, end = min(begin + span, rows);
    const uint lane = qn_lane(lanes);
    const float w = has_weight ? LD(W, weight, channel) : 1.0f;
    for (int s = begin + (int)qn_team(lanes); s < end; s += (int)(QN_WG / lanes)) {
        const ulong row = ((ulong)s * channels + channel) * inner;
        const int first = s / group * group;
        const ulong at = (ulong)(s / group) * channels + channel;
        const float count = (float)((ulong)(min(first + group, rows) - first) * inner);
        const float centre = LD(F, mean, at), inverse = LD(F, rstd, at);
        const float level = LD(F, sum0, at) / count;
        const float slope = LD(F, sum1, at) / count * inverse, scale = w * inverse;
        for (ulong i = lane * QN_V; i + QN_V <= inner; i += lanes * QN_V) {
            const floatv d = LDV(X, x, row + i) - centre;
            const floatv g = LDV(DY, dy, row + i) - fma(d, (floatv)(slope), (floatv)(level));
            ACCV(DX, dx, row + i, beta, g * scale);
        }
        for (ulong i = inner - inner % QN_V + lane; i < inner; i += lanes) {
            const float d = LD(X, x, row + i) - centre;
            const float g = LD(DY, dy, row + i) - fma(d, slope, level);
            ACC(DX, dx, row + i, beta, g * scale);
        }
    }
}

/* A work-item per channel. Nothing moves when the update is skipped. */
CHANNEL_KERNEL commit(__global const uint *control, ulong control_at, __global const float *sum0,
                      ulong sum0_at, __global const float *sum1, ulong sum1_at,
                      __global float *mean, ulong mean_at, __global float *variance,
                      ulong variance_at, int channels, float momentum)
{
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    sum0 += sum0_at;
    sum1 += sum1_at;
    mean += mean_at;
    variance += variance_at;
    const int channel = get_global_id(0);
    if (channel >= channels || now->skip)
        return;
    const float keep = 1.0f - momentum, share = momentum / now->samples;
    ST(F, mean, channel, fma(share, LD(F, sum0, channel), keep * LD(F, mean, channel)));
    ST(F, variance, channel, fma(share, LD(F, sum1, channel), keep * LD(F, variance, channel)));
}
