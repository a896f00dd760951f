/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient descent whose momentum is kept in 8 bits: the optimizer of blockwise.c. Each
 * SHARED elements of a chunk share a scale, the largest magnitude among them; code c of an element
 * stands for (c - 128) / 127 of its scale. The step takes the momentum before it is rounded.
 */
#include "lib/control.clh"
#include "lib/reduce.clh"

#define SHARED 256
#define SCALES_OF_A_CHUNK 16
#define F_TYPE f32
#define T_TYPE i32

/* Where the elements of one scale lie, and what the update is made with. */
typedef struct {
    __global const float *p, *gradient;
    __global uchar *codes;
    __global float *out;
    ulong n;
    float rate, momentum, gradient_scale, decay;
} share;

static inline float moved(const share *s, ulong i, float unit)
{
    const float g = fma(s->decay, s->p[i], s->gradient[i] * s->gradient_scale);
    return fma(s->momentum, ((float)s->codes[i] - 128.0f) * unit, g);
}

/* Gives the new scale. */
static inline float update(const share *s, float scale, __local float *part)
{
    const ulong lane = get_local_id(0);
    const float unit = scale / 127.0f;
    float top = 0.0f;
    for (ulong i = lane; i < s->n; i += QN_WG)
        top = fmax(top, fabs(moved(s, i, unit)));
    top = qn_group_max(top, part);
    for (ulong i = lane; i < s->n; i += QN_WG) {
        const float m = moved(s, i, unit);
        s->out[i] = fma(-s->rate, m, s->p[i]);
        s->codes[i] = convert_uchar_sat_rte(top > 0.0f ? m / top * 127.0f + 128.0f : 128.0f);
    }
    return top;
}

__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
blockwise(__global const float *p, ulong p_at, __global const float *gradient, ulong gradient_at,
          __global const int *table, ulong table_at, __global const uint *control, ulong control_at,
          __global uchar *codes, ulong codes_at, __global float *scales, ulong scales_at,
          __global float *out, ulong out_at, float momentum)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const ulong chunk = get_group_id(0), row = table_at + chunk * QN_CHUNK_NUMBERS;
    const ulong first = LDI(T, table, row), n = LDI(T, table, row + 1);
    p += p_at + first;
    out += out_at + first;
    if (now->skip) {
        for (ulong i = get_local_id(0); i < n; i += QN_WG)
            out[i] = p[i];
        return;
    }
    scales += scales_at + chunk * SCALES_OF_A_CHUNK;
    for (ulong begin = 0; begin < n; begin += SHARED, scales++) {
        const share s = {p + begin,
                         gradient + gradient_at + first + begin,
                         codes + codes_at + first + begin,
                         out + begin,
                         min(n - begin, (ulong)SHARED),
                         now->lr * as_float((int)LDI(T, table, row + 3)),
                         momentum,
                         now->grad_scale,
                         now->weight_decay * as_float((int)LDI(T, table, row + 4))};
        const float scale = update(&s, *scales, part);
        if (get_local_id(0) == 0)
            *scales = scale;
    }
}
