/* SPDX-License-Identifier: MIT
 *
 * Layer norm and group norm: every row has a mean and a deviation of its own. x is (samples,
 * groups, channels, inner), a row is all of one sample and group, and a weight and a bias belong to
 * each (group, channel). With QN_PLANES a channel's `inner` elements lie side by side; without it
 * there is one element a channel.
 *
 * The mean is kept as the sum of two floats, a value near it and the rest: the difference of an
 * element and the mean is right to a few units in its own last place however far the row is from 0.
 * The value near it is the mean of the row's first block, so that one more walk gives both moments
 * about it. In a row of k blocks the squares lose at most a factor of k to cancellation: that is
 * where the first block alone makes the deviation.
 */
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
#define F_TYPE f32

#ifndef QN_PLANES
#define QN_PLANES 0
#endif

/* A row as runs of `length` elements, and the parameter of element i of run `run`. */
#if QN_PLANES
#define RUNS(channels) (channels)
#define LENGTH(channels, inner) (inner)
#define PARAMETER(X, p, run, i) LD(X, p, run)
#define PARAMETERS(X, p, run, i) ((floatv)(LD(X, p, run)))
#else
#define RUNS(channels) 1ul
#define LENGTH(channels, inner) (channels)
#define PARAMETER(X, p, run, i) LD(X, p, i)
#define PARAMETERS(X, p, run, i) LDV(X, p, i)
#endif

#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* What is known of a row: its mean is near + rest. */
typedef struct statistics {
    float near, rest, rstd;
} statistics;

/* The team's row of n elements; n is 0 for a team that has none. */
static inline statistics row_statistics(__global const TYPE(X) *x, ulong n, float eps, uint lane,
                                        uint lanes, __local float *part)
{
    const ulong first = min(n, QN_ROW_BLOCK);
    const float near = qn_team_sum(row_sum(x, first, lane, lanes), part, lanes) / (float)first;
    const float2 own = row_moments(x, n, near, lane, lanes);
    const float sum = qn_team_sum(own.x, part, lanes);
    const float squares = qn_team_sum(own.y, part, lanes);
    const float rest = sum / (float)n, about = fmax(squares - rest * sum, 0.0f);
    statistics s = {near, rest, 1.0f / sqrt(about / (float)n + eps)};
    return s;
}

static inline statistics load_statistics(__global const float *mean, __global const float *rstd,
                                         ulong row)
{
    statistics s = {LD(F, mean, 2 * row), LD(F, mean, 2 * row + 1), LD(F, rstd, row)};
    return s;
}

/* Teams of `lanes` work-items per row, `span` rows each in turn; `across` of them walk a run. Teams
 * without a row take part in the barriers. */
ROW_KERNEL forward(__global const TYPE(X) *x, ulong x_at, __global const TYPE(W) *weight,
                   ulong weight_at, __global const TYPE(B) *bias, ulong bias_at,
                   __global TYPE(Y) *y, ulong y_at, __global float *mean, ulong mean_at,
                   __global float *rstd, ulong rstd_at, ulong rows, ulong groups, ulong channels,
                   ulong inner, uint lanes, uint across, uint span, float eps, int has_weight,
                   int has_bias, int keep)
{
    __local float part[QN_WG];
    x += x_at;
    weight += weight_at;
    bias += bias_at;
    y += y_at;
    mean += mean_at;
    rstd += rstd_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong n = channels * inner, length = LENGTH(channels, inner);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams, runs = row < rows ? RUNS(channels) : 0;
        const statistics s =
            row_statistics(x + row * n, row < rows ? n : 0, eps, lane, lanes, part);
#if QN_PLANES && QN_WG > 1
        barrier(CLK_GLOBAL_MEM_FENCE); /* y may be x, of which others have read this one's part */
#endif
        if (keep && lane == 0 && row < rows) {
            ST(F, mean, 2 * row, s.near);
            ST(F, mean, 2 * row + 1, s.rest);
            ST(F, rstd, row, s.rstd);
        }
        __global const TYPE(W) *w = weight + row % groups * channels;
        __global const TYPE(B) *b = bias + row % groups * channels;
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            for (ulong i = lane % across * QN_V; i + QN_V <= length; i += across * QN_V) {
                floatv v = ((LDV(X, x, at + i) - s.near) - s.rest) * s.rstd;
                v = has_weight ? v * PARAMETERS(W, w, run, i) : v;
                STV(Y, y, at + i, has_bias ? v + PARAMETERS(B, b, run, i) : v);
            }
            for (ulong i = length - length % QN_V + lane % across; i < length; i += across) {
                float v = ((LD(X, x, at + i) - s.near) - s.rest) * s.rstd;
                v = has_weight ? v * PARAMETER(W, w, run, i) : v;
                ST(Y, y, at + i, has_bias ? v + PARAMETER(B, b, run, i) : v);
            }
        }
    }
}

/* This work-item's share of the sums of g = dy * w and of g * (x - mean) over a run. */
static inline float2 run_products(__global const TYPE(X) *x, __global const TYPE(DY) *dy,
                                  __global const TYPE(W) *w, int has_weight, statistics s,
                                  ulong run, ulong length, uint lane, uint lanes)
{
    float2 total = (float2)(0.0f);
    for (ulong start = 0; start < length; start += QN_ROW_BLOCK) {
        const ulong end = min(length, start + QN_ROW_BLOCK);
        floatv sum = (floatv)(0.0f), product = (floatv)(0.0f);
        for (ulong i = start + lane * QN_V; i + QN_V <= end; i += lanes * QN_V) {
            const floatv dv = LDV(DY, dy, i);
            const floatv g = has_weight ? dv * PARAMETERS(W, w, run, i) : dv;
            sum += g;
            product = fma(g, (LDV(X, x, i) - s.near) - s.rest, product);
        }
        total += (float2)(qn_hadd(sum), qn_hadd(product));
    }
    for (ulong i = length - length % QN_V + lane; i < length; i += lanes) {
        const float d = LD(DY, dy, i), g = has_weight ? d * PARAMETER(W, w, run, i) : d;
        total += (float2)(g, g * ((LD(X, x, i) - s.near) - s.rest));
    }
    return total;
}

/* dx = rstd * (g - the mean of g - xhat * the mean of g * xhat), with g = dy * w. */
ROW_KERNEL input_gradient(__global const TYPE(X) *x, ulong x_at, __global const TYPE(DY) *dy,
                          ulong dy_at, __global const TYPE(W) *weight, ulong weight_at,
                          __global const float *mean, ulong mean_at, __global const float *rstd,
                          ulong rstd_at, __global TYPE(DX) *dx, ulong dx_at, ulong rows,
                          ulong groups, ulong channels, ulong inner, uint lanes, uint across,
                          uint span, int has_weight, float beta)
{
    __local float part[QN_WG];
    x += x_at;
    dy += dy_at;
    weight += weight_at;
    mean += mean_at;
    rstd += rstd_at;
    dx += dx_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong n = channels * inner, length = LENGTH(channels, inner);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams, runs = row < rows ? RUNS(channels) : 0;
        const statistics s = load_statistics(mean, rstd, min(row, rows - 1));
        __global const TYPE(W) *w = weight + row % groups * channels;
        float2 sum = (float2)(0.0f);
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            sum += run_products(x + at, dy + at, w, has_weight, s, run, length, lane % across,
                                across);
        }
        const float level = qn_team_sum(sum.x, part, lanes) / (float)n;
        const float slope = qn_team_sum(sum.y, part, lanes) / (float)n * s.rstd * s.rstd;
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            for (ulong i = lane % across * QN_V; i + QN_V <= length; i += across * QN_V) {
                const floatv d = (LDV(X, x, at + i) - s.near) - s.rest, dv = LDV(DY, dy, at + i);
                const floatv g = has_weight ? dv * PARAMETERS(W, w, run, i) : dv;
                ACCV(DX, dx, at + i, beta, (g - fma(d, (floatv)(slope), (floatv)(level))) * s.rstd);
            }
            for (ulong i = length - length % QN_V + lane % across; i < length; i += across) {
                const float d = (LD(X, x, at + i) - s.near) - s.rest, dv = LD(DY, dy, at + i);
                const float g = has_weight ? dv * PARAMETER(W, w, run, i) : dv;
                ACC(DX, dx, at + i, beta, (g - fma(d, slope, level)) * s.rstd);
            }
        }
    }
}

/* --- sums of dy and of dy * xhat over a part of the samples, for each (group, channel) --- */

#define SUMS_ARGS                                                                                  \
    __global const TYPE(X) *x, ulong x_at, __global const TYPE(DY) *dy, ulong dy_at,               \
        __global const float *mean, ulong mean_at, __global const float *rstd, ulong rstd_at,      \
        __global float *sum0, ulong sum0_at, __global float *sum1, ulong sum1_at, ulong samples,   \
        ulong groups, ulong channels, ulong inner, ulong each, uint lanes

#if QN_WG == 1
/* A work-item takes `each` samples, as they lie in memory, and adds up in its part of the sums. */
ROW_KERNEL affine_sums(SUMS_ARGS)
{
    const ulong parameters = groups * channels;
    x += x_at;
    dy += dy_at;
    mean += mean_at;
    rstd += rstd_at;
    sum0 += sum0_at + get_group_id(1) * parameters;
    sum1 += sum1_at + get_group_id(1) * parameters;
    const ulong begin = get_group_id(1) * each, end = min(begin + each, samples);
    for (ulong row = begin * groups; row < end * groups; row++) {
        const float beta = row < (begin + 1) * groups ? 0.0f : 1.0f;
        const ulong own = row % groups * channels, at = row * channels * inner;
        const statistics s = load_statistics(mean, rstd, row);
#if QN_PLANES
        for (ulong c = 0; c < channels; c++) {
            const float2 sum = run_products(x + at + c * inner, dy + at + c * inner, 0, 0, s, 0,
                                            inner, 0, 1);
            ACC(F, sum0, own + c, beta, sum.x);
            ACC(F, sum1, own + c, beta, sum.y * s.rstd);
        }
#else
        for (ulong c = 0; c + QN_V <= channels; c += QN_V) {
            const floatv g = LDV(DY, dy, at + c);
            const floatv h = ((LDV(X, x, at + c) - s.near) - s.rest) * s.rstd;
            ACCV(F, sum0, own + c, beta, g);
            ACCV(F, sum1, own + c, beta, g * h);
        }
        for (ulong c = channels - channels % QN_V; c < channels; c++) {
            const float g = LD(DY, dy, at + c);
            const float h = ((LD(X, x, at + c) - s.near) - s.rest) * s.rstd;
            ACC(F, sum0, own + c, beta, g);
            ACC(F, sum1, own + c, beta, g * h);
        }
#endif
    }
}
#else
/* A team per (group, channel) and `each` samples: with planes its `lanes` work-items walk the
 * planes, else they take the samples by turns. */
ROW_KERNEL affine_sums(SUMS_ARGS)
{
    __local float part[QN_WG];
    const ulong parameters = groups * channels;
    const uint lane = qn_lane(lanes);
    x += x_at;
    dy += dy_at;
    mean += mean_at;
    rstd += rstd_at;
    sum0 += sum0_at + get_group_id(1) * parameters;
    sum1 += sum1_at + get_group_id(1) * parameters;
    const ulong begin = get_group_id(1) * each, end = min(begin + each, samples);
    const ulong p = get_group_id(0) * (QN_WG / lanes) + qn_team(lanes);
    float2 sum = (float2)(0.0f);
#if QN_PLANES
    for (ulong sample = begin; p < parameters && sample < end; sample++) {
        const ulong at = (sample * parameters + p) * inner;
        const statistics s = load_statistics(mean, rstd, sample * groups + p / channels);
        const float2 own = run_products(x + at, dy + at, 0, 0, s, 0, inner, lane, lanes);
        sum += (float2)(own.x, own.y * s.rstd);
    }
#else
    for (ulong sample = begin + lane; p < parameters && sample < end; sample += lanes) {
        const ulong at = sample * parameters + p;
        const statistics s = load_statistics(mean, rstd, sample * groups + p / channels);
        const float g = LD(DY, dy, at), d = (LD(X, x, at) - s.near) - s.rest;
        sum += (float2)(g, g * d * s.rstd);
    }
#endif
    sum.x = qn_team_sum(sum.x, part, lanes);
    sum.y = qn_team_sum(sum.y, part, lanes);
    if (lane > 0 || p >= parameters)
        return;
    ST(F, sum0, p, sum.x);
    ST(F, sum1, p, sum.y);
}
#endif
