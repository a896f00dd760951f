/* SPDX-License-Identifier: MIT */
#include "data/resample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of pixels side by side, as Pillow has them. */
struct golden {
    int channels, size[2], to[2];
    uint8_t bilinear[128], nearest[128];
};
#include "../golden/resample.h"
enum { CASES = sizeof golden / sizeof *golden, ROOM = 1 << 13 };

static uint8_t pixels[ROOM], whole[ROOM], part[ROOM];

static struct qn_picture picture_of(int channels, const int size[2])
{
    int count = channels * size[0] * size[1];
    for (int i = 0; i < count; i++)
        pixels[i] = (uint8_t)((i * i * 37 + i * 11) % 251);
    return (struct qn_picture){pixels, {size[0], size[1]}, channels};
}

static void check_golden(const struct golden *g, struct qn_room *room)
{
    const struct qn_picture picture = picture_of(g->channels, g->size);
    const struct qn_window window = {.full = {g->to[0], g->to[1]}, .size = {g->to[0], g->to[1]}};
    int plane = g->to[0] * g->to[1];
    assert_int_equal(qn_resample(whole, &picture, &window, room), QN_OK);
    for (int i = 0; i < plane * g->channels; i++)
        assert_int_equal(whole[i % g->channels * plane + i / g->channels], g->bilinear[i]);
    if (g->channels != 1)
        return;
    qn_resample_nearest(whole, &picture, &window);
    assert_memory_equal(whole, g->nearest, plane);
}

static void sizes_are_as_pillow_makes_them(void **state)
{
    struct qn_room room = {0};
    (void)state;
    for (int i = 0; i < CASES; i++)
        check_golden(&golden[i], &room);
    qn_room_free(&room);
}

/* `mirror` counts from the other side. */
static int source(const struct qn_window *w, int y, int x)
{
    int from = w->mirror ? w->size[1] - 1 - x : x;
    return (w->at[0] + y) * w->full[1] + w->at[1] + from;
}

/* A window is cut out of the whole: no pixel of it knows where it ends. */
static void windows_are_parts_of_the_whole(void **state)
{
    static const struct qn_window windows[] = {
        {{9, 14}, {0, 0}, {9, 14}, true}, {{9, 14}, {2, 3}, {5, 4}, false},
        {{9, 14}, {2, 3}, {5, 4}, true},  {{9, 14}, {8, 13}, {1, 1}, false},
        {{4, 5}, {1, 2}, {3, 2}, true},   {{25, 31}, {24, 0}, {1, 31}, false},
        {{11, 13}, {3, 4}, {6, 7}, true}, /* not resized at all */
    };
    struct qn_room room = {0};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof windows / sizeof *windows; i++) {
        const struct qn_window *w = &windows[i / 2];
        int channels = i % 2 ? 3 : 1, plane = w->size[0] * w->size[1];
        const struct qn_picture picture = picture_of(channels, (int[]){11, 13});
        const struct qn_window all = {.full = {w->full[0], w->full[1]},
                                      .size = {w->full[0], w->full[1]}};
        assert_int_equal(qn_resample(whole, &picture, &all, &room), QN_OK);
        assert_int_equal(qn_resample(part, &picture, w, &room), QN_OK);
        for (int j = 0; j < channels * plane; j++)
            assert_int_equal(part[j], whole[j / plane * w->full[0] * w->full[1] +
                                            source(w, j % plane / w->size[1], j % w->size[1])]);
        if (channels != 1)
            continue;
        qn_resample_nearest(whole, &picture, &all);
        qn_resample_nearest(part, &picture, w);
        for (int j = 0; j < plane; j++)
            assert_int_equal(part[j], whole[source(w, j / w->size[1], j % w->size[1])]);
    }
    qn_room_free(&room);
}

/* Every pixel of the picture has what covers its middle, and nothing where that was cut off. */
static void windows_go_back(void **state)
{
    static const struct qn_window windows[] = {
        {{11, 13}, {0, 0}, {11, 13}, false}, {{9, 14}, {0, 0}, {9, 14}, false},
        {{9, 14}, {2, 3}, {5, 4}, false},    {{25, 31}, {24, 0}, {1, 31}, false},
        {{3, 2}, {0, 0}, {3, 2}, false},     {{11, 13}, {3, 4}, {6, 7}, false},
    };
    const int size[2] = {11, 13};
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        const struct qn_window *w = &windows[i];
        for (int j = 0; j < w->size[0] * w->size[1]; j++)
            part[j] = (uint8_t)(1 + j % 250);
        memset(whole, 255, ROOM);
        qn_resample_back(whole, size, part, w);
        for (int j = 0; j < size[0] * size[1]; j++) {
            const double y = (j / size[1] + 0.5) * w->full[0] / size[0] - w->at[0];
            const double x = (j % size[1] + 0.5) * w->full[1] / size[1] - w->at[1];
            const bool inside = y >= 0 && y < w->size[0] && x >= 0 && x < w->size[1];
            assert_int_equal(whole[j], inside ? part[(int)y * w->size[1] + (int)x] : 0);
        }
        assert_int_equal(whole[size[0] * size[1]], 255);
    }
}

static void what_is_too_large_is_refused(void **state)
{
    struct qn_room room = {0};
    (void)state;
    const struct qn_picture picture = {pixels, {1 << 30, 1 << 30}, 3};
    const struct qn_window window = {{1 << 30, 1 << 30}, {0, 0}, {1 << 30, 1 << 30}, false};
    assert_int_equal(qn_resample(whole, &picture, &window, &room), QN_ERR_MEMORY);
    assert_null(qn_room_take(&room, -1));
    qn_room_free(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_as_pillow_makes_them),
        cmocka_unit_test(windows_are_parts_of_the_whole),
        cmocka_unit_test(windows_go_back),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
