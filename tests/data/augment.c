/* SPDX-License-Identifier: MIT */
#include "data/augment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "statistics.h"

static struct qn_window window_of(const struct qn_fit *fit, int height, int width, int64_t epoch,
                                  int64_t sample)
{
    struct qn_view view;
    const struct qn_draw draw = {.seed = 3, .epoch = epoch, .sample = sample};
    assert_true(qn_augment(&view, fit, (const int[]){height, width}, &draw));
    assert_int_equal(view.part[0], height);
    assert_int_equal(view.part[1], width);
    return view.window;
}

/* Sizes and places of torchvision's Resize and CenterCrop. */
static void sizes_and_the_middle(void **state)
{
    static const struct {
        int size[2], crop[2], image[2], full[2], at[2], kept[2];
    } cases[] = {
        {{0, 0}, {0, 0}, {7, 9}, {7, 9}, {0, 0}, {7, 9}},
        {{4, 6}, {0, 0}, {7, 9}, {4, 6}, {0, 0}, {4, 6}},
        {{256, 0}, {224, 224}, {375, 500}, {256, 341}, {16, 58}, {224, 224}},
        {{256, 0}, {224, 224}, {500, 333}, {384, 256}, {80, 16}, {224, 224}},
        {{10, 0}, {0, 0}, {10, 10}, {10, 10}, {0, 0}, {10, 10}},
        {{0, 0}, {4, 4}, {5, 7}, {5, 7}, {0, 2}, {4, 4}},
        {{0, 0}, {4, 4}, {9, 11}, {9, 11}, {2, 4}, {4, 4}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct qn_fit fit = {.channels = 3};
        memcpy(fit.size, cases[i].size, sizeof fit.size);
        memcpy(fit.crop, cases[i].crop, sizeof fit.crop);
        struct qn_window w = window_of(&fit, cases[i].image[0], cases[i].image[1], 0, 0);
        assert_memory_equal(w.full, cases[i].full, sizeof w.full);
        assert_memory_equal(w.at, cases[i].at, sizeof w.at);
        assert_memory_equal(w.size, cases[i].kept, sizeof w.size);
        assert_false(w.mirror);
    }
}

/* Every place and both sides come up about equally often over samples and over epochs: chi-squared
 * with 23 degrees of freedom stays below 62 with probability 0.99998. */
static void places_are_uniform(void **state)
{
    enum { DRAWS = 24000 };
    const struct qn_fit fit = {.crop = {2, 3}, .random_crop = true, .flip = true};
    (void)state;
    for (int over = 0; over < 2; over++) {
        int times[24] = {0};
        for (int i = 0; i < DRAWS; i++) {
            struct qn_window w = window_of(&fit, 5, 5, over ? i : 4, over ? 4 : i);
            assert_in_range(w.at[0], 0, 3);
            assert_in_range(w.at[1], 0, 2);
            times[(w.at[0] * 3 + w.at[1]) * 2 + w.mirror]++;
        }
        double chi = 0, mean = DRAWS / 24.0;
        for (int i = 0; i < 24; i++)
            chi += (times[i] - mean) * (times[i] - mean) / mean;
        assert_true(chi < 62);
    }
}

enum { PARTS = 20000 };
static double share[PARTS], ratio[PARTS], above[PARTS], before[PARTS];

static struct qn_view part_of(const struct qn_fit *fit, int height, int width, int i, bool epochs)
{
    struct qn_view view;
    const struct qn_draw draw = {.seed = 3, .epoch = epochs ? i : 4, .sample = epochs ? 4 : i};
    assert_true(qn_augment(&view, fit, (const int[]){height, width}, &draw));
    return view;
}

/* Every part fits: its size, the logarithm of its ratio and its place are uniform, over samples and
 * over epochs. */
static void parts_are_uniform(void **state)
{
    const struct qn_fit fit = {
        .crop = {7, 9}, .random_resized_crop = true, .scale = {0.1, 0.4}, .ratio = {0.75, 1.5}};
    enum { H = 40000, W = 50000 };
    (void)state;
    for (int over = 0; over < 2; over++) {
        for (int i = 0; i < PARTS; i++) {
            const struct qn_view v = part_of(&fit, H, W, i, over);
            assert_memory_equal(v.window.full, fit.crop, sizeof fit.crop);
            assert_memory_equal(v.window.size, fit.crop, sizeof fit.crop);
            assert_int_equal(v.window.at[0] + v.window.at[1], 0);
            share[i] = (double)v.part[0] * v.part[1] / ((double)H * W);
            ratio[i] = log((double)v.part[1] / v.part[0]);
            above[i] = (v.at[0] + 0.5) / (H - v.part[0] + 1);
            before[i] = (v.at[1] + 0.5) / (W - v.part[1] + 1);
        }
        const double rounded = 1e-4; /* sides are whole numbers */
        assert_uniform(share, PARTS, 0.1 - rounded, 0.4 + rounded);
        assert_uniform(ratio, PARTS, log(0.75) - rounded, log(1.5) + rounded);
        assert_uniform(above, PARTS, 0, 1);
        assert_uniform(before, PARTS, 0, 1);
    }
}

/* Of a square, parts that are four times as wide as high hold at most a quarter: here a tenth of
 * the tries, and what ten tries do not give is the middle. */
static void parts_that_do_not_fit_are_tried_ten_times(void **state)
{
    const struct qn_fit fit = {
        .crop = {7, 9}, .random_resized_crop = true, .scale = {0.2, 0.7}, .ratio = {4, 4}};
    enum { SIDE = 40000 };
    int middles = 0, fitting = 0;
    (void)state;
    for (int i = 0; i < PARTS; i++) {
        const struct qn_view v = part_of(&fit, SIDE, SIDE, i, false);
        const bool middle = v.part[0] == SIDE / 4 && v.part[1] == SIDE && v.at[0] == 15000;
        middles += middle;
        if (!middle)
            share[fitting++] = (double)v.part[0] * v.part[1] / ((double)SIDE * SIDE);
    }
    assert_share(middles, PARTS, pow(0.9, 10));
    assert_uniform(share, fitting, 0.2 - 1e-4, 0.25 + 1e-4);
}

/* Of torchvision's RandomResizedCrop.get_params. */
static void parts_in_the_middle(void **state)
{
    static const struct {
        int size[2], at[2], part[2];
    } cases[] = {
        {{100, 1000}, {0, 433}, {100, 133}},
        {{1001, 100}, {434, 0}, {133, 100}},
        {{2, 40}, {0, 18}, {2, 3}},
    };
    const struct qn_fit fit = {
        .crop = {7, 9}, .random_resized_crop = true, .scale = {1, 1}, .ratio = {3 / 4.0, 4 / 3.0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct qn_view v = part_of(&fit, cases[i].size[0], cases[i].size[1], 1, false);
        assert_memory_equal(v.at, cases[i].at, sizeof v.at);
        assert_memory_equal(v.part, cases[i].part, sizeof v.part);
    }
}

/* Small images and wide ranges: a part is never empty, and within the image. */
static void parts_are_within_the_image(void **state)
{
    const struct qn_fit fit = {
        .crop = {7, 9}, .random_resized_crop = true, .scale = {0.001, 1}, .ratio = {0.01, 100}};
    (void)state;
    for (int i = 0; i < PARTS; i++) {
        const int size[2] = {1 + i % 5, 1 + i / 5 % 7};
        const struct qn_view v = part_of(&fit, size[0], size[1], i, false);
        for (int axis = 0; axis < 2; axis++) {
            assert_in_range(v.part[axis], 1, size[axis]);
            assert_in_range(v.at[axis], 0, size[axis] - v.part[axis]);
        }
    }
}

static void angles_are_uniform(void **state)
{
    const struct qn_fit fit = {.degrees = 30};
    (void)state;
    for (int over = 0; over < 2; over++) {
        for (int i = 0; i < PARTS; i++)
            share[i] = part_of(&fit, 5, 5, i, over).angle;
        assert_uniform(share, PARTS, -30, 30);
    }
    assert_true(part_of(&(struct qn_fit){0}, 5, 5, 1, false).angle == 0);
}

/* Changing the numbers changes every training run: these are values to keep. */
static void the_numbers_are_what_they_were(void **state)
{
    static const int expected[][3] = {{12, 296, 1}, {90, 139, 0}, {61, 210, 1}, {85, 909, 1}};
    const struct qn_fit fit = {.crop = {1, 1}, .random_crop = true, .flip = true};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct qn_window w = window_of(&fit, 100, 1000, i / 2, i % 2);
        assert_int_equal(w.at[0], expected[i][0]);
        assert_int_equal(w.at[1], expected[i][1]);
        assert_int_equal(w.mirror, expected[i][2]);
    }
}

static void what_is_too_small_is_refused(void **state)
{
    struct qn_view v;
    const struct qn_fit fit = {.crop = {5, 5}};
    (void)state;
    assert_true(qn_augment(&v, &fit, (const int[]){5, 5}, &(struct qn_draw){0}));
    assert_false(qn_augment(&v, &fit, (const int[]){4, 9}, &(struct qn_draw){0}));
    assert_false(qn_augment(&v, &fit, (const int[]){9, 4}, &(struct qn_draw){0}));
    const struct qn_fit long_fit = {.size = {1 << 20, 0}};
    assert_true(qn_augment(&v, &long_fit, (const int[]){1, 1 << 27}, &(struct qn_draw){0}));
    assert_int_equal(v.window.full[1], INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_the_middle),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(parts_are_uniform),
        cmocka_unit_test(parts_that_do_not_fit_are_tried_ten_times),
        cmocka_unit_test(parts_in_the_middle),
        cmocka_unit_test(parts_are_within_the_image),
        cmocka_unit_test(angles_are_uniform),
        cmocka_unit_test(the_numbers_are_what_they_were),
        cmocka_unit_test(what_is_too_small_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
