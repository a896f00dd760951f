/* SPDX-License-Identifier: MIT
 *
 * Sums of doubles that are rounded once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/exact.h"
#include "base/random.h"

#include <float.h>
#include <math.h>

static double sum_of(const double *values, int count)
{
    struct qn_exact sum = {.waiting = 0};
    for (int i = 0; i < count; i++)
        qn_exact_add(&sum, values[i]);
    return qn_exact_value(&sum);
}

/* The sum of a few numbers is the double next to it, ties to even. */
static void sums_are_the_nearest(void **state)
{
    static const struct {
        double values[4], sum;
    } cases[] = {
        {{0}, 0},
        {{0.1}, 0.1},
        {{-0.1}, -0.1},
        {{0x1p-1074}, 0x1p-1074},
        {{-DBL_MIN, 0x1p-1074}, -DBL_MIN + 0x1p-1074},
        {{DBL_MAX, -DBL_MAX, 1}, 1},
        {{1e300, 1, -1e300, 0x1p-1074}, 1},
        {{1, 0x1p-53}, 1},
        {{1, 0x1p-53, 0x1p-1074}, 1 + 0x1p-52},
        {{1 + 0x1p-52, 0x1p-53}, 1 + 0x1p-51},
        {{-1, -0x1p-53, -0x1p-300}, -1 - 0x1p-52},
        {{0x1p31, -1, 0x1p-1, 0x1p-40}, 2147483647.5},
        {{DBL_MAX, DBL_MAX}, INFINITY},
        {{DBL_MAX, DBL_MAX, -DBL_MAX}, DBL_MAX},
        {{INFINITY, -1e300, 1}, INFINITY},
        {{-INFINITY, DBL_MAX, DBL_MAX}, -INFINITY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(sum_of(cases[i].values, 4) == cases[i].sum);
    assert_true(isnan(sum_of((const double[]){INFINITY, 1, -INFINITY, 2}, 4)));
    assert_true(isnan(sum_of((const double[]){NAN, INFINITY}, 2)));
}

enum { NUMBERS = 5000, SUMS = 7 };

static double number_at(int i)
{
    return ldexp(qn_random_normal(1, 0, (uint64_t)i),
                 (int)(qn_random_bits(1, 1, (uint64_t)i) % 200));
}

/* Dealt out among several sums, and these joined in another order: the same bits. */
static void no_order_changes_a_bit(void **state)
{
    struct qn_exact whole = {.waiting = 0}, backward = {.waiting = 0}, joined = {.waiting = 0};
    struct qn_exact parts[SUMS] = {{.waiting = 0}};
    (void)state;
    for (int i = 0; i < NUMBERS; i++) {
        qn_exact_add(&whole, number_at(i));
        qn_exact_add(&backward, number_at(NUMBERS - 1 - i));
        qn_exact_add(&parts[i * i % SUMS], number_at(i));
    }
    for (int p = SUMS - 1; p >= 0; p--)
        qn_exact_join(&joined, &parts[p]);
    const double value = qn_exact_value(&whole);
    assert_true(value == qn_exact_value(&backward) && value == qn_exact_value(&joined));
    assert_true(qn_exact_rest(&whole) == qn_exact_rest(&joined));
    assert_true(qn_exact_rest(&whole) != 0 && fabs(qn_exact_rest(&whole)) <= fabs(value) * 0x1p-53);
}

__extension__ typedef __int128 whole_number;

/* Whole numbers of 128 bits beside it. */
static void whole_numbers(void **state)
{
    struct qn_exact sum = {.waiting = 0};
    whole_number want = 0;
    (void)state;
    for (int i = 0; i < NUMBERS; i++) {
        const double number = ldexp((double)(int32_t)qn_random_bits(2, 0, (uint64_t)i), i % 70);
        want += (whole_number)number;
        qn_exact_add(&sum, number);
        assert_true(qn_exact_value(&sum) == (double)want);
    }
}

/* Carries go on before a limb is full. */
static void carries_do_not_wait_for_ever(void **state)
{
    struct qn_exact sum = {.waiting = 0};
    (void)state;
    for (int64_t i = 0; i < 1 << 20; i++) {
        sum.waiting += (1 << 20) - 1; /* as if so many zeros were added */
        qn_exact_add(&sum, -0xffffffffp0);
        assert_in_range(sum.waiting, 0, (1 << 30) + (1 << 20));
    }
    assert_true(qn_exact_value(&sum) == -0xffffffffp20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_nearest),
        cmocka_unit_test(no_order_changes_a_bit),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(carries_do_not_wait_for_ever),
    };
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
