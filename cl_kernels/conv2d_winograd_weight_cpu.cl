/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of convolutions of 3 x 3 taps with stride and dilation 1 by
 * Winograd's F(3 x 3, 2 x 2) (lib/winograd.clh), for CPUs.
 *
 * A work-item makes QN_DEPTH input channels of QN_WIDE vectors of output channels from one part of
 * the tiles, QN_ROW tiles at a time. QN_MR divides QN_DEPTH; QN_NR divides QN_WIDE. Both operands
 * have the type of S.
 *
 * Options: QN_NARROW  that of lib/winograd_narrow.clh where planes are narrow, else 0
 */
#include "lib/conv2d_winograd.clh"
#if QN_NARROW
#include "lib/winograd_narrow.clh"
#endif
#include "lib/conv2d_block.clh"

#define COLUMNS (QN_V * QN_WIDE)

/* Vectors from one point to the next of the transformed gradient: odd, as PANEL_STEP. */
#define GRADIENT_STEP (QN_ROW * QN_WIDE + 1)

#if QN_NARROW

/* Transforms 2 x 2 elements of each tile, of QN_V channels. */
static inline void narrow_gradient(__local floatv *gradient, __local const floatv *stage,
                                   const int *place)
{
    for (int n = 0; n < QN_ROW; n++, place += 4) {
        const floatv d4[4] = {stage[place[0]], stage[place[1]], stage[place[2]], stage[place[3]]};
        floatv point[POINTS];
        winograd_tile(point, d4);
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            gradient[p * GRADIENT_STEP + n * QN_WIDE] = point[p];
    }
}

#else

/* Packs and transforms QN_V channels from `channel` on, of which `channels` exist. */
static inline void pack_gradient(__local floatv *gradient, __local float *stage,
                                 __global const TYPE(S) * d, const conv_pixels *tile, int channel,
                                 int channels, conv_source source)
{
    for (int i = 0; i < min(channels, QN_V); i++)
        pack_window(stage + i * STAGE_ROW, QN_V * STAGE_ROW, d, tile, channel + i, 2, source);
    for (int i = 0; i < 4 * QN_V; i++)
        conv_clear(stage + i * STAGE_ROW + tile->lanes, QN_ROW - tile->lanes);
    for (int n = 0; n < QN_ROW; n += QN_V) {
        floatv turned[4][QN_V];
        for (int p = 0; p < 4; p++) {
#pragma unroll
            for (int i = 0; i < QN_V; i++)
                turned[p][i] = QN_PASTE(vload, QN_V)(0, stage + (p * QN_V + i) * STAGE_ROW + n);
            qn_transpose(turned[p]);
        }
        for (int i = 0; i < QN_V; i++) {
            const floatv d4[4] = {turned[0][i], turned[1][i], turned[2][i], turned[3][i]};
            floatv point[POINTS];
            winograd_tile(point, d4);
#pragma unroll
            for (int p = 0; p < POINTS; p++)
                gradient[p * GRADIENT_STEP + (n + i) * QN_WIDE] = point[p];
        }
    }
}

#endif

/* sum += image * gradient of one point: QN_MR input channels x QN_NR vectors of output channels. */
static inline void multiply(__local floatv *sum, __local const float *panel,
                            __local const floatv *gradient)
{
    floatv a[QN_MR][QN_NR];
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < QN_NR; j++)
            a[i][j] = (floatv)(0.0f);
    for (int n = 0; n < QN_ROW; n++)
#pragma unroll
        for (int i = 0; i < QN_MR; i++)
#pragma unroll
            for (int j = 0; j < QN_NR; j++)
                a[i][j] = FMA((floatv)(panel[i * QN_ROW + n]), gradient[n * QN_WIDE + j], a[i][j]);
#pragma unroll
    for (int i = 0; i < QN_MR; i++)
#pragma unroll
        for (int j = 0; j < QN_NR; j++)
            sum[i * QN_WIDE + j] += a[i][j];
}

/* A' m A of one input channel and a vector of output channels: the nine taps. */
static inline void transform_sum(__local floatv *tap, __local const floatv *m)
{
    floatv sum[POINTS], gradient[TAPS];
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        sum[p] = m[p * QN_DEPTH * QN_WIDE];
    winograd_gradient(gradient, sum);
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        tap[t] = gradient[t];
}

/* Work-groups: (input channels / QN_DEPTH, output channels / (QN_WIDE * QN_V), parts). Part p of
 * the tiles goes to copy p of the weights, from w on. The image has `depth` of the weights'
 * `inputs` channels, those from input0 on. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv2d_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(S) * d, ulong d_at,
              __global TYPE(W) * w, ulong w_at, float beta, int batch, int groups, int depth,
              int channels, int sh, int sw, int dh, int dw, int kh, int kw, int stride_y,
              int stride_x, int padding_y, int padding_x, int dilation_y, int dilation_x,
              ulong part_tiles, int inputs, int input0)
{
#if QN_NARROW
    __local floatv stage[QN_NARROW + 1];
    int place[QN_ROW * POINTS];
#else
    __local float stage[4 * QN_V * STAGE_ROW];
    conv_pixels tile;
#endif
    __local floatv panel[POINTS * PANEL_STEP];
    __local floatv gradient[POINTS * GRADIENT_STEP];
    __local floatv sum[POINTS * QN_DEPTH * QN_WIDE];
    s += s_at;
    d += d_at;
    w += w_at;
    const conv_axis v = {(dh + 1) / 2, 4, 0, 1, -padding_y, 2, 1, 0, 2};
    const conv_axis h = {(dw + 1) / 2, 4, 0, 1, -padding_x, 2, 1, 0, 2};
    const conv_axis down = {v.count, 2, 0, 1, 0, 2, 1, 0, 2};
    const conv_axis across = {h.count, 2, 0, 1, 0, 2, 1, 0, 2};
    const ulong image = (ulong)depth * sh * sw, plane = (ulong)channels * dh * dw;
    const conv_source source = {batch * image, image, 0, sh, sw};
    const conv_source result = {batch * plane, plane, 0, dh, dw};
    const int row0 = get_group_id(0) * QN_DEPTH, rows = min(QN_DEPTH, depth - row0);
    const int column0 = get_group_id(1) * COLUMNS, columns = min(COLUMNS, channels - column0);
    const ulong start = get_group_id(2) * part_tiles;
    const ulong end = min(start + part_tiles, (ulong)batch * v.count * h.count);
#if QN_NARROW
    stage[QN_NARROW] = (floatv)(0.0f);
#else
    conv_clear(stage, 4 * QN_V * STAGE_ROW);
#endif
    conv_clear((__local float *)panel, POINTS * PANEL_STEP * QN_V);
    conv_clear((__local float *)gradient, POINTS * GRADIENT_STEP * QN_V);
    conv_clear((__local float *)sum, POINTS * QN_DEPTH * QN_WIDE * QN_V);
    for (ulong first = start; first < end; first += QN_ROW) {
        const int lanes = (int)min((ulong)QN_ROW, end - first);
#if QN_NARROW
        narrow_images met = narrow_find(place, first, lanes, 2, down, across, result);
        for (int j = 0; j * QN_V < columns; j++) {
            narrow_stage(stage, d, column0 + j * QN_V, columns - j * QN_V, met, result);
            narrow_gradient(gradient + j, stage, place);
        }
        met = narrow_find(place, first, lanes, 4, v, h, source);
        for (int i = 0; i < rows; i += QN_V) {
            narrow_stage(stage, s, row0 + i, rows - i, met, source);
            narrow_source(panel + i * QN_NV, stage, place);
        }
#else
        conv_find_pixels(&tile, first, lanes, down, across, result);
        for (int j = 0; j * QN_V < columns; j++)
            pack_gradient(gradient + j, stage, d, &tile, column0 + j * QN_V, columns - j * QN_V,
                          result);
        conv_find_pixels(&tile, first, lanes, v, h, source);
        for (int i = 0; i < rows; i++) {
            pack_window(stage, STAGE_ROW, s, &tile, row0 + i, 4, source);
            for (int p = 0; p < POINTS; p++)
                conv_clear(stage + p * STAGE_ROW + lanes, QN_ROW - lanes);
            for (int j = 0; j < QN_NV; j++)
                transform_source(panel + i * QN_NV + j, stage + j * QN_V);
        }
#endif
        for (int p = 0; p < POINTS; p++)
            for (int i = 0; i < rows; i += QN_MR)
                for (int j = 0; j * QN_V < columns; j += QN_NR)
                    multiply(sum + (p * QN_DEPTH + i) * QN_WIDE + j,
                             (__local const float *)(panel + p * PANEL_STEP + i * QN_NV),
                             gradient + p * GRADIENT_STEP + j);
    }
    /* The memory of `panel` is free now: it takes the taps of one vector of output channels. */
    const int terms = rows * TAPS;
    const ulong step = (ulong)inputs * TAPS;
    w += (get_group_id(2) * (ulong)channels + column0) * step + (input0 + row0) * TAPS;
    for (int j = 0; j < columns; j += QN_V) {
        for (int i = 0; i < rows; i++)
            transform_sum(panel + i * TAPS, sum + i * QN_WIDE + j / QN_V);
        for (int k = 0; k < terms; k += QN_V)
            conv_store_block(w, j * step + k, step, panel + k, 1, min(QN_V, columns - j),
                             min(QN_V, terms - k), beta);
    }
}
