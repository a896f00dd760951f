/* SPDX-License-Identifier: MIT
 *
 * Planes of h x w pixels become planes of oh x ow. Pixel d of a side of the result lies between
 * those of the argument at (d * step + shift) / den, or at 0 if that is less: whole numbers, so
 * that the forward and the backward pass agree about every place and share. With QN_BILINEAR 1 the
 * result is a blend of the pixels before and behind that place, with 0 it is the one before.
 *
 * The backward pass is a gather: each input pixel sums over the output pixels that read it.
 */
#include "lib/type.clh"

#ifndef X_TYPE
#define X_TYPE f32
#endif
#ifndef Y_TYPE
#define Y_TYPE f32
#endif

#define PIXEL_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

typedef struct side {
    int in, out, step, shift, den;
    float unit; /* 1 / den */
} side;

#define SIDES                                                                                      \
    int h, int oh, int y_step, int y_shift, int y_den, int w, int ow, int x_step, int x_shift,     \
        int x_den
#define ROWS {h, oh, y_step, y_shift, y_den, 1.0f / (float)y_den}
#define COLUMNS {w, ow, x_step, x_shift, x_den, 1.0f / (float)x_den}

/* The place of pixel d, times den. */
static inline int place_of(side s, int d)
{
    return max(d * s.step + s.shift, 0);
}

/* The first pixel of the result with a place of at least i, for i from -1 on. */
static inline int first_from(side s, int i)
{
    const int least = i * s.den - s.shift;
    return i <= 0 || least <= 0 ? 0 : min((least - 1) / s.step + 1, s.out);
}

#if QN_BILINEAR
/* The share of the pixel behind a place that is `rest` / den behind a pixel. */
#define SHARE(s, rest) ((float)(rest) * (s).unit)
#define BLEND(before, behind, share) ((before) * (1.0f - (share)) + (behind) * (share))
#else
#define SHARE(s, rest) 0.0f
#define BLEND(before, behind, share) (before)
#endif

/* The output pixels first .. last - 1 of a side are all that read input pixel i. */
static inline void find_readers(side s, int i, int *first, int *last)
{
    *first = first_from(s, i - QN_BILINEAR);
    *last = first_from(s, i + 1);
}

/* The share of input pixel i in output pixel d, one of its readers. */
static inline float share_in(side s, int i, int d)
{
    const int rest = place_of(s, d) - i * s.den;
    if (rest < 0)
        return SHARE(s, rest + s.den);
    return i + 1 < s.in ? 1.0f - SHARE(s, rest) : 1.0f;
}

/* The output pixel (oy, ox) of the plane x. */
static inline float pixel_at(__global const TYPE(X) *x, side rows, side columns, int oy, int ox)
{
    const int down = place_of(rows, oy), across = place_of(columns, ox);
    const int top = down / rows.den, left = across / columns.den;
    __global const TYPE(X) *upper = x + (ulong)top * columns.in;
#if QN_BILINEAR
    const int below = min(top + 1, rows.in - 1), right = min(left + 1, columns.in - 1);
    const float beside = SHARE(columns, across - left * columns.den);
    __global const TYPE(X) *lower = x + (ulong)below * columns.in;
    const float a = BLEND(LD(X, upper, left), LD(X, upper, right), beside);
    const float b = BLEND(LD(X, lower, left), LD(X, lower, right), beside);
    return BLEND(a, b, SHARE(rows, down - top * rows.den));
#else
    return LD(X, upper, left);
#endif
}

/* A work-item per output pixel. */
PIXEL_KERNEL forward_gpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                         ulong planes, SIDES)
{
    const side rows = ROWS, columns = COLUMNS;
    x += x_at;
    y += y_at;
    const ulong at = get_global_id(0), size = (ulong)oh * ow, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), oy = rest / ow;
    ST(Y, y, at, pixel_at(x + plane * h * w, rows, columns, oy, rest - oy * ow));
}

/* The gradient of the input pixel (iy, ix) from the plane dy. */
static inline float readers_sum(__global const TYPE(Y) *dy, side rows, side columns, int iy, int ix)
{
    int top, bottom, left, right;
    find_readers(rows, iy, &top, &bottom);
    find_readers(columns, ix, &left, &right);
    float sum = 0.0f;
    for (int oy = top; oy < bottom; oy++) {
        float row = 0.0f;
        for (int ox = left; ox < right; ox++)
            row = FMA(share_in(columns, ix, ox), LD(Y, dy, (ulong)oy * columns.out + ox), row);
        sum = FMA(share_in(rows, iy, oy), row, sum);
    }
    return sum;
}

/* dx (X) from dy (Y): a work-item per input pixel. */
PIXEL_KERNEL backward_gpu(__global const TYPE(Y) *dy, ulong dy_at, __global TYPE(X) *dx,
                          ulong dx_at, ulong planes, SIDES, float beta)
{
    const side rows = ROWS, columns = COLUMNS;
    dy += dy_at;
    dx += dx_at;
    const ulong at = get_global_id(0), size = (ulong)h * w, plane = at / size;
    if (plane >= planes)
        return;
    const int rest = (int)(at - plane * size), iy = rest / w;
    const float g = readers_sum(dy + plane * oh * ow, rows, columns, iy, rest - iy * w);
    ACC(X, dx, at, beta, g);
}

/* --- rows by vectors --- */

/* Most pixels of a row that are looked at together, as src/ops/upsample2d.c knows; the input pixels
 * between their places are at most 3 more. */
#define BLOCK 256

#define LOAD(p) QN_PASTE(vload, QN_V)(0, p)
#define SAVE(v, p) QN_PASTE(vstore, QN_V)(v, 0, p)

/* p[at[0]], p[at[1]], ... */
#define PICK4(p, at) (float4)((p)[(at)[0]], (p)[(at)[1]], (p)[(at)[2]], (p)[(at)[3]])
#define PICK8(p, at) (float8)(PICK4(p, at), PICK4(p, (at) + 4))
#define PICK16(p, at) (float16)(PICK8(p, at), PICK8(p, (at) + 8))
#define PICK(p, at) QN_PASTE(PICK, QN_V)(p, at)

/* n pixels of two rows blended, and the last one again: at the edge it is behind itself. */
static inline void blend_rows(__global const TYPE(X) *upper, __global const TYPE(X) *lower, int n,
                              float share, float *line)
{
    int k = 0;
    for (; k + QN_V <= n; k += QN_V)
        SAVE(BLEND(LDV(X, upper, k), LDV(X, lower, k), share), line + k);
    for (; k < n; k++)
        line[k] = BLEND(LD(X, upper, k), LD(X, lower, k), share);
    line[n] = line[n - 1];
}

/* A work-item per `span` rows of the result, of which it does `block` columns at a time. */
ROW_KERNEL forward_cpu(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                       ulong planes, SIDES, int block, int span)
{
    const side rows = ROWS, columns = COLUMNS;
    const ulong first = get_global_id(0) * span, last = min(planes * oh, first + span);
    float line[BLOCK + 4], share[BLOCK];
    int left[BLOCK];
    x += x_at;
    y += y_at;
    for (int from = 0; from < ow; from += block) {
        const int count = min(block, ow - from), low = place_of(columns, from) / x_den;
        for (int j = 0; j < count; j++) {
            const int across = place_of(columns, from + j), at = across / x_den;
            left[j] = at - low;
            share[j] = SHARE(columns, across - at * x_den);
        }
        const int n = min(left[count - 1] + 2, w - low);
        for (ulong row = first; row < last; row++) {
            const ulong plane = row / oh, to = row * ow + from;
            const int down = place_of(rows, (int)(row - plane * oh)), top = down / y_den;
            const ulong upper = (plane * h + top) * w + low;
            const ulong lower = (plane * h + min(top + 1, h - 1)) * w + low;
            blend_rows(x + upper, x + lower, n, SHARE(rows, down - top * y_den), line);
            int j = 0;
            for (; j + QN_V <= count; j += QN_V)
                STV(Y, y, to + j,
                    BLEND(PICK(line, left + j), PICK(line + 1, left + j), LOAD(share + j)));
            for (; j < count; j++)
                ST(Y, y, to + j, BLEND(line[left[j]], line[left[j] + 1], share[j]));
        }
    }
}

/* The sum of columns from .. from + n - 1 of the output rows that read input row iy. */
static inline void sum_rows(__global const TYPE(Y) *dy, side rows, int iy, int ow, int from, int n,
                            float *line)
{
    int top, bottom;
    find_readers(rows, iy, &top, &bottom);
    for (int k = 0; k < n; k++)
        line[k] = 0.0f;
    for (int oy = top; oy < bottom; oy++) {
        __global const TYPE(Y) *row = dy + (ulong)oy * ow + from;
        const float share = share_in(rows, iy, oy);
        int k = 0;
        for (; k + QN_V <= n; k += QN_V)
            SAVE(FMA((floatv)(share), LDV(Y, row, k), LOAD(line + k)), line + k);
        for (; k < n; k++)
            line[k] = FMA(share, LD(Y, row, k), line[k]);
    }
}

/* A work-item per `span` rows of dx (X). Output pixels and their places ascend together: it takes
 * the former in turn and keeps the sums of the two input pixels that they lie between. */
ROW_KERNEL backward_cpu(__global const TYPE(Y) *dy, ulong dy_at, __global TYPE(X) *dx, ulong dx_at,
                        ulong planes, SIDES, int span, float beta)
{
    const side rows = ROWS, columns = COLUMNS;
    const ulong first = get_global_id(0) * span, last = min(planes * h, first + span);
    float line[BLOCK];
    dy += dy_at;
    dx += dx_at;
    for (ulong row = first; row < last; row++) {
        const ulong plane = row / h, to = row * w;
        float before = 0.0f, behind = 0.0f;
        int ix = 0, edge = x_den; /* the place behind ix */
        for (int from = 0; from < ow; from += BLOCK) {
            const int n = min(BLOCK, ow - from);
            sum_rows(dy + plane * oh * ow, rows, (int)(row - plane * h), ow, from, n, line);
            for (int j = 0; j < n; j++) {
                const int across = place_of(columns, from + j);
                for (; across >= edge; edge += x_den, ix++) {
                    ACC(X, dx, to + ix, beta, before);
                    before = behind;
                    behind = 0.0f;
                }
                before += BLEND(line[j], 0.0f, SHARE(columns, across - edge + x_den));
                behind += BLEND(0.0f, line[j], SHARE(columns, across - edge + x_den));
            }
        }
        for (; ix < w; ix++) {
            ACC(X, dx, to + ix, beta, ix + 1 < w ? before : before + behind);
            before = behind;
            behind = 0.0f;
        }
    }
}
