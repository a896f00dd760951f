/* SPDX-License-Identifier: MIT */
#include "data/jitter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "statistics.h"

enum { DRAWS = 20000, PIXELS = 400 };
static double factor[QN_COLOURS][DRAWS];

static struct qn_tint tint_of(const struct qn_jitter *jitter, int i, bool epochs)
{
    struct qn_tint tint;
    const struct qn_draw draw = {.seed = 5, .epoch = epochs ? i : 2, .sample = epochs ? 2 : i};
    qn_jitter_draw(&tint, jitter, &draw);
    return tint;
}

/* Each factor is uniform in its range, and all 24 orders are as likely: chi-squared with 23 degrees
 * of freedom stays below 62 with probability 0.99998. */
static void factors_and_orders_are_uniform(void **state)
{
    const struct qn_jitter jitter = {{0.4, 0.2, 1.5, 0.1}};
    static const double range[QN_COLOURS][2] = {{0.6, 1.4}, {0.8, 1.2}, {0, 2.5}, {-0.1, 0.1}};
    (void)state;
    for (int over = 0; over < 2; over++) {
        int times[256] = {0};
        for (int i = 0; i < DRAWS; i++) {
            const struct qn_tint tint = tint_of(&jitter, i, over);
            int order = 0, seen = 0;
            assert_int_equal(tint.count, QN_COLOURS);
            for (int s = 0; s < QN_COLOURS; s++) {
                factor[tint.step[s].what][i] = tint.step[s].factor;
                order = order * 4 + (int)tint.step[s].what;
                seen |= 1 << tint.step[s].what;
            }
            assert_int_equal(seen, 15);
            times[order]++;
        }
        for (int what = 0; what < QN_COLOURS; what++)
            assert_uniform(factor[what], DRAWS, range[what][0], range[what][1]);
        double chi = 0, mean = DRAWS / 24.0;
        int orders = 0;
        for (int i = 0; i < 256; i++) {
            orders += times[i] > 0;
            chi += times[i] ? (times[i] - mean) * (times[i] - mean) / mean : 0;
        }
        assert_int_equal(orders, 24);
        assert_true(chi < 62);
    }
}

static void what_has_no_range_stays(void **state)
{
    const struct qn_jitter jitter = {{[QN_SATURATION] = 0.5}};
    const struct qn_tint tint = tint_of(&jitter, 7, false);
    (void)state;
    assert_int_equal(tint.count, 1);
    assert_int_equal(tint.step[0].what, QN_SATURATION);
    assert_int_equal(tint_of(&(struct qn_jitter){0}, 7, false).count, 0);
}

/* --- the formulas of torchvision.transforms.functional, in double --- */

static double clamp(double x)
{
    return fmin(1, fmax(0, x));
}

static double grey(const double rgb[3])
{
    return 0.2989 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

/* By sectors of the circle: the classical way back from hue, saturation and value. */
static void turn(double rgb[3], double by)
{
    const double most = fmax(rgb[0], fmax(rgb[1], rgb[2]));
    const double least = fmin(rgb[0], fmin(rgb[1], rgb[2]));
    const double range = most - least, s = most > 0 ? range / most : 0;
    double h = 0;
    if (range > 0 && most == rgb[0])
        h = (rgb[1] - rgb[2]) / range;
    else if (range > 0 && most == rgb[1])
        h = 2 + (rgb[2] - rgb[0]) / range;
    else if (range > 0)
        h = 4 + (rgb[0] - rgb[1]) / range;
    h = fmod(h / 6 + by + 2, 1) * 6;
    const int sector = (int)h % 6;
    const double f = h - floor(h);
    const double p = most * (1 - s), q = most * (1 - s * f), t = most * (1 - s * (1 - f));
    const double sectors[6][3] = {{most, t, p}, {q, most, p}, {p, most, t},
                                  {p, q, most}, {t, p, most}, {most, p, q}};
    memcpy(rgb, sectors[sector], 3 * sizeof *rgb);
}

static void reference(double pixels[][3], int channels, const struct qn_tint *tint)
{
    for (int s = 0; s < tint->count; s++) {
        const double by = tint->step[s].factor;
        double mean = 0;
        for (int i = 0; i < PIXELS; i++)
            mean += (channels == 1 ? pixels[i][0] : grey(pixels[i])) / PIXELS;
        for (int i = 0; i < PIXELS; i++) {
            const double shade = grey(pixels[i]);
            if (tint->step[s].what == QN_HUE && channels == 3)
                turn(pixels[i], by);
            for (int c = 0; c < channels; c++) {
                double *x = &pixels[i][c];
                if (tint->step[s].what == QN_BRIGHTNESS)
                    *x = clamp(by * *x);
                if (tint->step[s].what == QN_CONTRAST)
                    *x = clamp(by * *x + (1 - by) * mean);
                if (tint->step[s].what == QN_SATURATION && channels == 3)
                    *x = clamp(by * *x + (1 - by) * shade);
            }
        }
    }
}

/* Black, white, greys, pure colours and others. */
static uint8_t value_of(int i, int c)
{
    static const uint8_t special[][3] = {{0, 0, 0},   {255, 255, 255}, {9, 9, 9},     {255, 0, 0},
                                         {0, 255, 0}, {0, 0, 255},     {255, 255, 0}, {7, 0, 200}};
    return i < 8 ? special[i][c] : (uint8_t)((i * i * 37 + i * 11 + c * 91) % 256);
}

static void check_tint(int channels, const struct qn_tint *tint)
{
    struct qn_room room = {0};
    uint8_t planes[3 * PIXELS];
    double pixels[PIXELS][3];
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < channels; c++) {
            planes[c * PIXELS + i] = value_of(i, c);
            pixels[i][c] = value_of(i, c) / 255.0;
        }
    assert_int_equal(qn_tint_apply(planes, channels, PIXELS, tint, &room), QN_OK);
    reference(pixels, channels, tint);
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < channels; c++)
            assert_true(fabs(planes[c * PIXELS + i] - 255 * pixels[i][c]) <= 0.5 + 1e-3);
    qn_room_free(&room);
}

static void colours_are_as_the_formulas_say(void **state)
{
    const struct qn_jitter jitter = {{0.9, 1.5, 1.5, 0.5}};
    (void)state;
    for (int i = 0; i < 200; i++) {
        const struct qn_tint tint = tint_of(&jitter, i, false);
        check_tint(3, &tint);
        check_tint(1, &tint);
    }
    for (int what = 0; what < QN_COLOURS; what++)
        for (int i = 0; i <= 10; i++) {
            const double by = what == QN_HUE ? i / 10.0 - 0.5 : i / 4.0;
            const struct qn_tint tint = {1, {{(enum qn_colour)what, by}}};
            check_tint(3, &tint);
            check_tint(1, &tint);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_and_orders_are_uniform),
        cmocka_unit_test(what_has_no_range_stays),
        cmocka_unit_test(colours_are_as_the_formulas_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
