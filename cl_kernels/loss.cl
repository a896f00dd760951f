/* SPDX-License-Identifier: MIT
 *
 * The end of a graph: the sum of the numerators of a loss, and the seed of its gradient.
 */
#include "lib/control.clh"
#include "lib/reduce.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#ifndef W_TYPE
#define W_TYPE f32
#endif
#ifndef DX_TYPE
#define DX_TYPE f32
#endif

/* A single work-group: loss[index] += sum of x * weight. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
sum(__global const TYPE(X) *x, ulong x_at, __global const TYPE(W) *weight, ulong weight_at,
    __global uint *control, ulong control_at, ulong n, int weighted, int index)
{
    __local float part[QN_WG];
    x += x_at;
    weight += weight_at;
    __global qn_control *now = QN_CONTROL(control, control_at);
    const ulong lane = get_local_id(0);
    floatv total = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv v = LDV(X, x, i);
        total += weighted ? v * LDV(W, weight, i) : v;
    }
    float rest = qn_hadd(total);
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG)
        rest += weighted ? LD(X, x, i) * LD(W, weight, i) : LD(X, x, i);
    rest = qn_group_sum(rest, part);
    if (lane == 0)
        now->loss[index] += rest;
}

/* A work-item per QN_V elements: dx = loss_seed[index] * loss_scale * weight. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
seed(__global const TYPE(W) *weight, ulong weight_at, __global const uint *control,
     ulong control_at, __global TYPE(DX) *dx, ulong dx_at, ulong n, int weighted, int index,
     float beta)
{
    weight += weight_at;
    dx += dx_at;
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const float seed_ = now->loss_seed[index] * now->loss_scale;
    ulong i = get_global_id(0) * (ulong)QN_V;
    if (i + QN_V <= n) {
        ACCV(DX, dx, i, beta, weighted ? seed_ * LDV(W, weight, i) : (floatv)(seed_));
        return;
    }
    for (; i < n; i++)
        ACC(DX, dx, i, beta, weighted ? seed_ * LD(W, weight, i) : seed_);
}
