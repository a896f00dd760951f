/* SPDX-License-Identifier: MIT
 *
 * Batch norm over groups of rows. x is (rows, channels, inner); statistics are (groups, channels);
 * group g holds the rows from g * group on, the last one may be short. With QN_PLANES a channel's
 * `inner` elements lie side by side; without it there is one element a channel.
 *
 * One walk over the group sums d and d^2, where d = x - near and `near` is a value near the mean:
 * the mean of the group's first plane, or of its first FEW rows. Then mean = near + sum(d) / n, and
 * n * variance = sum(d^2) - sum(d)^2 / n. If `near` comes from one in k of the elements,
 * cancellation in this difference costs at most a factor of k in precision: the worst case is that
 * those elements alone deviate from the mean.
 */
#include "lib/activation.clh"
#include "lib/control.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/norm.clh"

#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef QN_RUNNING
#define QN_RUNNING 0 /* 1: the second statistic is a variance, not 1 / deviation */
#endif

#define CHANNEL_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

/* Rows whose mean is `near`, without QN_PLANES. */
#define FEW 16

/* Stores the statistics of a group of `rows` rows of `inner` elements, from sum(x - near) and
 * sum((x - near)^2). `moment`: the number of rows times the unbiased variance. */
static inline void finish(float near, float sum, float squares, float rows, ulong inner, float eps,
                          __global float *mean, __global float *rstd, __global float *moment)
{
    const float count = rows * (float)inner, rest = sum / count;
    const float about = fmax(squares - rest * sum, 0.0f);
    ST(F, mean, 0, near + rest);
    ST(F, rstd, 0, 1.0f / sqrt(about / count + eps));
    ST(F, moment, 0, rows * (about / fmax(count - 1.0f, 1.0f)));
}

/* Adds a channel to what is gathered, which is weighed by samples of `each` rows: the sums over the
 * groups of rows times mean and of `moment`. */
static inline void add_gathered(__global float *sum0, __global float *sum1, int channel,
                                float means, float moments, int each, float beta0, float beta1)
{
    ACC(F, sum0, channel, beta0, means / (float)each);
    ACC(F, sum1, channel, beta1, moments / (float)each);
}

/* Where all rows are one group, its statistics are gathered at once: `alone`. */
#define STATISTICS_ARGS                                                                            \
    __global const TYPE(X) * x, ulong x_at, __global float *mean, ulong mean_at,                   \
        __global float *rstd, ulong rstd_at, __global float *moment, ulong moment_at,              \
        __global float *sum0, ulong sum0_at, __global float *sum1, ulong sum1_at, int rows,        \
        int channels, int group, ulong inner, int tile, uint lanes, float eps, int alone,          \
        int each, float beta0, float beta1
#define GATHER_ALONE(c, at)                                                                        \
    if (alone)                                                                                     \
    add_gathered(sum0 + sum0_at, sum1 + sum1_at, c, (float)rows * LD(F, mean, at),                 \
                 LD(F, moment, at), each, beta0, beta1)

#if QN_WG == 1
/* A work-item takes `tile` neighbouring channels of a group, row by row. Until `finish`, mean holds
 * `near`, rstd sum(x - near) and moment sum((x - near)^2). */
ROW_KERNEL statistics(STATISTICS_ARGS)
{
    const int first = get_group_id(0) * tile, last = min(first + tile, channels);
    const int begin = get_group_id(1) * group, end = min(begin + group, rows);
    x += x_at;
    mean += mean_at + get_group_id(1) * (ulong)channels;
    rstd += rstd_at + get_group_id(1) * (ulong)channels;
    moment += moment_at + get_group_id(1) * (ulong)channels;
#if QN_PLANES
    const ulong near = min(inner, QN_ROW_BLOCK);
    for (int row = begin; row < end; row++) {
        const float beta = row == begin ? 0.0f : 1.0f;
        for (int c = first; c < last; c++) {
            __global const TYPE(X) *run = x + ((ulong)row * channels + c) * inner;
            if (row == begin)
                ST(F, mean, c, row_sum(run, near, 0, 1) / (float)near);
            const float2 own = row_moments(run, inner, LD(F, mean, c), 0, 1);
            ACC(F, rstd, c, beta, own.x);
            ACC(F, moment, c, beta, own.y);
        }
    }
#else
    const int few = min(end - begin, FEW), whole = first + (last - first) / QN_V * QN_V;
    for (int row = begin; row < begin + few; row++) {
        const float beta = row == begin ? 0.0f : 1.0f, share = 1.0f / (float)few;
        for (int c = first; c < whole; c += QN_V)
            ACCV(F, mean, c, beta, LDV(X, x, (ulong)row * channels + c) * share);
        for (int c = whole; c < last; c++)
            ACC(F, mean, c, beta, LD(X, x, (ulong)row * channels + c) * share);
    }
    for (int row = begin; row < end; row++) {
        const float beta = row == begin ? 0.0f : 1.0f;
        for (int c = first; c < whole; c += QN_V) {
            const floatv d = LDV(X, x, (ulong)row * channels + c) - LDV(F, mean, c);
            ACCV(F, rstd, c, beta, d);
            ACCV(F, moment, c, beta, d * d);
        }
        for (int c = whole; c < last; c++) {
            const float d = LD(X, x, (ulong)row * channels + c) - LD(F, mean, c);
            ACC(F, rstd, c, beta, d);
            ACC(F, moment, c, beta, d * d);
        }
    }
#endif
    for (int c = first; c < last; c++) {
        finish(LD(F, mean, c), LD(F, rstd, c), LD(F, moment, c), (float)(end - begin), inner, eps,
               mean + c, rstd + c, moment + c);
        GATHER_ALONE(c, c);
    }
}
#else
/* A team per channel of a group: with planes its `lanes` work-items walk the planes, else they take
 * the rows by turns. */
ROW_KERNEL statistics(STATISTICS_ARGS)
{
    __local float part[QN_WG];
    const uint lane = qn_lane(lanes);
    const int c = get_group_id(0) * tile + qn_team(lanes);
    const int begin = get_group_id(1) * group;
    const int end = c < channels ? min(begin + group, rows) : begin;
    const ulong at = get_group_id(1) * (ulong)channels + c;
    x += x_at;
    mean += mean_at;
    rstd += rstd_at;
    moment += moment_at;
    float2 own = (float2)(0.0f);
#if QN_PLANES
    const ulong few = begin < end ? min(inner, QN_ROW_BLOCK) : 0;
    const float some = row_sum(x + ((ulong)begin * channels + c) * inner, few, lane, lanes);
    const float near = qn_team_sum(some, part, lanes) / (float)few;
    for (int row = begin; row < end; row++)
        own += row_moments(x + ((ulong)row * channels + c) * inner, inner, near, lane, lanes);
#else
    const int few = min(end - begin, FEW);
    float some = 0.0f;
    for (int row = begin + (int)lane; row < begin + few; row += lanes)
        some += LD(X, x, (ulong)row * channels + c);
    const float near = qn_team_sum(some, part, lanes) / (float)few;
    for (int row = begin + (int)lane; row < end; row += lanes) {
        const float d = LD(X, x, (ulong)row * channels + c) - near;
        own += (float2)(d, d * d);
    }
#endif
    const float sum = qn_team_sum(own.x, part, lanes), squares = qn_team_sum(own.y, part, lanes);
    if (lane == 0 && begin < end) {
        finish(near, sum, squares, (float)(end - begin), inner, eps, mean + at, rstd + at,
               moment + at);
        GATHER_ALONE(c, at);
    }
}
#endif

/* A work-item per channel: the groups in order. */
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
        means = FMA((float)min(group, rows - first), LD(F, mean, at), means);
        moments += LD(F, moment, at);
    }
    add_gathered(sum0, sum1, channel, means, moments, each, beta0, beta1);
}

/* x as runs of neighbouring elements: its planes, or without QN_PLANES its rows. LENGTH is that of
 * a run, ROW the row of x that run `run` lies in. */
#if QN_PLANES
#define LENGTH(channels, inner) (inner)
#define ROW(run, channels) ((run) / (channels))
#else
#define LENGTH(channels, inner) (channels)
#define ROW(run, channels) (run)
#endif

/* 1 / deviation from the second statistic. */
#define INVERSE(spread) (QN_RUNNING ? 1.0f / sqrt((spread) + eps) : (spread))

/* The element that is stored: behind the ReLU, if it is part of the norm. */
#define RESULT(T, v) (QN_RELU ? RELU(T, v, 0) : (v))

/* Teams of `lanes` work-items per run, `span` runs each in turn. */
ROW_KERNEL normalise(__global const TYPE(X) * x, ulong x_at, __global const float *mean,
                     ulong mean_at, __global const float *spread, ulong spread_at,
                     __global const TYPE(W) * weight, ulong weight_at,
                     __global const TYPE(B) * bias, ulong bias_at, __global TYPE(Y) * y, ulong y_at,
                     ulong runs, ulong channels, ulong group, ulong inner, uint lanes, uint span,
                     float eps, int has_weight, int has_bias)
{
    x += x_at;
    y += y_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    const ulong last = min(runs, first + span * teams), length = LENGTH(channels, inner);
    for (ulong run = first; run < last; run += teams) {
        const ulong row = ROW(run, channels), at = run * length;
        const ulong c = QN_PLANES ? run - row * channels : 0, own = row / group * channels + c;
        __global const float *m = mean + mean_at + own, *s = spread + spread_at + own;
        __global const TYPE(W) *w = weight + weight_at + c;
        __global const TYPE(B) *b = bias + bias_at + c;
        for (ulong i = lane * QN_V; i + QN_V <= length; i += lanes * QN_V) {
            const floatv inverse = INVERSE(PARAMETERS(F, s, i));
            const floatv scale = has_weight ? PARAMETERS(W, w, i) * inverse : inverse;
            const floatv shift = has_bias ? PARAMETERS(B, b, i) : (floatv)(0.0f);
            const floatv v = FMA(LDV(X, x, at + i) - PARAMETERS(F, m, i), scale, shift);
            STV(Y, y, at + i, RESULT(floatv, v));
        }
        for (ulong i = length - length % QN_V + lane; i < length; i += lanes) {
            const float inverse = INVERSE(PARAMETER(F, s, i));
            const float scale = has_weight ? PARAMETER(W, w, i) * inverse : inverse;
            const float shift = has_bias ? PARAMETER(B, b, i) : 0.0f;
            const float v = FMA(LD(X, x, at + i) - PARAMETER(F, m, i), scale, shift);
            ST(Y, y, at + i, RESULT(float, v));
        }
    }
}

/* dx = scale * (dy - the mean of dy - xhat * the mean of dy * xhat); runs as above. sum0 and sum1
 * are the sums of dy and of dy * xhat. The bias is read behind a ReLU alone. */
ROW_KERNEL input_gradient(__global const TYPE(X) * x, ulong x_at, __global const TYPE(DY) * dy,
                          ulong dy_at, __global const float *mean, ulong mean_at,
                          __global const float *rstd, ulong rstd_at, __global const float *sum0,
                          ulong sum0_at, __global const float *sum1, ulong sum1_at,
                          __global const TYPE(W) * weight, ulong weight_at,
                          __global const TYPE(B) * bias, ulong bias_at, __global TYPE(DX) * dx,
                          ulong dx_at, ulong rows, ulong runs, ulong channels, ulong group,
                          ulong inner, uint lanes, uint span, int has_weight, int has_bias,
                          float beta)
{
    x += x_at;
    dy += dy_at;
    dx += dx_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    const ulong last = min(runs, first + span * teams), length = LENGTH(channels, inner);
    for (ulong run = first; run < last; run += teams) {
        const ulong row = ROW(run, channels), at = run * length, begin = row / group * group;
        const ulong c = QN_PLANES ? run - row * channels : 0, own = row / group * channels + c;
        const float share = 1.0f / (float)((min(begin + group, rows) - begin) * inner);
        __global const float *m = mean + mean_at + own, *r = rstd + rstd_at + own;
        __global const float *s0 = sum0 + sum0_at + own, *s1 = sum1 + sum1_at + own;
        __global const TYPE(W) *w = weight + weight_at + c;
        __global const TYPE(B) *b = bias + bias_at + c;
        for (ulong i = lane * QN_V; i + QN_V <= length; i += lanes * QN_V) {
            const floatv inverse = PARAMETERS(F, r, i);
            const floatv slope = PARAMETERS(F, s1, i) * share * inverse;
            const floatv scale = has_weight ? PARAMETERS(W, w, i) * inverse : inverse;
            const floatv shift = has_bias ? PARAMETERS(B, b, i) : (floatv)(0.0f);
            const floatv d = LDV(X, x, at + i) - PARAMETERS(F, m, i);
            const floatv dv = BEHIND_RELU(floatv, LDV(DY, dy, at + i), d, scale, shift);
            const floatv g = dv - FMA(d, slope, PARAMETERS(F, s0, i) * share);
            ACCV(DX, dx, at + i, beta, g * scale);
        }
        for (ulong i = length - length % QN_V + lane; i < length; i += lanes) {
            const float inverse = PARAMETER(F, r, i), slope = PARAMETER(F, s1, i) * share * inverse;
            const float scale = has_weight ? PARAMETER(W, w, i) * inverse : inverse;
            const float shift = has_bias ? PARAMETER(B, b, i) : 0.0f;
            const float d = LD(X, x, at + i) - PARAMETER(F, m, i);
            const float dv = BEHIND_RELU(float, LD(DY, dy, at + i), d, scale, shift);
            const float g = dv - FMA(d, slope, PARAMETER(F, s0, i) * share);
            ACC(DX, dx, at + i, beta, g * scale);
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
    ST(F, mean, channel, FMA(share, LD(F, sum0, channel), keep * LD(F, mean, channel)));
    ST(F, variance, channel, FMA(share, LD(F, sum1, channel), keep * LD(F, variance, channel)));
}
