/* SPDX-License-Identifier: MIT
 *
 * Losses of two tensors of one shape, element by element, in f32, and the gradients of both. A
 * work-item handles QN_V neighbouring elements, the last one what is left of them.
 */
#include "lib/type.clh"

#include "lib/activation.clh"

#ifndef A_TYPE
#define A_TYPE f32
#endif
#ifndef B_TYPE
#define B_TYPE f32
#endif
#ifndef D_TYPE
#define D_TYPE f32
#endif
#define F_TYPE f32

/* T is a scalar or a vector type; the gradients are those of the loss of 1. */
#define SQUARED(T, a, b) (((a) - (b)) * ((a) - (b)))
#define SQUARED_A(T, a, b) ((T)(2.0f) * ((a) - (b)))
#define SQUARED_B(T, a, b) ((T)(-2.0f) * ((a) - (b)))

/* 0 for 0, NaN for NaN. */
#define SIGN(T, v) ((v) > (T)(0.0f) ? (T)(1.0f) : ((v) < (T)(0.0f) ? (T)(-1.0f) : (v)))
#define ABSOLUTE(T, a, b) fabs((a) - (b))
#define ABSOLUTE_A(T, a, b) SIGN(T, (a) - (b))
#define ABSOLUTE_B(T, a, b) SIGN(T, (b) - (a))

/* -b log s - (1 - b) log(1 - s) of s = sigmoid(a), without an exp that overflows. */
#define CROSS_ENTROPY(T, a, b) (fmax((a), (T)(0.0f)) - (a) * (b) + log1p(exp(-fabs(a))))
#define CROSS_ENTROPY_A(T, a, b) (SIGMOID(T, a, 0) - (b))
#define CROSS_ENTROPY_B(T, a, b) (-(a))

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

/* y = f(a, b) */
#define FORWARD(name, f)                                                                           \
    ELEMENT_KERNEL name(__global const TYPE(A) *a, ulong a_at, __global const TYPE(B) *b,          \
                        ulong b_at, __global float *y, ulong y_at, ulong n)                        \
    {                                                                                              \
        a += a_at;                                                                                 \
        b += b_at;                                                                                 \
        y += y_at;                                                                                 \
        ulong i = get_global_id(0) * (ulong)QN_V;                                                  \
        if (i + QN_V <= n) {                                                                       \
            const floatv u = LDV(A, a, i), v = LDV(B, b, i);                                       \
            STV(F, y, i, f(floatv, u, v));                                                         \
            return;                                                                                \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const float u = LD(A, a, i), v = LD(B, b, i);                                          \
            ST(F, y, i, f(float, u, v));                                                           \
        }                                                                                          \
    }

/* d = beta * d + f(a, b) * dy, where f may leave b out */
#define GRADIENT(name, f)                                                                          \
    ELEMENT_KERNEL name(__global const TYPE(A) *a, ulong a_at, __global const TYPE(B) *b,          \
                        ulong b_at, __global const float *dy, ulong dy_at, __global TYPE(D) *d,    \
                        ulong d_at, ulong n, float beta)                                           \
    {                                                                                              \
        a += a_at;                                                                                 \
        b += b_at;                                                                                 \
        dy += dy_at;                                                                               \
        d += d_at;                                                                                 \
        ulong i = get_global_id(0) * (ulong)QN_V;                                                  \
        if (i + QN_V <= n) {                                                                       \
            const floatv u = LDV(A, a, i), v = LDV(B, b, i);                                       \
            (void)v;                                                                               \
            ACCV(D, d, i, beta, f(floatv, u, v) * LDV(F, dy, i));                                  \
            return;                                                                                \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const float u = LD(A, a, i), v = LD(B, b, i);                                          \
            (void)v;                                                                               \
            ACC(D, d, i, beta, f(float, u, v) * LD(F, dy, i));                                     \
        }                                                                                          \
    }

FORWARD(squared_error_forward, SQUARED)
GRADIENT(squared_error_a, SQUARED_A)
GRADIENT(squared_error_b, SQUARED_B)

FORWARD(absolute_error_forward, ABSOLUTE)
GRADIENT(absolute_error_a, ABSOLUTE_A)
GRADIENT(absolute_error_b, ABSOLUTE_B)

FORWARD(binary_cross_entropy_forward, CROSS_ENTROPY)
GRADIENT(binary_cross_entropy_a, CROSS_ENTROPY_A)
GRADIENT(binary_cross_entropy_b, CROSS_ENTROPY_B)
