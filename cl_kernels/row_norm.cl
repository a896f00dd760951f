/* SPDX-License-Identifier: MIT
 *
 * Layer norm and group norm: every row has a mean and a deviation of its own. x is (samples,
 * groups, channels, inner), a row is all of one sample and group, and a weight and a bias belong to
 * each (group, channel). With QN_PLANES a channel's `inner` elements lie side by side; without it
 * there is one element a channel. With QN_RMS, for RMS norm, the mean is 0 and the deviation the
 * root of the mean of squares.
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
#include "lib/norm.clh"

#ifndef DX_TYPE
#define DX_TYPE f32
#endif

/* A row as runs of neighbours. */
#if QN_PLANES
#define RUNS(channels) (channels)
#define LENGTH(channels, inner) (inner)
#else
#define RUNS(channels) 1ul
#define LENGTH(channels, inner) (channels)
#endif

/* The team's row of n elements; n is 0 for a team that has none. */
#if QN_RMS
static inline norm_row row_statistics(__global const TYPE(X) *x, ulong n, float eps, uint lane,
                                        uint lanes, __local float *part)
{
    const float squares = qn_team_sum(row_moments(x, n, 0.0f, lane, lanes).y, part, lanes);
    norm_row s = {0.0f, 0.0f, 1.0f / sqrt(squares / (float)n + eps), 1.0f, 0.0f};
    return s;
}
#else
static inline norm_row row_statistics(__global const TYPE(X) *x, ulong n, float eps, uint lane,
                                        uint lanes, __local float *part)
{
    const ulong first = min(n, QN_ROW_BLOCK);
    const float near = qn_team_sum(row_sum(x, first, lane, lanes), part, lanes) / (float)first;
    const float2 own = row_moments(x, n, near, lane, lanes);
    const float sum = qn_team_sum(own.x, part, lanes);
    const float squares = qn_team_sum(own.y, part, lanes);
    const float rest = sum / (float)n, about = fmax(squares - rest * sum, 0.0f);
    norm_row s = {near, rest, 1.0f / sqrt(about / (float)n + eps), 1.0f, 0.0f};
    return s;
}
#endif

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
        const norm_row s =
            row_statistics(x + row * n, row < rows ? n : 0, eps, lane, lanes, part);
#if QN_PLANES && QN_WG > 1
        barrier(CLK_GLOBAL_MEM_FENCE); /* y may be x, of which others have read this one's part */
#endif
        if (keep && lane == 0 && row < rows) {
#if !QN_RMS
            ST(F, mean, 2 * row, s.near);
            ST(F, mean, 2 * row + 1, s.rest);
#endif
            ST(F, rstd, row, s.rstd);
        }
        __global const TYPE(W) *w = weight + row % groups * channels;
        __global const TYPE(B) *b = bias + row % groups * channels;
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            for (ulong i = lane % across * QN_V; i + QN_V <= length; i += across * QN_V) {
                floatv v = ((LDV(X, x, at + i) - s.near) - s.rest) * s.rstd;
                v = has_weight ? v * PARAMETERS(W, w + run, i) : v;
                STV(Y, y, at + i, has_bias ? v + PARAMETERS(B, b + run, i) : v);
            }
            for (ulong i = length - length % QN_V + lane % across; i < length; i += across) {
                float v = ((LD(X, x, at + i) - s.near) - s.rest) * s.rstd;
                v = has_weight ? v * PARAMETER(W, w + run, i) : v;
                ST(Y, y, at + i, has_bias ? v + PARAMETER(B, b + run, i) : v);
            }
        }
    }
}

/* dx = rstd * (g - the mean of g - xhat * the mean of g * xhat), with g = dy * w; with QN_RMS
 * without the mean of g. */
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
        const norm_row s = pair_statistics(mean, rstd, min(row, rows - 1));
        __global const TYPE(W) *w = weight + row % groups * channels;
        float2 sum = (float2)(0.0f);
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            sum += run_products(x + at, dy + at, w + run, has_weight, s, length, lane % across,
                                across);
        }
        const float level = QN_RMS ? 0.0f : qn_team_sum(sum.x, part, lanes) / (float)n;
        const float slope = qn_team_sum(sum.y, part, lanes) / (float)n * s.rstd * s.rstd;
        for (ulong run = lane / across; run < runs; run += lanes / across) {
            const ulong at = row * n + run * length;
            for (ulong i = lane % across * QN_V; i + QN_V <= length; i += across * QN_V) {
                const floatv d = (LDV(X, x, at + i) - s.near) - s.rest, dv = LDV(DY, dy, at + i);
                const floatv g = has_weight ? dv * PARAMETERS(W, w + run, i) : dv;
                ACCV(DX, dx, at + i, beta, (g - FMA(d, (floatv)(slope), (floatv)(level))) * s.rstd);
            }
            for (ulong i = length - length % QN_V + lane % across; i < length; i += across) {
                const float d = (LD(X, x, at + i) - s.near) - s.rest, dv = LD(DY, dy, at + i);
                const float g = has_weight ? dv * PARAMETER(W, w + run, i) : dv;
                ACC(DX, dx, at + i, beta, (g - FMA(d, slope, level)) * s.rstd);
            }
        }
    }
}
