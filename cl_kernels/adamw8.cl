/* SPDX-License-Identifier: MIT
 *
 * AdamW with moments in 8 bits, blockwise with the dynamic map (Dettmers et al. 2022,
 * arXiv:2110.02861).
 *
 * The map has a decimal exponent that takes a share of the bits, and the rest for the fraction:
 * level 2^e + j, 0 <= j < 2^e, e = 0 .. DIGITS, stands for
 *
 *   10^(e - DIGITS) * (0.1 + 0.9 * (j + 1/2) / 2^e)
 *
 * the middle of one of the 2^e equal parts of a decade, and level 2^(DIGITS + 1) for 1. With a sign
 * DIGITS is 6, level 0 stands for 0, and codes are 127 + level, or 127 - level up to 127; without,
 * DIGITS is 7, level 1 (e = 0) stands for 0, and codes are level - 1.
 */
#define QN_SHARED 256
#define S_TYPE f32

#include "lib/type.clh"

#define AS_UINT QN_PASTE(as_uint, QN_V)
#define AS_FLOAT QN_PASTE(as_float, QN_V)
#define TO_FLOAT QN_PASTE(convert_float, QN_V)

/* What a level stands for. `zero`: the level of 0. */
static inline floatv level_value(floatv level, uint digits, float zero)
{
    const uintv exponent = (AS_UINT(level) >> 23) - 127u; /* e */
    const uintv down = digits - exponent;
    const floatv part = AS_FLOAT((AS_UINT(level) & 0x7fffffu) | 0x3f800000u); /* 1 + j / 2^e */
    const floatv half_ = AS_FLOAT((126u - exponent) << 23);                   /* 2^-(e + 1) */
    const floatv one = 1.0f;
    const floatv power = ((down & 1u) != 0u ? 0.1f * one : one) *
                         ((down & 2u) != 0u ? 0.01f * one : one) *
                         ((down & 4u) != 0u ? 0.0001f * one : one);
    const floatv value = power * FMA((floatv)(0.9f), part - 1.0f + half_, (floatv)(0.1f));
    return level <= zero ? (floatv)(0.0f) : level >= (float)(2u << digits) ? one : value;
}

/* The level nearest to x, from 0 to 1. Two neighbours in different decades lie apart unequally:
 * the middle between them is 10^(e - 1 - DIGITS) * (1 + 1.8 / 2^e), where e is the upper one's. */
static inline floatv nearest_level(floatv x, uint digits, float zero)
{
    const float decades[6] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f};
    const float inverse[6] = {1e5f, 1e4f, 1e3f, 1e2f, 1e1f, 1.0f};
    const float lowest = zero > 0.0f ? 2.0f : 1.0f; /* 2^e of the first decade */
    const float top = (float)(2u << digits), end = 1.0f - 0.45f / top;
    floatv power = 1e6f, parts = lowest; /* 10^(DIGITS - e), 2^e */
    float next = lowest;
    for (uint d = 0; d < 6; d++) {
        next *= 2.0f;
        const intv up = x >= (floatv)(decades[d] * (1.0f + 1.8f / next));
        power = up ? (floatv)(inverse[d]) : power;
        parts = up ? (floatv)(next) : parts;
    }
    const floatv j = floor(FMA(x, power, (floatv)(-0.1f)) / 0.9f * parts);
    const floatv level = parts + fmin(fmax(j, (floatv)(0.0f)), parts - 1.0f);
    const float begin = 0.5e-6f * (0.1f + 0.45f / lowest);
    return x < begin ? (floatv)(zero) : x >= end ? (floatv)(top) : level;
}

static inline floatv first_value(floatv code)
{
    const floatv level = code - 127.0f;
    return copysign(level_value(fabs(level), 6, 0.0f), level);
}

static inline floatv first_code(floatv x)
{
    const floatv level = nearest_level(fabs(x), 6, 0.0f);
    return 127.0f + (x < 0.0f ? -fmin(level, (floatv)(127.0f)) : level);
}

static inline floatv second_value(floatv code)
{
    return level_value(code + 1.0f, 7, 1.0f);
}

static inline floatv second_code(floatv x)
{
    const floatv level = nearest_level(x, 7, 1.0f);
    return (x > 0.0f ? fmax(level, (floatv)(2.0f)) : level) - 1.0f;
}

#include "lib/moments8.clh"

/* Those of a chunk, before and after the step. */
struct parameters {
    __global const TYPE(P) * old;
    __global TYPE(P) * new_;
};

static inline floatv load_old(const struct parameters *p, ulong i, uint some)
{
    return load_some_P(p->old, i, some);
}

static inline void store_new(const struct parameters *p, ulong i, uint some, floatv number,
                             struct qn_dice dice)
{
    store_some_at_random(p->new_, i, some, number, dice);
}

#include "lib/moments8_step.clh"

GROUP_KERNEL adamw8(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                    ulong gradient_at, __global const int *table, ulong table_at,
                    __global const uint *control, ulong control_at, __global uchar *first,
                    ulong first_at, __global uchar *second, ulong second_at,
                    __global TYPE(S) * first_scale, ulong first_scale_at,
                    __global TYPE(S) * second_scale, ulong second_scale_at, __global TYPE(P) * out,
                    ulong out_at, float beta1, float beta2, float rest1, float rest2, float eps)
{
    __local float part[QN_WG];
    table += table_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_of(table, now);
    const ulong n = chunk.n;
    p += p_at + chunk.first;
    gradient += gradient_at + chunk.first;
    out += out_at + chunk.first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const struct slots slots = slots_of(&chunk, first + first_at, first_scale + first_scale_at,
                                        second + second_at, second_scale + second_scale_at);
    const struct adam a = adam_of(now, &chunk, beta1, beta2, rest1, rest2, eps, 1);
    const struct parameters parameters = {p, out};
    step_chunk(&parameters, gradient, now->grad_scale, &slots, &a, &chunk, part);
}
