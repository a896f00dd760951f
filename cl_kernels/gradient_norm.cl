/* SPDX-License-Identifier: MIT
 *
 * The global norm of the gradient, and what follows from it for the update: whether it is skipped,
 * the clip factor, the loss scale, Adam's bias corrections.
 */
#include "lib/control.clh"
#include "lib/reduce.clh"

#define F_TYPE f32
#define T_TYPE i32

#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* The power of two that brings values of at most `top` to at most 1, as its exponent. */
static inline int shift_of(float top)
{
    return clamp((int)((as_uint(top) >> 23) & 255u) - 126, -100, 126);
}

/* The Euclidean norm of n values, given to every work-item. They are brought to at most 1 by a
 * power of two, so that no square overflows or vanishes; not finite if one of them is not. */
static inline float safe_norm(__global const float *x, ulong n, __local float *part)
{
    const ulong lane = get_local_id(0);
    floatv largest = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V)
        largest = fmax(largest, fabs(LDV(F, x, i)));
    float top = qn_hmax(largest);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        top = fmax(top, fabs(LD(F, x, i)));
    const int shift = shift_of(qn_group_max(top, part));
    const float scale = ldexp(1.0f, -shift);
    floatv squares = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv v = LDV(F, x, i) * scale;
        squares = FMA(v, v, squares);
    }
    float sum = qn_hadd(squares);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        const float v = LD(F, x, i) * scale;
        sum = FMA(v, v, sum);
    }
    return ldexp(sqrt(qn_group_sum(sum, part)), shift);
}

/* A work-group per chunk of at most 4096 elements: the norm of the chunk. */
GROUP_KERNEL partial(__global const float *gradient, ulong gradient_at, __global const int *table,
                     ulong table_at, __global float *norm, ulong norm_at)
{
    __local float part[QN_WG];
    gradient += gradient_at;
    table += table_at;
    norm += norm_at;
    const ulong chunk = get_group_id(0), row = chunk * QN_CHUNK_NUMBERS;
    const ulong first = LDI(T, table, row), n = LDI(T, table, row + 1);
    const float value = safe_norm(gradient + first, n, part);
    if (get_local_id(0) == 0)
        ST(F, norm, chunk, value);
}

static inline bool is_finite(float v)
{
    return (as_uint(v) & 0x7f800000u) != 0x7f800000u;
}

/* Halves the loss scale after a skipped update, doubles it after `interval` good ones. */
static inline void move_scale(__global qn_control *now, bool skip, uint interval)
{
    const uint good = skip ? 0u : now->good_updates + 1u;
    if (skip)
        now->loss_scale = fmax(now->loss_scale * 0.5f, 1.0f);
    else if (good >= interval)
        now->loss_scale = fmin(now->loss_scale * 2.0f, 16777216.0f);
    now->good_updates = good >= interval ? 0u : good;
}

/* A single work-group. `log_beta` are the logarithms of Adam's betas. */
GROUP_KERNEL total(__global const float *norms, ulong norms_at, __global uint *control,
                   ulong control_at, ulong n, float log_beta1, float log_beta2, int dynamic,
                   uint interval)
{
    __local float part[QN_WG];
    norms += norms_at;
    __global qn_control *now = QN_CONTROL(control, control_at);
    const float scaled = safe_norm(norms, n, part);
    if (get_local_id(0) != 0)
        return;
    const float norm = scaled / now->loss_scale;
    const bool skip = !is_finite(norm);
    const float clip = now->clip > 0.0f ? fmin(1.0f, now->clip / (norm + 1e-6f)) : 1.0f;
    now->grad_norm = norm;
    now->skip = skip;
    now->grad_scale = skip ? 0.0f : clip / now->loss_scale;
    now->applied += !skip;
    now->counted = now->applied;
    now->bias1 = -expm1((float)now->applied * log_beta1);
    now->bias2 = -expm1((float)now->applied * log_beta2);
    if (dynamic)
        move_scale(now, skip, interval);
}

/* Of the norms of one parameter, before all are known, whether it is updated. A single
 * work-group. */
GROUP_KERNEL alone(__global const float *norms, ulong norms_at, __global uint *control,
                   ulong control_at, ulong n, float log_beta1, float log_beta2)
{
    __local float part[QN_WG];
    norms += norms_at;
    __global qn_control *now = QN_CONTROL(control, control_at);
    const bool skip = !is_finite(safe_norm(norms, n, part));
    if (get_local_id(0) != 0)
        return;
    const uint counted = now->applied + 1;
    now->skip = skip;
    now->grad_scale = skip ? 0.0f : 1.0f / now->loss_scale;
    now->counted = counted;
    now->bias1 = -expm1((float)counted * log_beta1);
    now->bias2 = -expm1((float)counted * log_beta2);
}

/* The size of value i if its chunk is of the group, else 0. */
static inline float size_in(__global const float *norms, __global const int *table, ulong i,
                            int group)
{
    return LDI(T, table, i) == group ? fabs(LD(F, norms, i)) : 0.0f;
}

/* A work-group per group of parameters: the norm of those of the n chunks that are of it, without
 * the loss scale. */
GROUP_KERNEL groups(__global const float *norms, ulong norms_at, __global const int *table,
                    ulong table_at, __global float *out, ulong out_at,
                    __global const uint *control, ulong control_at, ulong n)
{
    __local float part[QN_WG];
    norms += norms_at;
    table += table_at;
    out += out_at;
    const ulong lane = get_local_id(0), group = get_group_id(0);
    float top = 0.0f, sum = 0.0f;
    for (ulong i = lane; i < n; i += QN_WG)
        top = fmax(top, size_in(norms, table, i, (int)group));
    const int shift = shift_of(qn_group_max(top, part));
    const float scale = ldexp(1.0f, -shift);
    for (ulong i = lane; i < n; i += QN_WG) {
        const float v = size_in(norms, table, i, (int)group) * scale;
        sum = FMA(v, v, sum);
    }
    const float norm = ldexp(sqrt(qn_group_sum(sum, part)), shift);
    if (lane == 0)
        ST(F, out, group, norm / QN_CONTROL_READ(control, control_at)->loss_scale);
}
