/* SPDX-License-Identifier: MIT
 *
 * Softmax and cross entropy along rows of n logits.
 */
#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/row.clh"

#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef LABEL_TYPE
#define LABEL_TYPE i32
#endif
#define F_TYPE f32

#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* Whether a row counts: its label is a class and not the ignored one. */
static inline bool counts(int label, ulong n, int ignore, int ignored)
{
    return label >= 0 && (ulong)label < n && !(ignore && label == ignored);
}

/* The sum of w * -log p over a row. */
static inline float row_cross(__global const TYPE(X) *x, __global const float *weight, ulong n,
                              float top, float log_sum, int weighted, __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv sum = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv cost = log_sum - (LDV(X, x, i) - top);
        sum = weighted ? fma(LDV(F, weight, i), cost, sum) : sum + cost;
    }
    float rest = qn_hadd(sum);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest = fma(weighted ? LD(F, weight, i) : 1.0f, log_sum - (LD(X, x, i) - top), rest);
    return qn_group_sum(rest, part);
}

/* The sum of the class weights. */
static inline float weight_sum(__global const float *weight, ulong n, int weighted,
                               __local float *part)
{
    if (!weighted)
        return (float)n;
    float sum = 0.0f;
    for (ulong i = get_local_id(0); i < n; i += QN_WG)
        sum += LD(F, weight, i);
    return qn_group_sum(sum, part);
}

/* A work-group per row. `stat` is (rows, 2): the largest logit and the log of the sum of
 * exp(x - largest), absent unless `keep`. */
ROW_KERNEL forward(__global const TYPE(X) *x, ulong x_at, __global const TYPE(LABEL) *label,
                   ulong label_at, __global const float *weight, ulong weight_at,
                   __global float *loss, ulong loss_at, __global float *stat, ulong stat_at,
                   ulong n, int weighted, float smoothing, int ignore, int ignored, int keep)
{
    __local float part[QN_WG];
    x += x_at;
    label += label_at;
    weight += weight_at;
    loss += loss_at;
    stat += stat_at;
    const ulong row = get_group_id(0), at = row * n;
    const int own = LDI(LABEL, label, row);
    const row_exp all = row_exp_sum(x + at, n, part);
    const float top = all.top, log_sum = log(all.sum);
    float value = 0.0f;
    if (counts(own, n, ignore, ignored)) {
        const float share = weighted ? LD(F, weight, own) : 1.0f;
        value = (1.0f - smoothing) * share * (log_sum - (LD(X, x, at + own) - top));
        if (smoothing > 0.0f)
            value +=
                smoothing / (float)n * row_cross(x + at, weight, n, top, log_sum, weighted, part);
    }
    if (get_local_id(0) == 0) {
        ST(F, loss, row, value);
        if (keep) {
            ST(F, stat, row * 2, top);
            ST(F, stat, row * 2 + 1, log_sum);
        }
    }
}

/* `value` at `place` of a vector of zeros, if that is inside it. */
static inline floatv one_hot(long place, float value)
{
    floatv v = (floatv)(0.0f);
    if (place >= 0 && place < QN_V)
        ((float *)&v)[place] = value;
    return v;
}

/* A work-group per row: d loss / d x_i = scale p_i - target_i - floor w_i. */
ROW_KERNEL backward(__global const TYPE(X) *x, ulong x_at, __global const TYPE(LABEL) *label,
                    ulong label_at, __global const float *weight, ulong weight_at,
                    __global const float *dloss, ulong dloss_at, __global const float *stat,
                    ulong stat_at, __global TYPE(DX) *dx, ulong dx_at, ulong n, int weighted,
                    float smoothing, int ignore, int ignored, float beta)
{
    __local float part[QN_WG];
    x += x_at;
    label += label_at;
    weight += weight_at;
    dloss += dloss_at;
    stat += stat_at;
    dx += dx_at;
    const ulong row = get_group_id(0), at = row * n;
    const int own = LDI(LABEL, label, row);
    const bool counted = counts(own, n, ignore, ignored);
    const float top = LD(F, stat, row * 2), log_sum = LD(F, stat, row * 2 + 1);
    const float g = LD(F, dloss, row), base = smoothing / (float)n;
    const float share = counted && weighted ? LD(F, weight, own) : 1.0f;
    const float target = (1.0f - smoothing) * share;
    float scale = target;
    if (smoothing > 0.0f)
        scale = fma(base, weight_sum(weight, n, weighted, part), scale);
    const ulong lane = get_local_id(0);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv p = qn_exp_floatv((LDV(X, x, at + i) - top) - log_sum);
        const floatv even = base * (weighted ? LDV(F, weight, i) : (floatv)(1.0f));
        const floatv d = fma((floatv)(scale), p, -even) - one_hot(own - (long)i, target);
        ACCV(DX, dx, at + i, beta, counted ? g * d : (floatv)(0.0f));
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        const float p = qn_exp_float((LD(X, x, at + i) - top) - log_sum);
        const float even = base * (weighted ? LD(F, weight, i) : 1.0f);
        const float d = fma(scale, p, -even) - ((ulong)own == i ? target : 0.0f);
        ACC(DX, dx, at + i, beta, counted ? g * d : 0.0f);
    }
}
