/* SPDX-License-Identifier: MIT */
#include "overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void add(struct overlap *overlap, int times, uint8_t label, uint8_t predicted)
{
    for (int i = 0; i < times; i++)
        overlap_add(overlap, label, predicted);
}

static void nothing_is_nothing(void **state)
{
    static const struct overlap none;
    (void)state;
    assert_true(overlap_mean(&none) == 0);
}

static void classes_that_occur_count(void **state)
{
    struct overlap overlap = {0};
    (void)state;
    add(&overlap, 5, 7, 7);
    assert_true(overlap_mean(&overlap) == 1);
    add(&overlap, 3, 7, 255);
    assert_true(overlap_mean(&overlap) == (5 / 8.0 + 0) / 2);
    add(&overlap, 2, 0, 7);
    add(&overlap, 6, 0, 0);
    assert_true(overlap_mean(&overlap) == (6 / 8.0 + 5 / 10.0 + 0) / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(classes_that_occur_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
