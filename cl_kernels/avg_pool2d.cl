/* SPDX-License-Identifier: MIT
 *
 * Average pooling of planes h x w to oh x ow. The window is fixed per program, as in max pooling.
 * QN_EXCLUDE 1: divides by the elements of the window inside the plane, else by all of them.
 */
#include "lib/type.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#ifndef Y_TYPE
#define Y_TYPE f32
#endif

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
#define PLANE_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

/* 1 / divisor of the window whose first row and column are `top` and `left`. */
static inline float window_share(int h, int w, int top, int left)
{
    if (!QN_EXCLUDE)
        return 1.0f / (float)(QN_KH * QN_KW);
    const int rows = min(top + QN_KH, h) - max(top, 0);
    const int columns = min(left + QN_KW, w) - max(left, 0);
    return 1.0f / (float)(rows * columns);
}

static inline float window_mean(__global const TYPE(X) *x, int h, int w, int oy, int ox)
{
    const int top = oy * QN_SH - QN_PH, left = ox * QN_SW - QN_PW;
    const int y1 = min(top + QN_KH, h), x1 = min(left + QN_KW, w);
    float sum = 0.0f;
    for (int iy = max(top, 0); iy < y1; iy++)
        for (int ix = max(left, 0); ix < x1; ix++)
            sum += LD(X, x, (ulong)iy * w + ix);
    return sum * window_share(h, w, top, left);
}

/* A work-item per output element. */
ELEMENT_KERNEL forward_gpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                           ulong planes, int h, int w, int oh, int ow)
{
    x += x_at;
    y += y_at;
    const ulong at = get_global_id(0), size = (ulong)oh * ow, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), oy = rest / ow;
    ST(Y, y, at, window_mean(x + plane * h * w, h, w, oy, rest - oy * ow));
}

/* A work-item per `span` planes. */
PLANE_KERNEL forward_cpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                         ulong planes, int h, int w, int oh, int ow, int span)
{
    x += x_at;
    y += y_at;
    const ulong first = get_global_id(0) * span, last = min(planes, first + span);
    ulong at = first * oh * ow;
    for (ulong plane = first; plane < last; plane++)
        for (int oy = 0; oy < oh; oy++)
            for (int ox = 0; ox < ow; ox++, at++)
                ST(Y, y, at, window_mean(x + plane * h * w, h, w, oy, ox));
}

/* The gradient of the input element (iy, ix) of a plane: the sum over the windows that cover it. */
static inline float covering_sum(__global const TYPE(Y) *dy, int h, int w, int oh, int ow, int iy,
                                 int ix)
{
    const int bottom = iy + QN_PH, right = ix + QN_PW;
    const int y0 = bottom < QN_KH ? 0 : (bottom - QN_KH) / QN_SH + 1;
    const int x0 = right < QN_KW ? 0 : (right - QN_KW) / QN_SW + 1;
    const int y1 = min(bottom / QN_SH, oh - 1), x1 = min(right / QN_SW, ow - 1);
    float sum = 0.0f;
    for (int oy = y0; oy <= y1; oy++)
        for (int ox = x0; ox <= x1; ox++) {
            const float share = window_share(h, w, oy * QN_SH - QN_PH, ox * QN_SW - QN_PW);
            sum = FMA(LD(Y, dy, (ulong)oy * ow + ox), share, sum);
        }
    return sum;
}

/* dx (X) from dy (Y): a work-item per input element. */
ELEMENT_KERNEL backward_gpu(__global const TYPE(Y) *dy, ulong dy_at, __global TYPE(X) *dx,
                            ulong dx_at, ulong planes, int h, int w, int oh, int ow, float beta)
{
    dy += dy_at;
    dx += dx_at;
    const ulong at = get_global_id(0), size = (ulong)h * w, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), iy = rest / w;
    const float g = covering_sum(dy + plane * oh * ow, h, w, oh, ow, iy, rest - iy * w);
    ACC(X, dx, at, beta, g);
}

/* A work-item per `span` planes. */
PLANE_KERNEL backward_cpu(__global const TYPE(Y) *dy, ulong dy_at, __global TYPE(X) *dx,
                          ulong dx_at, ulong planes, int h, int w, int oh, int ow, int span,
                          float beta)
{
    dy += dy_at;
    dx += dx_at;
    const ulong first = get_global_id(0) * span, last = min(planes, first + span);
    ulong at = first * h * w;
    for (ulong plane = first; plane < last; plane++)
        for (int iy = 0; iy < h; iy++)
            for (int ix = 0; ix < w; ix++, at++)
                ACC(X, dx, at, beta, covering_sum(dy + plane * oh * ow, h, w, oh, ow, iy, ix));
}
