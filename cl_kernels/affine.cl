/* SPDX-License-Identifier: MIT
 *
 * The gradients of the weight and the bias of a norm: sums of dy and of dy * xhat over a part of
 * the samples, then over the parts in order. x is (samples, groups, channels, inner), a parameter
 * belongs to each (group, channel). The statistics are those of the sample and group, a mean of two
 * floats, or with QN_BY_PART of the part and parameter. With QN_RELU, which goes with QN_BY_PART,
 * dy is that of a ReLU behind the norm. With QN_RMS there is no bias, and no sum0. QN_SUMS: which
 * sums are made, 1 for sum0 and 2 for sum1. Where one part has all samples, the sums are the
 * gradients: sum0 = beta0 * sum0 + ..; elsewhere beta0 and beta1 are 0. QN_COLUMNS (GPU): see the
 * kernel with it.
 */
#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/norm.clh"

#ifndef DW_TYPE
#define DW_TYPE f32
#endif
#ifndef DB_TYPE
#define DB_TYPE f32
#endif

#ifndef QN_BY_PART
#define QN_BY_PART 0
#endif

#ifndef QN_COLUMNS
#define QN_COLUMNS 0
#endif

#ifndef QN_SUMS
#define QN_SUMS (QN_RMS ? 2 : 3)
#endif
/* ONLY0(statement) and ONLY1(statement): where that sum is made. */
#if QN_SUMS & 1
#define ONLY0(statement) statement
#else
#define ONLY0(statement)
#endif
#if QN_SUMS & 2
#define ONLY1(statement) statement
#else
#define ONLY1(statement)
#endif

#if QN_BY_PART
#define AT(sample, p) (get_group_id(1) * parameters + (p))
#else
#define AT(sample, p) ((sample) * groups + (p) / channels)
#endif

/* Operands of the norm whose gradients these are. Only QN_RELU, which recomputes what the ReLU was
 * given, reads weight and bias. */
typedef struct norm_sources {
    __global const float *mean, *rstd;
    __global const TYPE(W) *weight;
    __global const TYPE(B) *bias;
    int has_weight, has_bias;
} norm_sources;

/* Mean, 1 / deviation, scale and shift for the elements of parameter p; element `at` of the
 * statistics is theirs. */
static inline norm_row statistics_at(norm_sources from, ulong at, ulong p)
{
#if QN_BY_PART
    const float rstd = LD(F, from.rstd, at);
    norm_row s = {LD(F, from.mean, at), 0.0f, rstd,
                  from.has_weight ? LD(W, from.weight, p) * rstd : rstd,
                  from.has_bias ? LD(B, from.bias, p) : 0.0f};
    return s;
#else
    return pair_statistics(from.mean, from.rstd, at);
#endif
}

/* The same for the QN_V neighbouring parameters from p on, all of one group. */
typedef struct norm_rows {
    floatv near, rest, rstd, scale, shift;
} norm_rows;

static inline norm_rows statistics_from(norm_sources from, ulong at, ulong p)
{
#if QN_BY_PART
    const floatv rstd = LDV(F, from.rstd, at);
    norm_rows s = {LDV(F, from.mean, at), (floatv)(0.0f), rstd,
                   from.has_weight ? LDV(W, from.weight, p) * rstd : rstd,
                   from.has_bias ? LDV(B, from.bias, p) : (floatv)(0.0f)};
#else
    const norm_row row = pair_statistics(from.mean, from.rstd, at);
    norm_rows s = {(floatv)(row.near), (floatv)(row.rest), (floatv)(row.rstd), (floatv)(1.0f),
                   (floatv)(0.0f)};
#endif
    return s;
}

#define SUMS_ARGS                                                                                  \
    __global const TYPE(X) *x, ulong x_at, __global const TYPE(DY) *dy, ulong dy_at,               \
        __global const float *mean, ulong mean_at, __global const float *rstd, ulong rstd_at,      \
        __global const TYPE(W) *weight, ulong weight_at, __global const TYPE(B) *bias,             \
        ulong bias_at, __global float *sum0, ulong sum0_at, __global float *sum1, ulong sum1_at,   \
        ulong samples, ulong groups, ulong channels, ulong inner, ulong each, ulong tile,          \
        uint lanes, int has_weight, int has_bias, float beta0, float beta1

/* Declares the number of parameters, the samples from `begin` to `end` of this part, and what the
 * norm was given; moves to the operands, and to this part's row of the sums. */
#define SUMS_FRAME                                                                                 \
    const ulong parameters = groups * channels;                                                    \
    const ulong begin = get_group_id(1) * each, end = min(begin + each, samples);                  \
    const norm_sources from = {mean + mean_at, rstd + rstd_at, weight + weight_at,                 \
                               bias + bias_at, has_weight,     has_bias};                          \
    x += x_at;                                                                                     \
    dy += dy_at;                                                                                   \
    sum0 += sum0_at + get_group_id(1) * parameters;                                                \
    sum1 += sum1_at + get_group_id(1) * parameters

#if QN_WG == 1
/* A work-item adds up `tile` neighbouring parameters over `each` samples, row by row, into row
 * get_group_id(1) of the partial sums. */
ROW_KERNEL affine_sums(SUMS_ARGS)
{
    SUMS_FRAME;
    const ulong first = get_group_id(0) * tile, last = min(first + tile, parameters);
    for (ulong sample = begin; sample < end; sample++) {
        const bool fresh = sample == begin;
#if QN_PLANES
        for (ulong p = first; p < last; p++) {
            const ulong at = (sample * parameters + p) * inner;
            const norm_row s = statistics_at(from, AT(sample, p), p);
            const float2 sum = run_products(x + at, dy + at, 0, 0, s, inner, 0, 1);
            ONLY0(ACC(F, sum0, p, (fresh ? beta0 : 1.0f), sum.x));
            ONLY1(ACC(F, sum1, p, (fresh ? beta1 : 1.0f), sum.y * s.rstd));
        }
#else
        const ulong at = sample * parameters;
        for (ulong p = first, stop; p < last; p = stop) {
            stop = min(last, (p / channels + 1) * channels);
            for (; p + QN_V <= stop; p += QN_V) {
                const norm_rows s = statistics_from(from, AT(sample, p), p);
                const floatv d = (LDV(X, x, at + p) - s.near) - s.rest;
                const floatv g = BEHIND_RELU(floatv, LDV(DY, dy, at + p), d, s.scale, s.shift);
                ONLY0(ACCV(F, sum0, p, (fresh ? beta0 : 1.0f), g));
                ONLY1(ACCV(F, sum1, p, (fresh ? beta1 : 1.0f), g * (d * s.rstd)));
            }
            for (; p < stop; p++) {
                const norm_row s = statistics_at(from, AT(sample, p), p);
                const float d = (LD(X, x, at + p) - s.near) - s.rest;
                const float g = BEHIND_RELU(float, LD(DY, dy, at + p), d, s.scale, s.shift);
                ONLY0(ACC(F, sum0, p, (fresh ? beta0 : 1.0f), g));
                ONLY1(ACC(F, sum1, p, (fresh ? beta1 : 1.0f), g * (d * s.rstd)));
            }
        }
#endif
    }
}
#elif QN_COLUMNS
/* The sum of v over the work-items of one column, given to those whose number is below QN_COLUMNS.
 * `part` holds QN_WG vectors. Every work-item of the work-group must call it. */
WITH_LOCAL floatv column_total(floatv v, __local floatv *part)
{
    const uint id = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    part[id] = v;
    for (uint half_ = QN_WG / 2; half_ >= QN_COLUMNS; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_)
            part[id] += part[id + half_];
    }
    return part[id];
}

/* A work-group has QN_COLUMNS vectors of parameters, none with parameters of two groups, and
 * `each` samples: its work-items of one column take these by turns. */
ROW_KERNEL affine_sums(SUMS_ARGS)
{
    __local floatv part[QN_WG];
    SUMS_FRAME;
    const uint id = get_local_id(0), turn = id / QN_COLUMNS;
    const ulong p = (get_group_id(0) * QN_COLUMNS + id % QN_COLUMNS) * QN_V;
    ONLY0(floatv of_dy = (floatv)(0.0f));
    ONLY1(floatv of_xhat = (floatv)(0.0f));
    for (ulong sample = begin + turn; p < parameters && sample < end;
         sample += QN_WG / QN_COLUMNS) {
        const ulong at = sample * parameters + p;
        const norm_rows s = statistics_from(from, AT(sample, p), p);
        const floatv d = (LDV(X, x, at) - s.near) - s.rest;
        const floatv g = BEHIND_RELU(floatv, LDV(DY, dy, at), d, s.scale, s.shift);
        ONLY0(of_dy += g);
        ONLY1(of_xhat += g * (d * s.rstd));
    }
    ONLY1(of_xhat = column_total(of_xhat, part));
    ONLY0(of_dy = column_total(of_dy, part));
    if (turn > 0 || p >= parameters)
        return;
    ONLY0(ACCV(F, sum0, p, beta0, of_dy));
    ONLY1(ACCV(F, sum1, p, beta1, of_xhat));
}
#else
/* A team per parameter and `each` samples: with planes its `lanes` work-items walk the planes, else
 * they take the samples by turns. */
ROW_KERNEL affine_sums(SUMS_ARGS)
{
    __local float part[QN_WG];
    SUMS_FRAME;
    const ulong p = get_group_id(0) * (QN_WG / lanes) + qn_team(lanes);
    const uint lane = qn_lane(lanes);
    float2 sum = (float2)(0.0f);
#if QN_PLANES
    for (ulong sample = begin; p < parameters && sample < end; sample++) {
        const ulong at = (sample * parameters + p) * inner;
        const norm_row s = statistics_at(from, AT(sample, p), p);
        const float2 own = run_products(x + at, dy + at, 0, 0, s, inner, lane, lanes);
        sum += (float2)(own.x, own.y * s.rstd);
    }
#else
    for (ulong sample = begin + lane; p < parameters && sample < end; sample += lanes) {
        const ulong at = sample * parameters + p;
        const norm_row s = statistics_at(from, AT(sample, p), p);
        const float d = (LD(X, x, at) - s.near) - s.rest;
        const float g = BEHIND_RELU(float, LD(DY, dy, at), d, s.scale, s.shift);
        sum += (float2)(g, g * (d * s.rstd));
    }
#endif
    ONLY0(sum.x = qn_team_sum(sum.x, part, lanes));
    ONLY1(sum.y = qn_team_sum(sum.y, part, lanes));
    if (lane > 0 || p >= parameters)
        return;
    ONLY0(ACC(F, sum0, p, beta0, sum.x));
    ONLY1(ACC(F, sum1, p, beta1, sum.y));
}
#endif

/* A work-item per parameter: the sums of the parts, in order. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
affine_gradient(__global const float *sum0, ulong sum0_at, __global const float *sum1,
                ulong sum1_at, __global TYPE(DW) *dw, ulong dw_at, __global TYPE(DB) *db,
                ulong db_at, ulong parts, ulong parameters, int has_weight, int has_bias,
                float beta_weight, float beta_bias)
{
    sum0 += sum0_at;
    sum1 += sum1_at;
    dw += dw_at;
    db += db_at;
    const ulong p = get_global_id(0);
    if (p >= parameters)
        return;
    float weight = 0.0f;
#if !QN_RMS
    float bias = 0.0f;
#endif
    for (ulong k = 0; k < parts; k++) {
#if !QN_RMS
        bias += LD(F, sum0, k * parameters + p);
#endif
        weight += LD(F, sum1, k * parameters + p);
    }
    if (has_weight)
        ACC(DW, dw, p, beta_weight, weight);
#if !QN_RMS
    if (has_bias)
        ACC(DB, db, p, beta_bias, bias);
#endif
}
