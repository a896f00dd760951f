/* SPDX-License-Identifier: MIT
 *
 * Softmax and cross entropy of logits (rows, classes, n), whose classes are planes of n pixels.
 * Neighbouring pixels are the places of a vector, which goes through the classes; see strip.clh.
 */
#ifndef X_TYPE
#define X_TYPE f32
#endif
#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef LABEL_TYPE
#define LABEL_TYPE i32
#endif
#define F_TYPE f32
#include "lib/exp.clh"
#include "lib/reduce.clh"
#include "lib/strip.clh"

#define PLANE_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* Classes that are searched for their largest before their exponentials are summed: few enough
 * that the cache keeps what was read, wherever the planes lie. */
#define CHUNK 8

/* What decides which pixels count, and how much. */
typedef struct {
    ulong classes;
    int weighted, ignore, ignored;
} plane_rule;

static inline intv labels_at(__global const TYPE(LABEL) * label, ulong at, bool vectors)
{
    return vectors ? QN_PASTE(convert_int, QN_V)(QN_PASTE(vload, QN_V)(0, label + at))
                   : (intv)(LDI(LABEL, label, at));
}

/* Places whose label is a class and not the ignored one. */
static inline intv counted(intv own, plane_rule rule)
{
    const intv is_class = own >= 0 && own < (intv)((int)rule.classes);
    return rule.ignore ? is_class && own != (intv)(rule.ignored) : is_class;
}

/* The weight of each place's own class, and the sum of all. */
typedef struct {
    floatv own;
    float all;
} plane_weights;

static inline plane_weights weights_of(__global const float *weight, intv own, plane_rule rule)
{
    plane_weights w = {(floatv)(1.0f), (float)rule.classes};
    if (!rule.weighted)
        return w;
    w.all = 0.0f;
    for (ulong c = 0; c < rule.classes; c++) {
        const float here = LD(F, weight, c);
        w.own = own == (intv)((int)c) ? (floatv)(here) : w.own;
        w.all += here;
    }
    return w;
}

/* The largest logit of each place, at least -3e38, the log of the sum of exp(x - largest), and the
 * place's own logit. What was summed below a smaller largest is scaled down. */
typedef struct {
    floatv top, log_sum, own;
} plane_logits;

static inline plane_logits logits_of(__global const TYPE(X) * x, ulong n, bool vectors, intv own,
                                     plane_rule rule)
{
    plane_logits all; /* no initializer: see tests/check/kernel_limits.c */
    floatv sum = (floatv)(0.0f);
    all.top = (floatv)(-3e38f);
    all.own = (floatv)(0.0f);
    for (ulong start = 0; start < rule.classes; start += CHUNK) {
        const ulong end = min(rule.classes, start + CHUNK);
        floatv most = all.top;
        for (ulong c = start; c < end; c++) {
            const floatv v = QN_GET(X, x, c * n);
            all.own = own == (intv)((int)c) ? v : all.own;
            most = QN_LARGER(v, most);
        }
        sum *= qn_exp_floatv(all.top - most);
        for (ulong c = start; c < end; c++)
            sum += qn_exp_floatv(QN_GET(X, x, c * n) - most);
        all.top = most;
    }
    all.log_sum = log(sum);
    return all;
}

/* The sum of w * -log p over the classes. */
static inline floatv cross(__global const TYPE(X) * x, ulong n, bool vectors,
                           __global const float *weight, plane_logits all, plane_rule rule)
{
    floatv sum = (floatv)(0.0f);
    for (ulong c = 0; c < rule.classes; c++) {
        const float w = rule.weighted ? LD(F, weight, c) : 1.0f;
        sum = FMA((floatv)(w), all.log_sum - (QN_GET(X, x, c * n) - all.top), sum);
    }
    return sum;
}

/* `stat` is (rows, 2, n): the largest logit and the log of the sum of exp(x - largest), absent
 * unless `keep`. */
PLANE_KERNEL forward(__global const TYPE(X) * x, ulong x_at, __global const TYPE(LABEL) * label,
                     ulong label_at, __global const float *weight, ulong weight_at,
                     __global float *loss, ulong loss_at, __global float *stat, ulong stat_at,
                     ulong classes, int weighted, float smoothing, int ignore, int ignored,
                     int keep, ulong rows, ulong n)
{
    QN_STRIP;
    const plane_rule rule = {classes, weighted, ignore, ignored};
    x += x_at;
    label += label_at;
    weight += weight_at;
    loss += loss_at;
    stat += stat_at;
    for (ulong row = get_global_id(1); row < blocks; row += get_global_size(1))
        for (ulong k = first; k < last; k += step) {
            const ulong at = row * classes * n + k;
            const intv own = labels_at(label, row * n + k, vectors);
            const plane_logits all = logits_of(x + at, n, vectors, own, rule);
            const plane_weights w = weights_of(weight, own, rule);
            floatv value = (1.0f - smoothing) * w.own * (all.log_sum - (all.own - all.top));
            if (smoothing > 0.0f)
                value += smoothing / (float)classes * cross(x + at, n, vectors, weight, all, rule);
            value = counted(own, rule) ? value : (floatv)(0.0f);
            QN_PUT(F, loss, row * n + k, value);
            if (keep) {
                QN_PUT(F, stat, row * 2 * n + k, all.top);
                QN_PUT(F, stat, (row * 2 + 1) * n + k, all.log_sum);
            }
        }
}

/* d loss / d x_c = scale p_c - target_c - floor w_c. */
PLANE_KERNEL backward(__global const TYPE(X) * x, ulong x_at, __global const TYPE(LABEL) * label,
                      ulong label_at, __global const float *weight, ulong weight_at,
                      __global const float *dloss, ulong dloss_at, __global const float *stat,
                      ulong stat_at, __global TYPE(DX) * dx, ulong dx_at, ulong classes,
                      int weighted, float smoothing, int ignore, int ignored, float beta,
                      ulong rows, ulong n)
{
    QN_STRIP;
    const plane_rule rule = {classes, weighted, ignore, ignored};
    x += x_at;
    label += label_at;
    weight += weight_at;
    dloss += dloss_at;
    stat += stat_at;
    dx += dx_at;
    const float base = smoothing / (float)classes;
    for (ulong row = get_global_id(1); row < blocks; row += get_global_size(1))
        for (ulong k = first; k < last; k += step) {
            const intv own = labels_at(label, row * n + k, vectors), counts = counted(own, rule);
            const plane_weights w = weights_of(weight, own, rule);
            const floatv top = QN_GET(F, stat, row * 2 * n + k);
            const floatv log_sum = QN_GET(F, stat, (row * 2 + 1) * n + k);
            const floatv g = QN_GET(F, dloss, row * n + k), target = (1.0f - smoothing) * w.own;
            const floatv scale = FMA((floatv)(base), (floatv)(w.all), target);
            for (ulong c = 0; c < classes; c++) {
                const ulong at = (row * classes + c) * n + k;
                const float even = base * (weighted ? LD(F, weight, c) : 1.0f);
                const floatv p = qn_exp_floatv((QN_GET(X, x, at) - top) - log_sum);
                const floatv hot = own == (intv)((int)c) ? target : (floatv)(0.0f);
                const floatv d = g * (FMA(scale, p, (floatv)(-even)) - hot);
                const floatv made = counts ? d : (floatv)(0.0f);
                QN_ADD(DX, dx, at, beta, made);
            }
        }
}
