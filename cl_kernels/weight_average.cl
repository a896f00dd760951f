/* SPDX-License-Identifier: MIT
 *
 * The exponential moving average of parameters: average = decay * average + rest * p over all
 * elements, after an update that was not skipped. `rest` is 1 - decay, computed by the host in
 * double. A work-item handles QN_V neighbouring elements, the last one what is left of them. `out`
 * may lie in the place of `average`. Build option CORRECTED: 1: parameters have corrections, 0:
 * these are absent and never touched.
 */
#include "lib/control.clh"
#include "lib/correction.clh"

#define F_TYPE f32
#define C_TYPE u8

static inline floatv vector_at(__global const TYPE(P) * p, __global const uchar *correction,
                               ulong i)
{
    const floatv stored = LDV(P, p, i);
    return CORRECTED ? qn_corrected_vector(stored, LDV(C, correction, i)) : stored;
}

static inline float one_at(__global const TYPE(P) * p, __global const uchar *correction, ulong i)
{
    const float stored = LD(P, p, i);
    return CORRECTED ? qn_corrected_one(stored, LD(C, correction, i)) : stored;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
weight_average(__global const TYPE(P) * p, ulong p_at, __global const uchar *correction,
               ulong correction_at, __global const float *average, ulong average_at,
               __global const uint *control, ulong control_at, __global float *out, ulong out_at,
               ulong n, float decay, float rest)
{
    const bool skip = QN_CONTROL_READ(control, control_at)->skip;
    const float keep = skip ? 1.0f : decay, take = skip ? 0.0f : rest;
    const ulong first = get_global_id(0) * QN_V;
    p += p_at;
    correction += CORRECTED ? correction_at : 0;
    average += average_at;
    out += out_at;
    if (first + QN_V <= n) {
        const floatv new_ = vector_at(p, correction, first);
        STV(F, out, first, FMA((floatv)(keep), LDV(F, average, first), take * new_));
        return;
    }
    for (ulong i = first; i < n; i++)
        ST(F, out, i, FMA(keep, LD(F, average, i), take * one_at(p, correction, i)));
}
