/* SPDX-License-Identifier: MIT */
#include "data/jitter.h"
#include "base/shape.h"
#include "data/draw.h"

#include <math.h>

/* A factor each, and their order. */
enum { ORDER = QN_COLOURS, NUMBERS };
static const struct qn_stream stream = {UINT64_C(0x6a69747400000000), NUMBERS};

/* --- drawing --- */

static double factor_of(enum qn_colour what, double range, const struct qn_draw *draw)
{
    const double least = what == QN_HUE ? -range : fmax(0, 1 - range);
    const double most = what == QN_HUE ? range : 1 + range;
    return qn_draw_within(draw, &stream, what, least, most);
}

/* Every order is as likely, but for 2^-59 of its share. */
static void shuffle(struct qn_tint *tint, uint64_t bits)
{
    for (int i = tint->count - 1; i > 0; i--) {
        const int other = (int)(bits % (uint64_t)(i + 1));
        bits /= (uint64_t)(i + 1);
        const struct qn_tint before = *tint;
        tint->step[i] = before.step[other];
        tint->step[other] = before.step[i];
    }
}

void qn_jitter_draw(struct qn_tint *tint, const struct qn_jitter *jitter,
                    const struct qn_draw *draw)
{
    *tint = (struct qn_tint){0};
    for (int what = 0; what < QN_COLOURS; what++) {
        if (!(jitter->range[what] > 0))
            continue;
        tint->step[tint->count].what = (enum qn_colour)what;
        tint->step[tint->count++].factor =
            factor_of((enum qn_colour)what, jitter->range[what], draw);
    }
    shuffle(tint, qn_draw_bits(draw, &stream, ORDER));
}

/* --- colours of one pixel, in [0, 1] --- */

static float limited(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* `other` where the factor is 0, the value itself where it is 1. */
static float mixed(float value, float other, float factor)
{
    return limited(factor * value + (1 - factor) * other);
}

static float grey(const float *pixel, int channels, int64_t count)
{
    return channels == 1 ? pixel[0]
                         : 0.2989f * pixel[0] + 0.587f * pixel[count] + 0.114f * pixel[2 * count];
}

/* In turns of the circle of colours, red at 0; 0 where all three are equal. */
static float hue_of(const float rgb[3], float most, float least)
{
    const float range = most - least;
    if (range == 0)
        return 0;
    const float sixths = most == rgb[0]   ? (rgb[1] - rgb[2]) / range
                         : most == rgb[1] ? 2 + (rgb[2] - rgb[0]) / range
                                          : 4 + (rgb[0] - rgb[1]) / range;
    return sixths / 6;
}

/* To the hue, value and saturation: each channel falls off from the value by its distance to the
 * hue. */
static void to_rgb(float rgb[3], float hue, float most, float least)
{
    static const float from[3] = {5, 3, 1};
    for (int c = 0; c < 3; c++) {
        const float distance = fmodf(from[c] + 6 * hue, 6);
        const float part = limited(fminf(distance, 4 - distance));
        rgb[c] = most - (most - least) * part;
    }
}

static void turn_hue(float *pixel, int64_t count, float by)
{
    float rgb[3] = {pixel[0], pixel[count], pixel[2 * count]};
    const float most = fmaxf(rgb[0], fmaxf(rgb[1], rgb[2]));
    const float least = fminf(rgb[0], fminf(rgb[1], rgb[2]));
    const float hue = hue_of(rgb, most, least) + by;
    to_rgb(rgb, hue - floorf(hue), most, least);
    for (int c = 0; c < 3; c++)
        pixel[c * count] = limited(rgb[c]);
}

/* --- images --- */

/* f32 in [0, 1], laid out as (channels, count). */
struct image {
    float *value;
    int channels;
    int64_t count;
};

static float mean_grey(const struct image *image)
{
    double sum = 0;
    for (int64_t i = 0; i < image->count; i++)
        sum += (double)grey(image->value + i, image->channels, image->count);
    return (float)(sum / (double)image->count);
}

/* Mixes every pixel with one shade. */
static void mix_shade(const struct image *image, float shade, float factor)
{
    for (int64_t i = 0; i < image->channels * image->count; i++)
        image->value[i] = mixed(image->value[i], shade, factor);
}

static void saturate(const struct image *image, float factor)
{
    for (int64_t i = 0; i < image->count; i++) {
        float *pixel = image->value + i;
        const float shade = grey(pixel, image->channels, image->count);
        for (int c = 0; c < image->channels; c++)
            pixel[c * image->count] = mixed(pixel[c * image->count], shade, factor);
    }
}

static void change(const struct image *image, enum qn_colour what, float factor)
{
    const bool coloured = image->channels == 3;
    if (what == QN_BRIGHTNESS)
        mix_shade(image, 0, factor);
    if (what == QN_CONTRAST)
        mix_shade(image, mean_grey(image), factor);
    if (what == QN_SATURATION && coloured)
        saturate(image, factor);
    for (int64_t i = 0; what == QN_HUE && coloured && i < image->count; i++)
        turn_hue(image->value + i, image->count, factor);
}

qn_status qn_tint_apply(uint8_t *planes, int channels, int64_t count, const struct qn_tint *tint,
                        struct qn_room *room)
{
    const int64_t values = qn_mul(channels, count);
    const struct image image = {qn_room_take(room, qn_mul(values, sizeof(float))), channels, count};
    if (!image.value)
        return QN_ERR_MEMORY;
    for (int64_t i = 0; i < values; i++)
        image.value[i] = (float)planes[i] / 255;
    for (int i = 0; i < tint->count; i++)
        change(&image, tint->step[i].what, (float)tint->step[i].factor);
    for (int64_t i = 0; i < values; i++)
        planes[i] = (uint8_t)(image.value[i] * 255 + 0.5f);
    return QN_OK;
}
