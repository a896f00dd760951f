/* SPDX-License-Identifier: MIT
 *
 * Softmax and cross entropy along rows of logits, of which there may be but a part at a time: n of
 * them, those of the classes from `first` on.
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
static inline bool counts(int label, ulong classes, int ignore, int ignored)
{
    return label >= 0 && (ulong)label < classes && !(ignore && label == ignored);
}

/* The sum of w * -log p over a row. */
static inline float row_cross(__global const TYPE(X) *x, __global const float *weight, ulong n,
                              float top, float log_sum, int weighted, __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv sum = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv cost = log_sum - (LDV(X, x, i) - top);
        sum = weighted ? FMA(LDV(F, weight, i), cost, sum) : sum + cost;
    }
    float rest = qn_hadd(sum);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest = FMA(weighted ? LD(F, weight, i) : 1.0f, log_sum - (LD(X, x, i) - top), rest);
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

/* The sum of w * x over a row. */
static inline float row_dot(__global const TYPE(X) *x, __global const float *weight, ulong n,
                            int weighted, __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv sum = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V)
        sum = FMA(weighted ? LDV(F, weight, i) : (floatv)(1.0f), LDV(X, x, i), sum);
    float rest = qn_hadd(sum);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest = FMA(weighted ? LD(F, weight, i) : 1.0f, LD(X, x, i), rest);
    return qn_group_sum(rest, part);
}

/* What the classes so far tell of a row: the largest logit, the sum of exp(x - largest), the
 * label's logit, and the sum of w * x. */
typedef struct {
    float top, sum, own, dot;
} row_part;

static inline row_part joined(row_part a, row_part b)
{
    const float top = QN_LARGER(a.top, b.top);
    const float sum = a.sum * qn_exp_float(a.top - top) + b.sum * qn_exp_float(b.top - top);
    const row_part all = {top, sum, a.own + b.own, a.dot + b.dot};
    return all;
}

/* `forward` where the logits come a part after another, from the first class to the last. `known`
 * is (rows, 4): what the parts before told. The last part gives losses and statistics. */
ROW_KERNEL forward_part(__global const TYPE(X) *x, ulong x_at, __global const TYPE(LABEL) *label,
                        ulong label_at, __global const float *weight, ulong weight_at,
                        __global float *known, ulong known_at, __global float *loss, ulong loss_at,
                        __global float *stat, ulong stat_at, ulong n, ulong first, ulong classes,
                        int weighted, float smoothing, int ignore, int ignored, int keep)
{
    __local float part[QN_WG];
    x += x_at;
    label += label_at;
    weight += weight_at;
    known += known_at;
    loss += loss_at;
    stat += stat_at;
    const ulong row = get_group_id(0), at = row * n;
    const int own = LDI(LABEL, label, row);
    const bool last = first + n == classes;
    const row_exp here = row_exp_sum(x + at, n, part);
    row_part all = {here.top, here.sum, 0.0f, 0.0f};
    float weights = 0.0f;
    if (smoothing > 0.0f) {
        all.dot = row_dot(x + at, weight + first, n, weighted, part);
        if (last)
            weights = weight_sum(weight, classes, weighted, part);
    }
    if (get_local_id(0) > 0)
        return;
    if (own >= 0 && (ulong)own >= first && (ulong)own < first + n)
        all.own = LD(X, x, at + own - first);
    if (first > 0) {
        const row_part before = {LD(F, known, row * 4), LD(F, known, row * 4 + 1),
                                 LD(F, known, row * 4 + 2), LD(F, known, row * 4 + 3)};
        all = joined(before, all);
    }
    if (!last) {
        ST(F, known, row * 4, all.top);
        ST(F, known, row * 4 + 1, all.sum);
        ST(F, known, row * 4 + 2, all.own);
        ST(F, known, row * 4 + 3, all.dot);
        return;
    }
    const float log_sum = log(all.sum);
    float value = 0.0f;
    if (counts(own, classes, ignore, ignored)) {
        const float share = weighted ? LD(F, weight, own) : 1.0f;
        value = (1.0f - smoothing) * share * (log_sum - (all.own - all.top));
        value = FMA(smoothing / (float)classes, weights * (log_sum + all.top) - all.dot, value);
    }
    ST(F, loss, row, value);
    if (keep) {
        ST(F, stat, row * 2, all.top);
        ST(F, stat, row * 2 + 1, log_sum);
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
                    ulong stat_at, __global TYPE(DX) *dx, ulong dx_at, ulong n, ulong first,
                    ulong classes, int weighted, float smoothing, int ignore, int ignored,
                    float beta)
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
    const bool counted = counts(own, classes, ignore, ignored);
    const float top = LD(F, stat, row * 2), log_sum = LD(F, stat, row * 2 + 1);
    const float g = LD(F, dloss, row), base = smoothing / (float)classes;
    const float share = counted && weighted ? LD(F, weight, own) : 1.0f;
    const float target = (1.0f - smoothing) * share;
    float scale = target;
    if (smoothing > 0.0f)
        scale = FMA(base, weight_sum(weight, classes, weighted, part), scale);
    const ulong lane = get_local_id(0);
    const long place = (long)own - (long)first;
    weight += first;
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv p = qn_exp_floatv((LDV(X, x, at + i) - top) - log_sum);
        const floatv even = base * (weighted ? LDV(F, weight, i) : (floatv)(1.0f));
        const floatv d = FMA((floatv)(scale), p, -even) - one_hot(place - (long)i, target);
        ACCV(DX, dx, at + i, beta, counted ? g * d : (floatv)(0.0f));
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        const float p = qn_exp_float((LD(X, x, at + i) - top) - log_sum);
        const float even = base * (weighted ? LD(F, weight, i) : 1.0f);
        const float d = FMA(scale, p, -even) - ((ulong)place == i ? target : 0.0f);
        ACC(DX, dx, at + i, beta, counted ? g * d : 0.0f);
    }
}
