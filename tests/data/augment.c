/* SPDX-License-Identifier: MIT */
#include "data/augment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct qn_window window_of(const struct qn_fit *fit, int height, int width, int64_t epoch,
                                  int64_t sample)
{
    struct qn_window window;
    const struct qn_draw draw = {.seed = 3, .epoch = epoch, .sample = sample};
    assert_true(qn_augment(&window, fit, (const int[]){height, width}, &draw));
    return window;
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
    struct qn_window w;
    const struct qn_fit fit = {.crop = {5, 5}};
    (void)state;
    assert_true(qn_augment(&w, &fit, (const int[]){5, 5}, &(struct qn_draw){0}));
    assert_false(qn_augment(&w, &fit, (const int[]){4, 9}, &(struct qn_draw){0}));
    assert_false(qn_augment(&w, &fit, (const int[]){9, 4}, &(struct qn_draw){0}));
    const struct qn_fit long_fit = {.size = {1 << 20, 0}};
    assert_true(qn_augment(&w, &long_fit, (const int[]){1, 1 << 27}, &(struct qn_draw){0}));
    assert_int_equal(w.full[1], INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_the_middle),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(the_numbers_are_what_they_were),
        cmocka_unit_test(what_is_too_small_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
