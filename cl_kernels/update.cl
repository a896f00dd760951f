/* SPDX-License-Identifier: MIT
 *
 * Optimizers with slots of the parameters' shape: one launch over all chunks of a block, a
 * work-group per chunk (lib/update.clh).
 */
#include "lib/update.clh"

/* Stochastic gradient descent; gives the new parameter. */
#define DEFINE_SGD(real, name)                                                                     \
    static inline real name(real p, real g, real *m, float rate, float momentum, int nesterov,     \
                            float decay)                                                           \
    {                                                                                              \
        g = FMA((real)(decay), p, g);                                                              \
        *m = FMA((real)(momentum), *m, g);                                                         \
        const real step = nesterov ? FMA((real)(momentum), *m, g) : *m;                            \
        return FMA((real)(-rate), step, p);                                                        \
    }
DEFINE_SGD(float, sgd_one)
DEFINE_SGD(floatv, sgd_vector)

/* Without momentum `state` is absent and never touched. */
GROUP_KERNEL sgd(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                 ulong gradient_at, __global const int *table, ulong table_at,
                 __global const uint *control, ulong control_at, __global float *state,
                 ulong state_at, __global TYPE(P) * out, ulong out_at, float momentum, int nesterov)
{
    table += table_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_of(table, now);
    const ulong n = chunk.n;
    const bool keeps = momentum != 0.0f;
    p += p_at + chunk.first;
    gradient += gradient_at + chunk.first;
    state += state_at + (keeps ? chunk.first : 0);
    out += out_at + chunk.first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const float rate = chunk.rate, decay = chunk.decay, scale = now->grad_scale;
    const ulong lane = get_local_id(0);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        floatv m = keeps ? LDV(F, state, i) : (floatv)(0.0f);
        const floatv g = LDV(F, gradient, i) * scale;
        QN_STV_AT_RANDOM(P, out, i,
                         sgd_vector(LDV(P, p, i), g, &m, rate, momentum, nesterov, decay),
                         chunk.dice);
        if (keeps)
            STV(F, state, i, m);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        float m = keeps ? LD(F, state, i) : 0.0f;
        const float g = LD(F, gradient, i) * scale;
        QN_ST_AT_RANDOM(P, out, i, sgd_one(LD(P, p, i), g, &m, rate, momentum, nesterov, decay),
                        chunk.dice);
        if (keeps)
            ST(F, state, i, m);
    }
}

/* Adam; `decoupled` makes it AdamW. */
GROUP_KERNEL adam(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                  ulong gradient_at, __global const int *table, ulong table_at,
                  __global const uint *control, ulong control_at, __global float *first,
                  ulong first_at, __global float *second, ulong second_at, __global TYPE(P) * out,
                  ulong out_at, float beta1, float beta2, float rest1, float rest2, float eps,
                  int decoupled)
{
    table += table_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_of(table, now);
    const ulong n = chunk.n;
    p += p_at + chunk.first;
    gradient += gradient_at + chunk.first;
    first += first_at + chunk.first;
    second += second_at + chunk.first;
    out += out_at + chunk.first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const float scale = now->grad_scale;
    const struct adam a = adam_of(now, &chunk, beta1, beta2, rest1, rest2, eps, decoupled);
    const ulong lane = get_local_id(0);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        floatv m = LDV(F, first, i), v = LDV(F, second, i);
        const floatv g = LDV(F, gradient, i) * scale;
        QN_STV_AT_RANDOM(P, out, i, adam_vector(LDV(P, p, i), g, &m, &v, &a), chunk.dice);
        STV(F, first, i, m);
        STV(F, second, i, v);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        float m = LD(F, first, i), v = LD(F, second, i);
        const float g = LD(F, gradient, i) * scale;
        QN_ST_AT_RANDOM(P, out, i, adam_one(LD(P, p, i), g, &m, &v, &a), chunk.dice);
        ST(F, first, i, m);
        ST(F, second, i, v);
    }
}

/* What Lion needs besides the element: 1 - beta from the host's double precision. */
struct lion {
    float beta1, beta2, rest1, rest2;
    float rate, decay;
};

/* The sign of 0 is 0. */
#define DEFINE_LION(real, name)                                                                    \
    static inline real name(real p, real g, real *m, struct lion a)                                \
    {                                                                                              \
        const real step = sign(FMA((real)(a.beta1), *m, a.rest1 * g));                             \
        *m = FMA((real)(a.beta2), *m, a.rest2 * g);                                                \
        return FMA((real)(-a.rate), FMA((real)(a.decay), p, step), p);                             \
    }
DEFINE_LION(float, lion_one)
DEFINE_LION(floatv, lion_vector)

GROUP_KERNEL lion(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                  ulong gradient_at, __global const int *table, ulong table_at,
                  __global const uint *control, ulong control_at, __global float *state,
                  ulong state_at, __global TYPE(P) * out, ulong out_at, float beta1, float beta2,
                  float rest1, float rest2)
{
    table += table_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_of(table, now);
    const ulong n = chunk.n;
    p += p_at + chunk.first;
    gradient += gradient_at + chunk.first;
    state += state_at + chunk.first;
    out += out_at + chunk.first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const float scale = now->grad_scale;
    const struct lion a = {beta1, beta2, rest1, rest2, chunk.rate, chunk.decay};
    const ulong lane = get_local_id(0);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        floatv m = LDV(F, state, i);
        const floatv g = LDV(F, gradient, i) * scale;
        QN_STV_AT_RANDOM(P, out, i, lion_vector(LDV(P, p, i), g, &m, a), chunk.dice);
        STV(F, state, i, m);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        float m = LD(F, state, i);
        const float g = LD(F, gradient, i) * scale;
        QN_ST_AT_RANDOM(P, out, i, lion_one(LD(P, p, i), g, &m, a), chunk.dice);
        ST(F, state, i, m);
    }
}
