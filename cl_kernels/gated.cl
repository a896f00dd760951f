/* SPDX-License-Identifier: MIT
 *
 * Gated forms of two tensors of one shape: y = f(gate) * x, where f is the activation QN_FORM of
 * lib/activation.clh. A work-item handles QN_V neighbouring elements, the last one what is left of
 * them. Outputs may lie in the place of inputs.
 */
#include "lib/activation.clh"

#define F(T, v) QN_FORM(T, v, 0)
#define F_GRADIENT(T, d, v) QN_PASTE(QN_FORM, _GRADIENT)(T, d, v, 0)

#ifndef QN_GRADIENT
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
forward(__global const TYPE(G) *gate, ulong gate_at, __global const TYPE(X) *x, ulong x_at,
        __global TYPE(Y) *y, ulong y_at, ulong n)
{
    const ulong first = get_global_id(0) * QN_V;
    gate += gate_at;
    x += x_at;
    y += y_at;
    if (first + QN_V <= n) {
        const floatv g = LDV(G, gate, first), v = LDV(X, x, first);
        const floatv result = F(floatv, g) * v;
        STV(Y, y, first, result);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float g = LD(G, gate, i), v = LD(X, x, i);
        const float result = F(float, g) * v;
        ST(Y, y, i, result);
    }
}

#else
/* The gradients of the gate, with QN_DG, and of x, with QN_DX, each beta * what was there + g. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
backward(__global const TYPE(DY) *dy, ulong dy_at, __global const TYPE(G) *gate, ulong gate_at,
         __global const TYPE(X) *x, ulong x_at, __global TYPE(DG) *dgate, ulong dgate_at,
         __global TYPE(DX) *dx, ulong dx_at, ulong n, float beta_gate, float beta_x)
{
    const ulong first = get_global_id(0) * QN_V;
    dy += dy_at;
    gate += gate_at;
    x += x_at;
    dgate += dgate_at;
    dx += dx_at;
    if (first + QN_V <= n) {
        const floatv d = LDV(DY, dy, first), g = LDV(G, gate, first), v = LDV(X, x, first);
        const floatv own = F_GRADIENT(floatv, d * v, g), other = d * F(floatv, g);
        if (QN_DG)
            ACCV(DG, dgate, first, beta_gate, own);
        if (QN_DX)
            ACCV(DX, dx, first, beta_x, other);
        return;
    }
    for (ulong i = first; i < n; i++) {
        const float d = LD(DY, dy, i), g = LD(G, gate, i), v = LD(X, x, i);
        const float own = F_GRADIENT(float, d * v, g), other = d * F(float, g);
        if (QN_DG)
            ACC(DG, dgate, i, beta_gate, own);
        if (QN_DX)
            ACC(DX, dx, i, beta_x, other);
    }
}
#endif
