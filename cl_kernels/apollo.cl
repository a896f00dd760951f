/* SPDX-License-Identifier: MIT
 *
 * APOLLO-Mini (Zhu et al. 2024, arXiv:2412.05270), APOLLO of rank 1: of one matrix p (rows, n) with
 * the gradient g, Adam's moments of the projection of g on a random vector, and one factor of the
 * whole gradient:
 *
 *   q = the sum of x_i * g_ij along the shorter side, x standard normal
 *   m, v = Adam's moments of q,  a = m' / (sqrt(v') + eps), m' and v' without their bias
 *   s = |a| / |q|, but no more than gives |s * g| <= 1.01 * that of the update before
 *   p = (1 - rate * decay) * p - rate * sqrt(128) * s * g
 *
 * x is drawn anew every 200 updates, with counters (update / 200, number of the parameter's first
 * chunk, ALL_NODES - 1, element / 4), so that nothing is stored of it.
 */
#include "lib/whole.clh"

#define UPDATES_OF_A_DRAW 200u
#define SCALE 11.3137085f /* sqrt(128) */
#define GROWTH 1.01f

#ifdef QN_SPAN
/* part (blocks, n): the sums of x_i * g_ij along the columns of each block of rows. squares
 * (blocks, items): those of g^2 over all that a work-item sees of a block. */
GROUP_KERNEL project_columns(__global const float *gradient, ulong gradient_at,
                             __global const uint *control, ulong control_at,
                             __global const float *x, ulong x_at, __global float *part,
                             ulong part_at, __global float *squares, ulong squares_at, ulong rows,
                             ulong n, ulong items)
{
    QN_STRIP;
    const float scale = QN_CONTROL_READ(control, control_at)->grad_scale;
    gradient += gradient_at;
    x += x_at;
    part += part_at;
    squares += squares_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1)) {
        const ulong end = min(rows, (block + 1) * QN_BLOCK);
        floatv sums[QN_SPAN], square = (floatv)(0.0f);
        for (ulong k = first; k < last; k += step)
            sums[(k - first) / QN_V] = (floatv)(0.0f);
        for (ulong row = block * QN_BLOCK; row < end; row++) {
            const floatv weight = (floatv)(LD(F, x, row));
            for (ulong k = first; k < last; k += step) {
                const floatv g = QN_GET(F, gradient, row * n + k) * scale;
                sums[(k - first) / QN_V] = FMA(weight, g, sums[(k - first) / QN_V]);
                square = FMA(g, g, square);
            }
        }
        for (ulong k = first; k < last; k += step)
            QN_PUT(PART, part, block * n + k, sums[(k - first) / QN_V]);
        ST(F, squares, block * items + item, vectors ? qn_hadd(square) : square.s0);
    }
}
#else
/* Two normal numbers from two words: Box-Muller. */
static inline float2 normal(uint2 word)
{
    const float radius = sqrt(-2.0f * log(1.0f - qn_unit(word.x)));
    const float angle = 2.0f * qn_unit(word.y);
    return radius * (float2)(cospi(angle), sinpi(angle));
}

/* x, of m numbers; a work-item for four of them. */
GROUP_KERNEL draw(__global const int *table, ulong table_at, __global const uint *control,
                  ulong control_at, __global float *x, ulong x_at, ulong m)
{
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_at(table + table_at, 0, now);
    const ulong four = get_global_id(0), at = four * 4;
    const uint4 word = qn_philox((uint4)(now->update / UPDATES_OF_A_DRAW, chunk.dice.y,
                                         ALL_NODES - 1, (uint)four),
                                 chunk.dice.key);
    const float2 some = normal(word.xy), others = normal(word.zw);
    const float all[4] = {some.x, some.y, others.x, others.y};
    x += x_at;
    for (ulong i = at; i < min(m, at + 4); i++)
        ST(F, x, i, all[i - at]);
}

/* The sums of x_j * g_j and of g^2 along a row, this work-item's share. */
static inline float2 project_row(__global const float *gradient, __global const float *x,
                                 float scale, ulong n, uint lane, uint lanes)
{
    floatv sums = (floatv)(0.0f), squares = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += lanes * QN_V) {
        const floatv g = LDV(F, gradient, i) * scale;
        sums = FMA(LDV(F, x, i), g, sums);
        squares = FMA(g, g, squares);
    }
    float2 sum = (float2)(qn_hadd(sums), qn_hadd(squares));
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float g = LD(F, gradient, i) * scale;
        sum += (float2)(LD(F, x, i) * g, g * g);
    }
    return sum;
}

/* q of a matrix with more rows than columns, and the sums of g^2 along rows. */
GROUP_KERNEL project_rows(__global const float *gradient, ulong gradient_at,
                          __global const uint *control, ulong control_at, __global const float *x,
                          ulong x_at, __global float *q, ulong q_at, __global float *squares,
                          ulong squares_at, ulong rows, ulong n, uint lanes, uint span)
{
    __local float part[QN_WG];
    const float scale = QN_CONTROL_READ(control, control_at)->grad_scale;
    TEAM_ROWS;
    gradient += gradient_at;
    q += q_at;
    squares += squares_at;
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams;
        float2 own = (float2)(0.0f);
        if (row < rows)
            own = project_row(gradient + row * n, x + x_at, scale, n, lane, lanes);
        const float sum = qn_team_sum(own.x, part, lanes);
        const float square = qn_team_sum(own.y, part, lanes);
        if (lane == 0 && row < rows) {
            ST(F, q, row, sum);
            ST(F, squares, row, square);
        }
    }
}

/* A single work-group: m and v of q, which has `length` numbers; the factor of the gradient, from
 * the `count` parts of the sum of g^2 and from |s * g| of the update before, 0 if there is none. */
GROUP_KERNEL moments(__global const int *table, ulong table_at, __global const uint *control,
                     ulong control_at, __global const float *q, ulong q_at,
                     __global const float *squares, ulong squares_at, __global float *first,
                     ulong first_at, __global float *second, ulong second_at,
                     __global float *before, ulong before_at, __global float *factor,
                     ulong factor_at, ulong length, ulong count, float beta1, float beta2,
                     float rest1, float rest2, float eps)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    if (now->skip)
        return;
    const struct chunk chunk = chunk_at(table + table_at, 0, now);
    const float root = sqrt(now->bias2);
    q += q_at;
    first += first_at;
    second += second_at;
    before += before_at;
    float of_a = 0.0f, of_q = 0.0f;
    for (ulong i = get_local_id(0); i < length; i += QN_WG) {
        const float own = LD(F, q, i);
        const float m = FMA(beta1, LD(F, first, i), rest1 * own);
        const float v = FMA(beta2, LD(F, second, i), rest2 * own * own);
        const float a = m / now->bias1 / (sqrt(v) / root + eps);
        ST(F, first, i, m);
        ST(F, second, i, v);
        of_a = FMA(a, a, of_a);
        of_q = FMA(own, own, of_q);
    }
    of_a = qn_group_sum(of_a, part);
    of_q = qn_group_sum(of_q, part);
    const float of_g = group_total(squares + squares_at, count, part);
    if (get_local_id(0) != 0)
        return;
    const float s = of_q > 0.0f ? sqrt(of_a) / sqrt(of_q) : 0.0f;
    const float old = LD(F, before, 0), size = s * sqrt(of_g);
    const float most = old > 0.0f ? fmin(size, GROWTH * old) : size;
    ST(F, before, 0, most);
    ST(F, factor + factor_at, 0, size > 0.0f ? chunk.rate * SCALE * s * (most / size) : 0.0f);
}

/* A work-group per chunk: the new parameter. */
GROUP_KERNEL apply(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                   ulong gradient_at, __global const int *table, ulong table_at,
                   __global const uint *control, ulong control_at, __global const float *factor,
                   ulong factor_at, __global TYPE(P) * out, ulong out_at)
{
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const ulong first = get_group_id(0) * (ulong)CHUNK;
    const struct chunk chunk = chunk_of(table + table_at, now);
    const ulong n = chunk.n;
    p += p_at + first;
    gradient += gradient_at + first;
    out += out_at + first;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const float step = LD(F, factor + factor_at, 0) * now->grad_scale;
    const float shrink = 1.0f - chunk.rate * chunk.decay;
    for (ulong i = get_local_id(0) * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv g = LDV(F, gradient, i);
        QN_STV_AT_RANDOM(P, out, i, FMA((floatv)(-step), g, LDV(P, p, i) * shrink), chunk.dice);
    }
    for (ulong i = n - n % QN_V + get_local_id(0); i < n; i += QN_WG)
        QN_ST_AT_RANDOM(P, out, i, FMA(-step, LD(F, gradient, i), LD(P, p, i) * shrink),
                        chunk.dice);
}
#endif
