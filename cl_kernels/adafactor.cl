/* SPDX-License-Identifier: MIT
 *
 * Adafactor (Shazeer and Stern 2018, arXiv:1804.04235) without a first moment, of one parameter p
 * with the gradient g, in the update number t, of which w = t^-0.8:
 *
 *   r_i = (1 - w) * r_i + w * (mean along row i of g^2 + eps)      of a matrix (rows, n)
 *   c_j = (1 - w) * c_j + w * (mean along column j of g^2 + eps)
 *   u_ij = g_ij / sqrt(r_i * c_j / mean(r))
 *
 *   v_i = (1 - w) * v_i + w * (g_i^2 + eps),  u_i = g_i / sqrt(v_i)  of a vector
 *
 *   alpha = max(0.001, rms(p)) * min(rate, 1 / sqrt(t)),  p = (1 - rate * decay) * p
 *           - alpha / max(1, rms(u)) * u
 *
 * where rms is the root of the mean square, of p before the update. What one launch finds of the
 * whole for the next ones is in `known`: 1 / mean(r), alpha, alpha / max(1, rms(u)). Matrices are
 * rounded stochastically row by row, with counters (update, number of the parameter's first chunk,
 * ALL_NODES - 1 - row, element of the row / 4); a vector is one row.
 */
#include "lib/whole.clh"

#define LEAST_SIZE 1e-3f
#define LEAST_SQUARE 1e-37f /* so that no 0 is divided by 0 */

enum known { INVERSE_MEAN, ALPHA, STEP };

#ifdef QN_SPAN
/* part (blocks, n): the sums of g^2 along the columns of each block of rows. */
GROUP_KERNEL measure_columns(__global const float *gradient, ulong gradient_at,
                     __global const uint *control, ulong control_at, __global float *part,
                     ulong part_at, ulong rows, ulong n)
{
    QN_STRIP;
    const float scale = QN_CONTROL_READ(control, control_at)->grad_scale;
    gradient += gradient_at;
    part += part_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1)) {
        const ulong end = min(rows, (block + 1) * QN_BLOCK);
        floatv sums[QN_SPAN];
        for (ulong k = first; k < last; k += step)
            sums[(k - first) / QN_V] = (floatv)(0.0f);
        for (ulong row = block * QN_BLOCK; row < end; row++)
            for (ulong k = first; k < last; k += step) {
                const floatv g = QN_GET(F, gradient, row * n + k) * scale;
                sums[(k - first) / QN_V] = FMA(g, g, sums[(k - first) / QN_V]);
            }
        for (ulong k = first; k < last; k += step)
            QN_PUT(PART, part, block * n + k, sums[(k - first) / QN_V]);
    }
}
#else
/* The share of this update in a second moment. */
static inline float share_of(__global const qn_control *now)
{
    return exp(-0.8f * log((float)now->counted));
}

static inline float alpha_of(float mean_square, float rate, __global const qn_control *now)
{
    return fmax(LEAST_SIZE, sqrt(mean_square)) * fmin(rate, rsqrt((float)now->counted));
}

#define DEFINE_FORMULAS(real, suffix)                                                              \
    static inline real moved_##suffix(real moment, real square, float share)                       \
    {                                                                                              \
        return FMA((real)(share), square, (1.0f - share) * moment);                                \
    }                                                                                              \
    static inline real step_##suffix(real g, real moment)                                          \
    {                                                                                              \
        return g * rsqrt(fmax(moment, (real)(LEAST_SQUARE)));                                      \
    }
DEFINE_FORMULAS(float, one)
DEFINE_FORMULAS(floatv, vector)

static inline struct qn_dice dice_of(const struct chunk *chunk, ulong row)
{
    struct qn_dice dice = chunk->dice;
    dice.z = ALL_NODES - 1 - (uint)row;
    return dice;
}

/* --- matrices --- */

/* The sums of g^2 and of p^2 along a row, this work-item's share. */
static inline float2 row_squares(__global const float *gradient, __global const TYPE(P) * p,
                                 float scale, ulong n, uint lane, uint lanes)
{
    floatv of_g = (floatv)(0.0f), of_p = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += lanes * QN_V) {
        const floatv g = LDV(F, gradient, i) * scale, old = LDV(P, p, i);
        of_g = FMA(g, g, of_g);
        of_p = FMA(old, old, of_p);
    }
    float2 sum = (float2)(qn_hadd(of_g), qn_hadd(of_p));
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float g = LD(F, gradient, i) * scale, old = LD(P, p, i);
        sum += (float2)(g * g, old * old);
    }
    return sum;
}

/* r, and the sums of p^2 along rows. */
GROUP_KERNEL measure_rows(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                  ulong gradient_at, __global const uint *control, ulong control_at,
                  __global float *r, ulong r_at, __global float *squares, ulong squares_at,
                  ulong rows, ulong n, uint lanes, uint span, float eps)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    TEAM_ROWS;
    if (now->skip)
        return;
    const float scale = now->grad_scale, share = share_of(now);
    p += p_at;
    gradient += gradient_at;
    r += r_at;
    squares += squares_at;
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams, at = row * n;
        float2 own = (float2)(0.0f);
        if (row < rows)
            own = row_squares(gradient + at, p + at, scale, n, lane, lanes);
        const float of_g = qn_team_sum(own.x, part, lanes);
        const float of_p = qn_team_sum(own.y, part, lanes);
        if (lane == 0 && row < rows) {
            ST(F, r, row, moved_one(LD(F, r, row), of_g / (float)n + eps, share));
            ST(F, squares, row, of_p);
        }
    }
}

/* A single work-group: c, from the sums of g^2 along columns; 1 / mean(r); alpha. */
GROUP_KERNEL measure_whole(__global const int *table, ulong table_at, __global const uint *control,
                     ulong control_at, __global const float *r, ulong r_at, __global float *c,
                     ulong c_at, __global const float *squares, ulong squares_at,
                     __global const float *sums, ulong sums_at, __global float *known,
                     ulong known_at, ulong rows, ulong n, float eps)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    if (now->skip)
        return;
    const float share = share_of(now);
    c += c_at;
    sums += sums_at;
    for (ulong j = get_local_id(0); j < n; j += QN_WG)
        ST(F, c, j, moved_one(LD(F, c, j), LD(F, sums, j) / (float)rows + eps, share));
    const float of_r = group_total(r + r_at, rows, part);
    const float of_p = group_total(squares + squares_at, rows, part);
    if (get_local_id(0) != 0)
        return;
    const float rate = chunk_at(table + table_at, 0, now).rate;
    known += known_at;
    ST(F, known, INVERSE_MEAN, (float)rows / of_r);
    ST(F, known, ALPHA, alpha_of(of_p / (float)rows / (float)n, rate, now));
}

/* The sum of u^2 along a row, this work-item's share. r: r_i / mean(r). */
static inline float row_steps(__global const float *gradient, __global const float *c, float r,
                              float scale, ulong n, uint lane, uint lanes)
{
    floatv sums = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += lanes * QN_V) {
        const floatv u = step_vector(LDV(F, gradient, i) * scale, r * LDV(F, c, i));
        sums = FMA(u, u, sums);
    }
    float sum = qn_hadd(sums);
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float u = step_one(LD(F, gradient, i) * scale, r * LD(F, c, i));
        sum = FMA(u, u, sum);
    }
    return sum;
}

/* The sums of u^2 along rows. */
GROUP_KERNEL measure_steps(__global const float *gradient, ulong gradient_at,
                   __global const uint *control, ulong control_at, __global const float *r,
                   ulong r_at, __global const float *c, ulong c_at, __global const float *known,
                   ulong known_at, __global float *squares, ulong squares_at, ulong rows, ulong n,
                   uint lanes, uint span)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    TEAM_ROWS;
    if (now->skip)
        return;
    gradient += gradient_at;
    r += r_at;
    squares += squares_at;
    const float inverse = LD(F, known + known_at, INVERSE_MEAN);
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams;
        float own = 0.0f;
        if (row < rows)
            own = row_steps(gradient + row * n, c + c_at, LD(F, r, row) * inverse, now->grad_scale,
                            n, lane, lanes);
        const float sum = qn_team_sum(own, part, lanes);
        if (lane == 0 && row < rows)
            ST(F, squares, row, sum);
    }
}

/* A single work-group: alpha / max(1, rms(u)). */
GROUP_KERNEL limit(__global const uint *control, ulong control_at, __global const float *squares,
                   ulong squares_at, __global float *known, ulong known_at, ulong rows, ulong n)
{
    __local float part[QN_WG];
    if (QN_CONTROL_READ(control, control_at)->skip)
        return;
    const float size = sqrt(group_total(squares + squares_at, rows, part) / (float)rows / (float)n);
    known += known_at;
    if (get_local_id(0) == 0)
        ST(F, known, STEP, LD(F, known, ALPHA) / fmax(1.0f, size));
}

/* How a row moves: r_i / mean(r), and the factors of gradient, step and parameter. */
struct pace {
    float r, scale, step, shrink;
};

static inline void apply_row(__global const TYPE(P) * p, __global const float *gradient,
                             __global const float *c, __global TYPE(P) * out, struct pace pace,
                             ulong n, uint lane, uint lanes, struct qn_dice dice)
{
    for (ulong i = lane * QN_V; i + QN_V <= n; i += lanes * QN_V) {
        const floatv u = step_vector(LDV(F, gradient, i) * pace.scale, pace.r * LDV(F, c, i));
        QN_STV_AT_RANDOM(P, out, i, FMA((floatv)(-pace.step), u, LDV(P, p, i) * pace.shrink), dice);
    }
    for (ulong i = n - n % QN_V + lane; i < n; i += lanes) {
        const float u = step_one(LD(F, gradient, i) * pace.scale, pace.r * LD(F, c, i));
        QN_ST_AT_RANDOM(P, out, i, FMA(-pace.step, u, LD(P, p, i) * pace.shrink), dice);
    }
}

/* The new parameter. */
GROUP_KERNEL apply(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                   ulong gradient_at, __global const int *table, ulong table_at,
                   __global const uint *control, ulong control_at, __global const float *r,
                   ulong r_at, __global const float *c, ulong c_at, __global const float *known,
                   ulong known_at, __global TYPE(P) * out, ulong out_at, ulong rows, ulong n,
                   uint lanes, uint span)
{
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    TEAM_ROWS;
    const struct chunk chunk = chunk_at(table + table_at, 0, now);
    struct pace pace = {0.0f, now->grad_scale, 0.0f, 1.0f - chunk.rate * chunk.decay};
    p += p_at;
    gradient += gradient_at;
    r += r_at;
    known += known_at;
    out += out_at;
    for (ulong row = first; row < min(rows, first + span * teams); row += teams) {
        const ulong at = row * n;
        if (now->skip) {
            for (ulong i = lane; i < n; i += lanes)
                ST(P, out, at + i, LD(P, p, at + i));
            continue;
        }
        pace.r = LD(F, r, row) * LD(F, known, INVERSE_MEAN);
        pace.step = LD(F, known, STEP);
        apply_row(p + at, gradient + at, c + c_at, out + at, pace, n, lane, lanes,
                  dice_of(&chunk, row));
    }
}

/* --- vectors --- */

/* v; the sums of u^2 and of p^2, this work-item's share. */
static inline float2 vector_squares(__global const TYPE(P) * p, __global const float *gradient,
                                    __global float *v, float scale, float share, float eps, ulong n)
{
    const ulong lane = get_local_id(0);
    floatv of_u = (floatv)(0.0f), of_p = (floatv)(0.0f);
    for (ulong i = lane * QN_V; i + QN_V <= n; i += QN_WG * QN_V) {
        const floatv g = LDV(F, gradient, i) * scale, old = LDV(P, p, i);
        const floatv moment = moved_vector(LDV(F, v, i), FMA(g, g, (floatv)(eps)), share);
        const floatv u = step_vector(g, moment);
        STV(F, v, i, moment);
        of_u = FMA(u, u, of_u);
        of_p = FMA(old, old, of_p);
    }
    float2 sum = (float2)(qn_hadd(of_u), qn_hadd(of_p));
    for (ulong i = n - n % QN_V + lane; i < n; i += QN_WG) {
        const float g = LD(F, gradient, i) * scale, old = LD(P, p, i);
        const float moment = moved_one(LD(F, v, i), FMA(g, g, eps), share);
        const float u = step_one(g, moment);
        ST(F, v, i, moment);
        sum += (float2)(u * u, old * old);
    }
    return sum;
}

/* A single work-group: v and the new parameter. */
GROUP_KERNEL vector(__global const TYPE(P) * p, ulong p_at, __global const float *gradient,
                    ulong gradient_at, __global const int *table, ulong table_at,
                    __global const uint *control, ulong control_at, __global float *v, ulong v_at,
                    __global TYPE(P) * out, ulong out_at, ulong n, float eps)
{
    __local float part[QN_WG];
    __global const qn_control *now = QN_CONTROL_READ(control, control_at);
    const struct chunk chunk = chunk_at(table + table_at, 0, now);
    p += p_at;
    gradient += gradient_at;
    v += v_at;
    out += out_at;
    if (now->skip) {
        hand_on(p, out, n);
        return;
    }
    const float2 own =
        vector_squares(p, gradient, v, now->grad_scale, share_of(now), eps, n);
    const float size = sqrt(qn_group_sum(own.x, part) / (float)n);
    const float alpha = alpha_of(qn_group_sum(own.y, part) / (float)n, chunk.rate, now);
    const struct pace pace = {1.0f, now->grad_scale, alpha / fmax(1.0f, size),
                              1.0f - chunk.rate * chunk.decay};
    apply_row(p, gradient, v, out, pace, n, get_local_id(0), QN_WG, dice_of(&chunk, 0));
}
#endif
