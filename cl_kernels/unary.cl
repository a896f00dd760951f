/* SPDX-License-Identifier: MIT
 *
 * Elementwise functions of one tensor, and their gradients. One kernel an operator and direction; a
 * work-item handles QN_V neighbouring elements, the last one what is left of them. Outputs may lie
 * in the place of inputs. */
#include "lib/activation.clh"

/* y = f(x) */
#define FORWARD(NAME, F)                                                                           \
    __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void NAME(                            \
        __global const TYPE(X) * x, ulong x_at, __global TYPE(Y) * y, ulong y_at, ulong n,         \
        float a)                                                                                   \
    {                                                                                              \
        const ulong first = get_global_id(0) * QN_V;                                               \
        x += x_at;                                                                                 \
        y += y_at;                                                                                 \
        if (first + QN_V <= n) {                                                                   \
            const floatv v = LDV(X, x, first);                                                     \
            const floatv result = F(floatv, v, a);                                                 \
            STV(Y, y, first, result);                                                              \
            return;                                                                                \
        }                                                                                          \
        for (ulong i = first; i < n; i++) {                                                        \
            const float v = LD(X, x, i);                                                           \
            const float result = F(float, v, a);                                                   \
            ST(Y, y, i, result);                                                                   \
        }                                                                                          \
    }

/* dx = beta * dx + f'(v) * dy */
#define GRADIENT(NAME, F)                                                                          \
    __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void NAME(                            \
        __global const TYPE(DY) * dy, ulong dy_at, __global const TYPE(V) * values, ulong v_at,    \
        __global TYPE(DX) * dx, ulong dx_at, ulong n, float a, float beta)                         \
    {                                                                                              \
        const ulong first = get_global_id(0) * QN_V;                                               \
        dy += dy_at;                                                                               \
        values += v_at;                                                                            \
        dx += dx_at;                                                                               \
        if (first + QN_V <= n) {                                                                   \
            const floatv d = LDV(DY, dy, first), v = LDV(V, values, first);                        \
            const floatv result = F(floatv, d, v, a);                                              \
            ACCV(DX, dx, first, beta, result);                                                     \
            return;                                                                                \
        }                                                                                          \
        for (ulong i = first; i < n; i++) {                                                        \
            const float d = LD(DY, dy, i), v = LD(V, values, i);                                   \
            const float result = F(float, d, v, a);                                                \
            ACC(DX, dx, i, beta, result);                                                          \
        }                                                                                          \
    }

#define SAME(T, v, a) (v)

#ifdef QN_GRADIENT
GRADIENT(relu_gradient, RELU_GRADIENT)
GRADIENT(leaky_relu_gradient, LEAKY_RELU_GRADIENT)
GRADIENT(sigmoid_gradient, SIGMOID_GRADIENT)
GRADIENT(tanh_gradient, TANH_GRADIENT)
GRADIENT(gelu_gradient, GELU_GRADIENT)
GRADIENT(gelu_tanh_gradient, GELU_TANH_GRADIENT)
GRADIENT(silu_gradient, SILU_GRADIENT)
GRADIENT(hardswish_gradient, HARDSWISH_GRADIENT)
#else
FORWARD(relu_forward, RELU)
FORWARD(leaky_relu_forward, LEAKY_RELU)
FORWARD(sigmoid_forward, SIGMOID)
FORWARD(tanh_forward, TANH)
FORWARD(gelu_forward, GELU)
FORWARD(gelu_tanh_forward, GELU_TANH)
FORWARD(silu_forward, SILU)
FORWARD(hardswish_forward, HARDSWISH)
FORWARD(cast, SAME)
#endif
