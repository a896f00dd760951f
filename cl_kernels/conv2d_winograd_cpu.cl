/* SPDX-License-Identifier: MIT
 *
 * Convolutions of 3 x 3 taps with stride and dilation 1 by Winograd's F(2 x 2, 3 x 3)
 * (lib/winograd.clh), for CPUs.
 *
 * Options: QN_NARROW  that of lib/winograd_narrow.clh where planes are narrow, else 0
 */
#include "lib/conv2d_winograd.clh"
#if QN_NARROW
#include "lib/winograd_narrow.clh"
#endif

/* Transforms the weights of `rows` channels to make. The order of u: row block of QN_V rows, point,
 * channel of the source, row of the row block; rows past the end repeat the last one. Work-groups:
 * (row blocks, channels of the source / QN_CHANNELS). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_winograd_weights(__global const TYPE(W) * w, ulong w_at, __global float *u, ulong u_at,
                        int row0, int rows, int depth, ulong row_step, ulong depth_step, int turned)
{
    const int block = get_group_id(0), first = get_group_id(1) * QN_CHANNELS;
    w += w_at;
    u += u_at + (ulong)block * POINTS * depth * QN_V;
    for (int c = first; c < min(first + QN_CHANNELS, depth); c++) {
        float tap[TAPS][QN_V];
        for (int i = 0; i < QN_V; i++) {
            const ulong at = (row0 + min(block * QN_V + i, rows - 1)) * row_step + c * depth_step;
            for (int t = 0; t < TAPS; t++)
                tap[turned ? TAPS - 1 - t : t][i] = LD(W, w, at + t);
        }
        floatv point[POINTS];
        winograd_taps(point, (const floatv *)tap);
        for (int p = 0; p < POINTS; p++)
            QN_PASTE(vstore, QN_V)(point[p], 0, u + ((ulong)p * depth + c) * QN_V);
    }
}

/* Adds the products of one point over `depth` channels of the source to QN_MR rows x QN_NR vectors
 * of sums, which are POINTS rows apart. */
static inline void multiply(__local floatv *sum, __local const floatv *panel,
                            __global const float *u, int depth, bool first)
{
    floatv a[QN_MR][QN_NR];
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < QN_NR; j++)
            a[i][j] = (floatv)(0.0f);
    for (int c = 0; c < depth; c++)
#pragma unroll
        for (int i = 0; i < QN_MR; i++)
#pragma unroll
            for (int j = 0; j < QN_NR; j++)
                a[i][j] = FMA((floatv)(u[c * QN_V + i]), panel[c * QN_NV + j], a[i][j]);
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < QN_NR; j++) {
            __local floatv *to = sum + i * POINTS * QN_NV + j;
            *to = first ? a[i][j] : *to + a[i][j];
        }
}

/* A' m A of one vector of tiles, as two lines of neighbouring pixels. */
static inline void transform_sum(float *line, __local const floatv *m, float bias)
{
    floatv sum[POINTS], made[4];
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        sum[p] = m[p * QN_NV];
    winograd_made(made, sum);
#pragma unroll
    for (int y = 0; y < 2; y++) {
        const floatv left = made[2 * y] + bias, right = made[2 * y + 1] + bias;
        float *to = line + y * 2 * QN_ROW;
        QN_PASTE(vstore, QN_V)(QN_PASTE(QN_LOW, QN_V)(left, right), 0, to);
        QN_PASTE(vstore, QN_V)(QN_PASTE(QN_HIGH, QN_V)(left, right), 1, to);
    }
}

/* Neighbours in one row of tiles: the number `lane` of the first tile among the tiles of the
 * work-item, its first element `at`, and how many of their elements exist across and down. */
typedef struct {
    int lane, across, down;
    ulong at;
} tile_span;

static inline int find_spans(tile_span *span, ulong first, int lanes, conv_axis v, conv_axis h,
                             int dh, int dw, ulong image)
{
    conv_position position = conv_position_at(first, v.count, h.count);
    int count = 0;
    for (int lane = 0; lane < lanes; count++) {
        const int here = min(h.count - position.column, lanes - lane);
        const int y = 2 * position.row, x = 2 * position.column;
        span[count].lane = lane;
        span[count].across = min(2 * here, dw - x);
        span[count].down = min(2, dh - y);
        span[count].at = position.image * image + (ulong)y * dw + x;
        lane += here;
        position = conv_next_row(position, v);
    }
    return count;
}

static inline void store_spans(__global TYPE(D) * d, ulong at, const float *line,
                               const tile_span *span, int spans, int dw, float beta)
{
    for (int n = 0; n < spans; n++)
        for (int y = 0; y < span[n].down; y++) {
            const float *value = line + 2 * (y * QN_ROW + span[n].lane);
            const ulong to = at + span[n].at + (ulong)y * dw;
            int i = 0;
            for (; i + QN_V <= span[n].across; i += QN_V)
                ACCV(D, d, to + i, beta, QN_PASTE(vload, QN_V)(0, value + i));
            for (; i < span[n].across; i++)
                ACC(D, d, to + i, beta, value[i]);
        }
}

/* Makes `rows` of `channels` channels, from row0 on, with their transformed weights u. The first
 * `front` channels of the source are in s, the others in t. Element (y, x) made meets source rows
 * y - top .. y - top + 2 and columns x - left .. x - left + 2. Work-groups: (tiles / QN_ROW, rows /
 * QN_BLOCK). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_winograd(__global const TYPE(S) * s, ulong s_at, __global const TYPE(S) * t, ulong t_at,
                __global const float *u, ulong u_at, __global const TYPE(B) * b, ulong b_at,
                __global TYPE(D) * d, ulong d_at, int has_bias, float beta, int batch, int depth,
                int front, int channels, int sh, int sw, int dh, int dw, int top, int left,
                int row0, int rows)
{
#if QN_NARROW
    __local floatv stage[QN_NARROW + 1];
    int place[QN_ROW * POINTS];
#else
    __local float stage[POINTS * STAGE_ROW];
    conv_pixels tile;
#endif
    __local floatv panel[POINTS * PANEL_STEP];
    __local floatv sum[QN_BLOCK * POINTS * QN_NV];
    float line[4 * QN_ROW];
    tile_span span[QN_ROW];
    s += s_at;
    t += t_at;
    b += b_at;
    d += d_at;
    const conv_axis v = {(dh + 1) / 2, 4, 0, 1, -top, 2, 1, 0, 2};
    const conv_axis h = {(dw + 1) / 2, 4, 0, 1, -left, 2, 1, 0, 2};
    const ulong plane = (ulong)dh * dw;
    const ulong tiles = (ulong)batch * v.count * h.count, first = get_group_id(0) * (ulong)QN_ROW;
    const int lanes = (int)min((ulong)QN_ROW, tiles - first);
    const int block0 = get_group_id(1) * QN_BLOCK, here = min(QN_BLOCK, rows - block0);
    const int images = front < depth ? 2 : 1;
    u += u_at + (ulong)block0 * POINTS * depth;
#if QN_NARROW
    stage[QN_NARROW] = (floatv)(0.0f);
#else
    conv_clear(stage, POINTS * STAGE_ROW);
#endif
    for (int n = 0; n < images; n++) {
        const int before = n ? front : 0, own = n ? depth - front : front;
        const conv_source source = conv_source_of(batch, 1, 0, own, sh, sw);
#if QN_NARROW
        const narrow_images met = narrow_find(place, first, lanes, 4, v, h, source);
#else
        conv_find_pixels(&tile, first, lanes, v, h, source);
#endif
        for (int c = 0; c < own; c += QN_DEPTH) {
            const int terms = min(QN_DEPTH, own - c);
#if QN_NARROW
            for (int i = 0; i < terms; i += QN_V) {
                narrow_stage(stage, n ? t : s, c + i, terms - i, met, source);
                narrow_source(panel + i * QN_NV, stage, place);
            }
#else
            for (int i = 0; i < terms; i++) {
                pack_window(stage, STAGE_ROW, n ? t : s, &tile, c + i, 4, source);
                for (int j = 0; j < QN_NV; j++)
                    transform_source(panel + i * QN_NV + j, stage + j * QN_V);
            }
#endif
            for (int p = 0; p < POINTS; p++)
                for (int i = 0; i < here; i += QN_MR)
                    for (int j = 0; j * QN_V < lanes; j += QN_NR)
                        multiply(sum + (i * POINTS + p) * QN_NV + j, panel + p * PANEL_STEP + j,
                                 u + ((ulong)(i / QN_V * POINTS + p) * depth + before + c) * QN_V +
                                     i % QN_V,
                                 terms, before + c == 0);
        }
    }
    const int spans = find_spans(span, first, lanes, v, h, dh, dw, channels * plane);
    for (int i = 0; i < here; i++) {
        const int channel = row0 + block0 + i;
        const float bias = has_bias ? LD(B, b, (ulong)channel) : 0.0f;
        for (int j = 0; j * QN_V < lanes; j++)
            transform_sum(line + 2 * j * QN_V, sum + i * POINTS * QN_NV + j, bias);
        store_spans(d, channel * plane, line, span, spans, dw, beta);
    }
}
