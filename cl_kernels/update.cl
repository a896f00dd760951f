/* SPDX-License-Identifier: MIT
 *
 * The optimizers: one launch over all chunks of a block of parameters, a work-group per chunk.
 *
 * Row k of the table is {first element, elements, number, factor of the learning rate, factor of
 * weight decay} of chunk k, the factors as bits of f32; what lies between chunks is padding and is
 * not touched. A skipped update copies the parameters to the result unchanged (the result may lie
 * elsewhere) and leaves the slots alone.
 *
 * Parameters of 16 bits are rounded stochastically; the counter of their random words is (update,
 * number of the chunk, ALL_NODES, element of the chunk / 4).
 *
 * Each formula is written once, for one element and for a vector of them.
 */
#include "lib/control.clh"
#include "lib/reduce.clh"
#include "lib/stochastic.clh"

#define F_TYPE f32
#define T_TYPE i32

#define ALL_NODES 0xFFFFFFFFu /* no node has this number */

#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

struct chunk {
    ulong first, n;
    float rate, decay;
    struct qn_dice dice;
};

static inline struct chunk chunk_of(__global const int *table, __global const qn_control *now)
{
    const ulong at = get_group_id(0) * QN_CHUNK_NUMBERS;
    struct chunk chunk;
    chunk.first = LDI(T, table, at);
    chunk.n = LDI(T, table, at + 1);
    chunk.rate = now->lr * as_float((int)LDI(T, table, at + 3));
    chunk.decay = now->weight_decay * as_float((int)LDI(T, table, at + 4));
    chunk.dice.key = (uint2)(now->seed_lo, now->seed_hi);
    chunk.dice.x = now->update;
    chunk.dice.y = (uint)LDI(T, table, at + 2);
    chunk.dice.z = ALL_NODES;
    return chunk;
}

static inline void hand_on(__global const TYPE(P) * p, __global TYPE(P) * out, ulong n)
{
    for (ulong i = get_local_id(0); i < n; i += QN_WG)
        ST(P, out, i, LD(P, p, i));
}

/* Stochastic gradient descent; gives the new parameter. */
#define DEFINE_SGD(real, name)                                                                     \
    static inline real name(real p, real g, real *m, float rate, float momentum, int nesterov,     \
                            float decay)                                                           \
    {                                                                                              \
        g = fma((real)(decay), p, g);                                                              \
        *m = fma((real)(momentum), *m, g);                                                         \
        const real step = nesterov ? fma((real)(momentum), *m, g) : *m;                            \
        return fma((real)(-rate), step, p);                                                        \
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

/* Constants of one update of Adam; rest1 and rest2 are 1 - beta, computed by the host in double. */
struct adam {
    float beta1, beta2, rest1, rest2, eps;
    float step, root; /* rate / (1 - beta1^t), sqrt(1 - beta2^t) */
    float coupled;    /* decay that is added to the gradient */
    float shrink;     /* factor of the parameter before the step */
};

#define DEFINE_ADAM(real, name)                                                                    \
    static inline real name(real p, real g, real *m, real *v, struct adam a)                       \
    {                                                                                              \
        p *= a.shrink;                                                                             \
        g = fma((real)(a.coupled), p, g);                                                          \
        *m = fma((real)(a.beta1), *m, a.rest1 * g);                                                \
        *v = fma((real)(a.beta2), *v, a.rest2 * g * g);                                            \
        return p - a.step * (*m / (sqrt(*v) / a.root + a.eps));                                    \
    }
DEFINE_ADAM(float, adam_one)
DEFINE_ADAM(floatv, adam_vector)

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
    const struct adam a = {beta1,
                           beta2,
                           rest1,
                           rest2,
                           eps,
                           chunk.rate / now->bias1,
                           sqrt(now->bias2),
                           decoupled ? 0.0f : chunk.decay,
                           decoupled ? 1.0f - chunk.rate * chunk.decay : 1.0f};
    const ulong lane = get_local_id(0);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        floatv m = LDV(F, first, i), v = LDV(F, second, i);
        const floatv g = LDV(F, gradient, i) * scale;
        QN_STV_AT_RANDOM(P, out, i, adam_vector(LDV(P, p, i), g, &m, &v, a), chunk.dice);
        STV(F, first, i, m);
        STV(F, second, i, v);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        float m = LD(F, first, i), v = LD(F, second, i);
        const float g = LD(F, gradient, i) * scale;
        QN_ST_AT_RANDOM(P, out, i, adam_one(LD(P, p, i), g, &m, &v, a), chunk.dice);
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
        const real step = sign(fma((real)(a.beta1), *m, a.rest1 * g));                             \
        *m = fma((real)(a.beta2), *m, a.rest2 * g);                                                \
        return fma((real)(-a.rate), fma((real)(a.decay), p, step), p);                             \
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
