/* SPDX-License-Identifier: MIT
 *
 * Max pooling of planes h x w to oh x ow. The window is fixed per program: QN_KH, QN_KW rows and
 * columns, strides QN_SH, QN_SW, padding QN_PH, QN_PW (at most half the window, so that every
 * window touches the plane).
 *
 * The first of equal values wins; NaN wins over everything (the last one, as in PyTorch). The place
 * inside the window, ky * QN_KW + kx, is kept for the backward pass, which is a gather: each input
 * element sums over the windows that cover it.
 */
#include "lib/shuffle.clh"
#include "lib/type.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#ifndef Y_TYPE
#define Y_TYPE f32
#endif
#ifndef DX_TYPE
#define DX_TYPE f32
#endif
#ifndef DY_TYPE
#define DY_TYPE f32
#endif
#ifndef INDEX_TYPE
#define INDEX_TYPE u8
#endif

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
#define PLANE_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

static inline bool is_nan(float v)
{
    return (as_uint(v) & 0x7fffffffu) > 0x7f800000u;
}

/* The largest value of the window at (oy, ox) of a plane, and its place. */
static inline float window_max(__global const TYPE(X) *x, int h, int w, int oy, int ox, int *place)
{
    const int top = oy * QN_SH - QN_PH, left = ox * QN_SW - QN_PW;
    const int y0 = max(-top, 0), y1 = min(QN_KH, h - top);
    const int x0 = max(-left, 0), x1 = min(QN_KW, w - left);
    float best = LD(X, x, (ulong)(top + y0) * w + (left + x0));
    int found = y0 * QN_KW + x0;
    for (int ky = y0; ky < y1; ky++)
        for (int kx = x0; kx < x1; kx++) {
            const float v = LD(X, x, (ulong)(top + ky) * w + (left + kx));
            const bool wins = v > best || is_nan(v);
            best = wins ? v : best;
            found = wins ? ky * QN_KW + kx : found;
        }
    *place = found;
    return best;
}

/* A work-item per output element. `index` is absent unless `keep`. */
ELEMENT_KERNEL forward_gpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                           __global TYPE(INDEX) *index, ulong index_at, ulong planes, int h, int w,
                           int oh, int ow, int keep)
{
    x += x_at;
    y += y_at;
    index += index_at;
    const ulong at = get_global_id(0), size = (ulong)oh * ow, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), oy = rest / ow;
    int place;
    ST(Y, y, at, window_max(x + plane * h * w, h, w, oy, rest - oy * ow, &place));
    if (keep)
        ST(INDEX, index, at, place);
}

/* QN_V neighbouring windows of a row at once, for column strides 1 and 2. */
#if QN_SW <= 2
#define QN_VECTORS 1

/* The even elements of a, then the odd ones of b; written out as in lib/shuffle.clh. */
#define even_odd4(a, b) (float4)(a.s0, a.s2, b.s1, b.s3)
#define even_odd8(a, b) (float8)(a.s0, a.s2, a.s4, a.s6, b.s1, b.s3, b.s5, b.s7)
#define even_odd16(a, b)                                                                           \
    (float16)(a.s0, a.s2, a.s4, a.s6, a.s8, a.sa, a.sc, a.se, b.s1, b.s3, b.s5, b.s7, b.s9, b.sb,  \
              b.sd, b.sf)

/* Every QN_SW-th element from x[i] on. */
static inline floatv strided(__global const TYPE(X) *x, ulong i)
{
#if QN_SW == 1
    return LDV(X, x, i);
#else
    const floatv low = LDV(X, x, i), high = LDV(X, x, i + QN_V - 1);
    return QN_PASTE(even_odd, QN_V)(low, high);
#endif
}

/* The largest values of the windows at (oy, ox) .. (oy, ox + QN_V - 1), all inside the plane's
 * columns, and their places. */
static inline floatv windows_max(__global const TYPE(X) *x, int h, int w, int oy, int ox,
                                 floatv *places)
{
    const int top = oy * QN_SH - QN_PH, left = ox * QN_SW - QN_PW;
    const int y0 = max(-top, 0), y1 = min(QN_KH, h - top);
    floatv best = strided(x, (ulong)(top + y0) * w + left);
    floatv found = (floatv)(y0 * QN_KW);
    for (int ky = y0; ky < y1; ky++)
        for (int kx = 0; kx < QN_KW; kx++) {
            const floatv v = strided(x, (ulong)(top + ky) * w + (left + kx));
            const intv nan = (QN_PASTE(as_int, QN_V)(v) & 0x7fffffff) > 0x7f800000;
            const intv wins = (v > best) | nan;
            best = select(best, v, wins);
            found = select(found, (floatv)(ky * QN_KW + kx), wins);
        }
    *places = found;
    return best;
}
#else
#define QN_VECTORS 0
#endif

static inline void store_window(__global const TYPE(X) *x, int h, int w, int oy, int ox, int keep,
                                __global TYPE(Y) *y, __global TYPE(INDEX) *index)
{
    int place;
    ST(Y, y, ox, window_max(x, h, w, oy, ox, &place));
    if (keep)
        ST(INDEX, index, ox, place);
}

/* One row of outputs; y and index point to it. The last vector may overlap the one before. */
static inline void row_max(__global const TYPE(X) *x, int h, int w, int oy, int ow, int keep,
                           __global TYPE(Y) *y, __global TYPE(INDEX) *index)
{
    int ox = 0;
#if QN_VECTORS
    const int first = (QN_PW + QN_SW - 1) / QN_SW, last = (w - QN_KW + QN_PW) / QN_SW + 1;
    if (w >= QN_KW && first + QN_V <= last) {
        for (; ox < first; ox++)
            store_window(x, h, w, oy, ox, keep, y, index);
        for (; ox < last; ox += QN_V) {
            const int at = min(ox, last - QN_V);
            floatv places;
            STV(Y, y, at, windows_max(x, h, w, oy, at, &places));
            if (keep)
                STV(INDEX, index, at, places);
        }
        ox = last;
    }
#endif
    for (; ox < ow; ox++)
        store_window(x, h, w, oy, ox, keep, y, index);
}

/* A work-item per `span` planes. */
PLANE_KERNEL forward_cpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                         __global TYPE(INDEX) *index, ulong index_at, ulong planes, int h, int w,
                         int oh, int ow, int keep, int span)
{
    x += x_at;
    y += y_at;
    index += index_at;
    const ulong first = get_global_id(0) * span, last = min(planes, first + span);
    for (ulong plane = first; plane < last; plane++)
        for (int oy = 0; oy < oh; oy++) {
            const ulong at = (plane * oh + oy) * ow;
            row_max(x + plane * h * w, h, w, oy, ow, keep, y + at, index + (keep ? at : 0));
        }
}

/* Rows and columns of windows that cover an element. Few are walked without a branch, so that all
 * they take is loaded at once. */
#define COVER_H ((QN_KH + QN_SH - 1) / QN_SH)
#define COVER_W ((QN_KW + QN_SW - 1) / QN_SW)
#if COVER_H * COVER_W <= 16
#define COVER_UNROLL 16
#else
#define COVER_UNROLL 1
#endif

/* The gradient of the input element (iy, ix) of a plane. */
static inline float covering_sum(__global const TYPE(DY) *dy, __global const TYPE(INDEX) *index,
                                 int oh, int ow, int iy, int ix)
{
    const int bottom = iy + QN_PH, right = ix + QN_PW;
    const int y0 = bottom < QN_KH ? 0 : (bottom - QN_KH) / QN_SH + 1;
    const int x0 = right < QN_KW ? 0 : (right - QN_KW) / QN_SW + 1;
    const int y1 = min(bottom / QN_SH, oh - 1), x1 = min(right / QN_SW, ow - 1);
    float sum = 0.0f;
#pragma unroll COVER_UNROLL
    for (int i = 0; i < COVER_H * COVER_W; i++) {
        const int oy = y0 + i / COVER_W, ox = x0 + i % COVER_W;
        const ulong at = (ulong)min(oy, y1) * ow + min(ox, x1);
        const int place = (bottom - oy * QN_SH) * QN_KW + (right - ox * QN_SW);
        const float gradient = LD(DY, dy, at);
        sum += oy <= y1 && ox <= x1 && LDI(INDEX, index, at) == place ? gradient : 0.0f;
    }
    return sum;
}

/* A work-item per input element. */
ELEMENT_KERNEL backward_gpu(__global const TYPE(DY) *dy, ulong dy_at,
                            __global const TYPE(INDEX) *index, ulong index_at,
                            __global TYPE(DX) *dx, ulong dx_at, ulong planes, int h, int w, int oh,
                            int ow, float beta)
{
    dy += dy_at;
    index += index_at;
    dx += dx_at;
    const ulong at = get_global_id(0), size = (ulong)h * w, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), iy = rest / w;
    const ulong out = plane * oh * ow;
    ACC(DX, dx, at, beta, covering_sum(dy + out, index + out, oh, ow, iy, rest - iy * w));
}

#if QN_VECTORS
/* The share of window column kx in the gradients of input elements whose windows of that column are
 * ox .. ox + QN_V - 1, all inside the plane. */
static inline floatv column_sum(__global const TYPE(DY) *dy, __global const TYPE(INDEX) *index,
                                int oh, int ow, int iy, int ox, int kx)
{
    const int bottom = iy + QN_PH;
    const int y0 = bottom < QN_KH ? 0 : (bottom - QN_KH) / QN_SH + 1;
    const int y1 = min(bottom / QN_SH, oh - 1);
    floatv sum = (floatv)(0.0f);
    for (int oy = y0; oy <= y1; oy++) {
        const ulong at = (ulong)oy * ow + ox;
        const float place = (float)((bottom - oy * QN_SH) * QN_KW + kx);
        const intv mine = LDV(INDEX, index, at) == place;
        sum += select((floatv)(0.0f), LDV(DY, dy, at), mine);
    }
    return sum;
}

/* The gradients of QN_SW * QN_V input elements from (iy, ix) on, where ix + QN_PW is a multiple of
 * QN_SW: element j of part k is that of ix + j * QN_SW + k. */
static inline void covering_sums(__global const TYPE(DY) *dy, __global const TYPE(INDEX) *index,
                                 int oh, int ow, int iy, int ix, floatv part[QN_SW])
{
    for (int k = 0; k < QN_SW; k++) {
        part[k] = (floatv)(0.0f);
        for (int kx = k; kx < QN_KW; kx += QN_SW)
            part[k] += column_sum(dy, index, oh, ow, iy, (ix + QN_PW + k - kx) / QN_SW, kx);
    }
}

static inline void store_sums(__global const TYPE(DY) *dy, __global const TYPE(INDEX) *index,
                              int oh, int ow, int iy, int ix, __global TYPE(DX) *dx, float beta)
{
    floatv part[QN_SW];
    covering_sums(dy, index, oh, ow, iy, ix, part);
#if QN_SW == 1
    ACCV(DX, dx, ix, beta, part[0]);
#else
    ACCV(DX, dx, ix, beta, QN_PASTE(QN_LOW, QN_V)(part[0], part[1]));
    ACCV(DX, dx, ix + QN_V, beta, QN_PASTE(QN_HIGH, QN_V)(part[0], part[1]));
#endif
}
#endif

/* One row of input elements; dx points to it. If nothing is accumulated the last vectors may
 * overlap those before. */
static inline void row_sums(__global const TYPE(DY) *dy, __global const TYPE(INDEX) *index, int w,
                            int oh, int ow, int iy, __global TYPE(DX) *dx, float beta)
{
    int ix = 0;
#if QN_VECTORS
    const int step = QN_SW * QN_V;
    const int first = (max(QN_KW - 1, QN_PW) + QN_SW - 1) / QN_SW * QN_SW - QN_PW;
    const int columns = min((w - step + QN_PW) / QN_SW, ow - QN_V);
    const int last = columns * QN_SW - QN_PW;
    if (w >= step && last >= first) {
        for (; ix < first; ix++)
            ACC(DX, dx, ix, beta, covering_sum(dy, index, oh, ow, iy, ix));
        for (; ix <= last; ix += step)
            store_sums(dy, index, oh, ow, iy, ix, dx, beta);
        if (beta == 0.0f && ix < last + step) {
            store_sums(dy, index, oh, ow, iy, last, dx, beta);
            ix = last + step;
        }
    }
#endif
    for (; ix < w; ix++)
        ACC(DX, dx, ix, beta, covering_sum(dy, index, oh, ow, iy, ix));
}

/* A work-item per `span` planes. */
PLANE_KERNEL backward_cpu(__global const TYPE(DY) *dy, ulong dy_at,
                          __global const TYPE(INDEX) *index, ulong index_at,
                          __global TYPE(DX) *dx, ulong dx_at, ulong planes, int h, int w, int oh,
                          int ow, int span, float beta)
{
    dy += dy_at;
    index += index_at;
    dx += dx_at;
    const ulong first = get_global_id(0) * span, last = min(planes, first + span);
    for (ulong plane = first; plane < last; plane++) {
        const ulong out = plane * oh * ow;
        for (int iy = 0; iy < h; iy++)
            row_sums(dy + out, index + out, w, oh, ow, iy, dx + (plane * h + iy) * w, beta);
    }
}
