/* SPDX-License-Identifier: MIT
 *
 * AdamW of FlashOptim (Gonzalez Ortiz et al. 2026, arXiv:2602.23349): moments in 8 bits with
 * companding, and 8 more bits of parameters in bf16.
 *
 * A code is a whole number of steps of what an element's share x of its scale is mapped to: of the
 * first moment 127 + 127 * 2x / (1 + |x|), which gives the small ones more codes, of the second
 * 255 * sqrt(x).
 */
#define QN_SHARED 32
#define S_TYPE bf16

#include "lib/correction.clh"

static inline floatv first_value(floatv code)
{
    const floatv level = code - 127.0f;
    return level / (254.0f - fabs(level));
}

static inline floatv first_code(floatv x)
{
    return 127.0f + rint(254.0f * x / (1.0f + fabs(x)));
}

static inline floatv second_value(floatv code)
{
    return code * code * (1.0f / 65025.0f);
}

static inline floatv second_code(floatv x)
{
    const floatv code = rint(255.0f * sqrt(x));
    return x > 0.0f ? fmax(code, (floatv)(1.0f)) : code;
}

#include "lib/moments8.clh"

/* Whether parameters have corrections. */
#define CORRECTED QN_PASTE(CORRECTED_, P_TYPE)
#define CORRECTED_f32 0
#define CORRECTED_f16 0
#define CORRECTED_bf16 1

/* Those of a chunk, before and after the step. */
struct parameters {
    __global const TYPE(P) * old;
    __global TYPE(P) * new_;
    __global uchar *correction;
};

static inline floatv load_old(const struct parameters *p, ulong i, uint some)
{
    const floatv old = load_some_P(p->old, i, some);
    return CORRECTED ? qn_corrected_vector(old, load_some_C(p->correction, i, some)) : old;
}

static inline void store_new(const struct parameters *p, ulong i, uint some, floatv number,
                             struct qn_dice dice)
{
    if (CORRECTED) {
        const struct qn_parts parts = qn_parts_of(number);
        store_some_P(p->new_, i, some, parts.stored);
        store_some_C(p->correction, i, some, parts.code);
    } else {
        store_some_at_random(p->new_, i, some, number, dice);
    }
}

#include "lib/moments8_step.clh"

/* Without corrections `correction` is absent and never touched. */
GROUP_KERNEL flash_adamw(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                         ulong gradient_at, __global const int *table, ulong table_at,
                         __global const uint *control, ulong control_at, __global uchar *first,
                         ulong first_at, __global uchar *second, ulong second_at,
                         __global TYPE(S) * first_scale, ulong first_scale_at,
                         __global TYPE(S) * second_scale, ulong second_scale_at,
                         __global uchar *correction, ulong correction_at, __global TYPE(P) * out,
                         ulong out_at, float beta1, float beta2, float rest1, float rest2,
                         float eps)
{
    __local float part[QN_WG];
    table += table_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_of(table, now);
    const ulong n = chunk.n;
    p += p_at + chunk.first;
    gradient += gradient_at + chunk.first;
    correction += CORRECTED ? correction_at + chunk.first : 0;
    out += out_at + chunk.first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const struct slots slots = slots_of(&chunk, first + first_at, first_scale + first_scale_at,
                                        second + second_at, second_scale + second_scale_at);
    const struct adam a = adam_of(now, &chunk, beta1, beta2, rest1, rest2, eps, 1);
    const struct parameters parameters = {p, out, correction};
    step_chunk(&parameters, gradient, now->grad_scale, &slots, &a, &chunk, part);
}
