/* SPDX-License-Identifier: MIT */
#include "data/rotate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 1 << 12 };
static uint8_t from[ROOM], to[ROOM];

static void fill(int count)
{
    for (int i = 0; i < count; i++)
        from[i] = (uint8_t)((i * i * 37 + i * 11) % 251);
}

/* Counter-clockwise: what was on the right is above. */
static void quarters_are_exact(void **state)
{
    static const struct {
        double degrees;
        const char *turned;
    } cases[] = {{0, "abcdefghi"},
                 {90, "cfibehadg"},
                 {180, "ihgfedcba"},
                 {-90, "gdahebifc"},
                 {360, "abcdefghi"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int plane = 0; plane < 2; plane++)
            memcpy(from + 9 * plane, "abcdefghi", 9);
        qn_rotate(to, from, 2, (const int[]){3, 3}, cases[i].degrees);
        for (int plane = 0; plane < 2; plane++)
            assert_memory_equal(to + 9 * plane, cases[i].turned, 9);
        qn_rotate_nearest(to, from, (const int[]){3, 3}, cases[i].degrees);
        assert_memory_equal(to, cases[i].turned, 9);
    }
}

/* A wide picture loses its ends and gains black ones. */
static void the_size_stays(void **state)
{
    (void)state;
    qn_rotate_nearest(to, (const uint8_t *)"abcdefghijklmno", (const int[]){3, 5}, 90);
    assert_memory_equal(to, "\0din\0\0chm\0\0bgl", 14);
    assert_int_equal(to[14], 0);
}

/* Every pixel gives to a point by how near it is, and to none farther than 1 along an axis. */
static double expected(const int size[2], int plane, int y, int x, double degrees, double reach)
{
    const double angle = degrees * acos(-1) / 180;
    const double down = y - (size[0] - 1) / 2.0, right = x - (size[1] - 1) / 2.0;
    /* Downwards is negative for those who turn counter-clockwise; this turns back. */
    const double u = right * cos(angle) + -down * sin(angle);
    const double v = -right * sin(angle) + -down * cos(angle);
    double sum = 0;
    for (int i = 0; i < size[0]; i++)
        for (int j = 0; j < size[1]; j++) {
            const double dy = fabs(-(i - (size[0] - 1) / 2.0) - v);
            const double dx = fabs(j - (size[1] - 1) / 2.0 - u);
            const double share =
                reach == 1 ? fmax(0, 1 - dy) * fmax(0, 1 - dx) : (dy < reach) * (dx < reach);
            sum += share * from[(plane * size[0] + i) * size[1] + j];
        }
    return sum;
}

static void all_angles_are_as_the_formula_says(void **state)
{
    static const int sizes[][2] = {{9, 14}, {11, 3}, {1, 8}, {16, 16}};
    (void)state;
    for (int s = 0; s < 4; s++)
        for (double degrees = -177.3; degrees < 180; degrees += 23.7) {
            const int *size = sizes[s], plane = size[0] * size[1];
            fill(3 * plane);
            qn_rotate(to, from, 3, size, degrees);
            for (int i = 0; i < 3 * plane; i++) {
                const double value =
                    expected(size, i / plane, i % plane / size[1], i % plane % size[1], degrees, 1);
                assert_true(fabs(to[i] - value) <= 0.5 + 1e-6);
            }
            qn_rotate_nearest(to, from, size, degrees);
            for (int i = 0; i < plane; i++)
                assert_int_equal(to[i],
                                 (int)expected(size, 0, i / size[1], i % size[1], degrees, 0.5));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quarters_are_exact),
        cmocka_unit_test(the_size_stays),
        cmocka_unit_test(all_angles_are_as_the_formula_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
