/* SPDX-License-Identifier: MIT */
#include "data/resample.h"
#include "base/log.h"
#include "base/shape.h"

#include <math.h>
#include <stdlib.h>

/* Weights are multiples of 2^-22: with 8 bits of a pixel they fit 32. */
enum { WEIGHT_BITS = 22 };

/* What each pixel of the result takes along one axis: `count[i]` pixels from `first[i]` on, with
 * the weights from `weight[i * most]` on. */
struct taps {
    int n, most;
    int *first, *count;
    int32_t *weight;
};

/* How far the filter reaches to each side. */
static double reach(int in, int out)
{
    return in > out ? (double)in / out : 1;
}

static int most_taps(int in, int out)
{
    return (int)ceil(reach(in, out)) * 2 + 1;
}

/* Pixel `i` of `out` along an axis of `in`; `share` has the room for the weights before they are
 * rounded. The arithmetic is Pillow's (libImaging/Resample.c), operation by operation. */
static void aim(struct taps *taps, int to, int i, int in, int out, double *share)
{
    double support = reach(in, out), centre = (i + 0.5) * ((double)in / out), sum = 0;
    int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
    first = first < 0 ? 0 : first;
    end = end > in ? in : end;
    int count = end - first;
    for (int k = 0; k < count; k++) {
        double distance = fabs((k + first - centre + 0.5) * (1 / support));
        share[k] = distance < 1 ? 1 - distance : 0;
        sum += share[k];
    }
    int32_t *weight = taps->weight + (size_t)to * (size_t)taps->most;
    for (int k = 0; k < count; k++)
        weight[k] = (int32_t)(0.5 + share[k] / sum * (1 << WEIGHT_BITS));
    while (count > 1 && weight[count - 1] == 0)
        count--;
    taps->first[to] = first;
    taps->count[to] = count;
}

/* --- passes --- */

static uint8_t rounded(int32_t sum)
{
    int32_t value = sum >> WEIGHT_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

static size_t row_of(const struct qn_picture *picture)
{
    return (size_t)(picture->row ? picture->row : picture->size[1]);
}

/* Rows `top` .. `bottom` - 1 to the window's width, channels side by side. */
static void pass_along(uint8_t *to, const struct qn_picture *picture, const struct taps *x, int top,
                       int bottom)
{
    int channels = picture->channels;
    for (int y = top; y < bottom; y++) {
        const uint8_t *row = picture->pixels + (size_t)y * row_of(picture) * (size_t)channels;
        for (int i = 0; i < x->n; i++) {
            const int32_t *weight = x->weight + (size_t)i * (size_t)x->most;
            for (int c = 0; c < channels; c++) {
                const uint8_t *at = row + x->first[i] * channels + c;
                int32_t sum = 1 << (WEIGHT_BITS - 1);
                for (int k = 0; k < x->count[i]; k++)
                    sum += weight[k] * at[k * channels];
                *to++ = rounded(sum);
            }
        }
    }
}

/* One row of the result: `rows` are those of the first pass that it takes. */
static void pass_across(uint8_t *out, const uint8_t *rows, const int32_t *weight, int count,
                        int width, int channels, size_t plane, bool mirror)
{
    for (int x = 0; x < width; x++) {
        for (int c = 0; c < channels; c++) {
            const uint8_t *at = rows + x * channels + c;
            int32_t sum = 1 << (WEIGHT_BITS - 1);
            for (int k = 0; k < count; k++)
                sum += weight[k] * at[(size_t)k * (size_t)(width * channels)];
            out[(size_t)c * plane + (size_t)(mirror ? width - 1 - x : x)] = rounded(sum);
        }
    }
}

/* --- the whole --- */

/* What both passes need, in one piece of memory. */
struct work {
    struct taps taps[2]; /* along the height, along the width */
    double *share;
    uint8_t *rows; /* of the first pass */
    int top, bottom;
};

static int64_t taps_bytes(const struct taps *taps)
{
    int64_t numbers = qn_mul(taps->n, 2 + (int64_t)taps->most);
    return qn_mul(numbers, sizeof(int32_t));
}

static void *lay(struct taps *taps, void *at)
{
    taps->first = at;
    taps->count = taps->first + taps->n;
    taps->weight = (int32_t *)(taps->count + taps->n);
    return taps->weight + (size_t)taps->n * (size_t)taps->most;
}

/* The rows of the first pass are bounded by the height: which they are is known later. */
static bool make_work(struct work *work, const struct qn_picture *picture,
                      const struct qn_window *window, struct qn_room *room)
{
    for (int axis = 0; axis < 2; axis++) {
        work->taps[axis].n = window->size[axis];
        work->taps[axis].most = most_taps(picture->size[axis], window->full[axis]);
    }
    int most = work->taps[work->taps[1].most > work->taps[0].most].most;
    int64_t row = qn_mul(window->size[1], picture->channels);
    int64_t tables = qn_sum_of(taps_bytes(&work->taps[0]), taps_bytes(&work->taps[1]));
    int64_t bytes =
        qn_sum_of(qn_sum_of(tables, qn_mul(most, sizeof(double))), qn_mul(row, picture->size[0]));
    work->share = qn_room_take(room, bytes);
    if (!work->share)
        return false;
    work->rows = lay(&work->taps[1], lay(&work->taps[0], work->share + most));
    return true;
}

static void aim_all(struct work *work, const struct qn_picture *picture,
                    const struct qn_window *window)
{
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; i < window->size[axis]; i++)
            aim(&work->taps[axis], i, window->at[axis] + i, picture->size[axis], window->full[axis],
                work->share);
    const struct taps *y = &work->taps[0];
    work->top = y->first[0];
    for (int i = 0; i < y->n; i++)
        if (y->first[i] + y->count[i] > work->bottom)
            work->bottom = y->first[i] + y->count[i];
}

qn_status qn_resample(uint8_t *out, const struct qn_picture *picture,
                      const struct qn_window *window, struct qn_room *room)
{
    struct work work = {0};
    if (!make_work(&work, picture, window, room))
        return QN_ERR_MEMORY;
    aim_all(&work, picture, window);
    const struct taps *y = &work.taps[0];
    int width = window->size[1], channels = picture->channels;
    size_t plane = (size_t)width * (size_t)window->size[0], row = (size_t)(width * channels);
    pass_along(work.rows, picture, &work.taps[1], work.top, work.bottom);
    for (int i = 0; i < y->n; i++)
        pass_across(out + (size_t)i * (size_t)width,
                    work.rows + (size_t)(y->first[i] - work.top) * row,
                    y->weight + (size_t)i * (size_t)y->most, y->count[i], width, channels, plane,
                    window->mirror);
    return QN_OK;
}

static int nearest(int i, int in, int out)
{
    return (int)((2 * (int64_t)i + 1) * in / (2 * (int64_t)out));
}

void qn_resample_nearest(uint8_t *out, const struct qn_picture *picture,
                         const struct qn_window *window)
{
    for (int y = 0; y < window->size[0]; y++) {
        int from = nearest(window->at[0] + y, picture->size[0], window->full[0]);
        const uint8_t *row = picture->pixels + (size_t)from * row_of(picture);
        for (int x = 0; x < window->size[1]; x++) {
            int to = window->mirror ? window->size[1] - 1 - x : x;
            *out++ = row[nearest(window->at[1] + to, picture->size[1], window->full[1])];
        }
    }
}

void qn_resample_back(uint8_t *out, const int size[2], const uint8_t *in,
                      const struct qn_window *window)
{
    const int *full = window->full, *kept = window->size;
    for (int y = 0; y < size[0]; y++) {
        const int row = nearest(y, full[0], size[0]) - window->at[0];
        for (int x = 0; x < size[1]; x++) {
            const int column = nearest(x, full[1], size[1]) - window->at[1];
            const bool inside = row >= 0 && row < kept[0] && column >= 0 && column < kept[1];
            *out++ = inside ? in[(size_t)row * (size_t)kept[1] + (size_t)column] : 0;
        }
    }
}
