/* SPDX-License-Identifier: MIT
 *
 * Shares of a cycle: sums, multiples of a unit, remainders, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <quern/group.h>

enum { MOST = 4 };

static void by_largest_remainder(void **state)
{
    (void)state;
    static const struct {
        int64_t samples, unit;
        int members;
        double shares[MOST];
        int64_t counts[MOST];
    } cases[] = {
        {10, 1, 1, {1}, {10}},
        {10, 1, 2, {1, 1}, {5, 5}},
        {10, 1, 3, {1, 1, 1}, {4, 3, 3}},
        {10, 1, 3, {7, 2, 1}, {7, 2, 1}},
        {128, 1, 2, {3, 1}, {96, 32}},
        {10, 4, 2, {1, 1}, {8, 2}},
        {10, 4, 3, {1, 0, 1}, {8, 0, 2}},
        {10, 4, 3, {1, 1, 0}, {8, 2, 0}},
        {3, 8, 2, {1, 0}, {3, 0}},
        {100, 1, 3, {0.5, 0.25, 0.25}, {50, 25, 25}},
        {101, 1, 3, {0.5, 0.25, 0.25}, {51, 25, 25}},
        {7, 1, 4, {1e300, 1e300, 0, 0}, {4, 3, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t counts[MOST];
        assert_int_equal(qn_group_split(cases[i].samples, cases[i].unit, cases[i].shares,
                                        cases[i].members, counts),
                         QN_OK);
        for (int m = 0; m < cases[i].members; m++)
            assert_int_equal(counts[m], cases[i].counts[m]);
    }
}

static void without_shares_they_are_equal(void **state)
{
    (void)state;
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(9, 1, NULL, 4, counts), QN_OK);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[3], 2);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const double negative[] = {1, -1}, zeros[] = {0, 0}, nan_[] = {NAN, 1},
                        infinite[] = {INFINITY, 1}, little[] = {1000, 1};
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(8, 1, negative, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 1, zeros, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 1, nan_, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 1, infinite, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 1, little, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(1, 1, NULL, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(0, 1, NULL, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 0, NULL, 2, counts), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_split(8, 1, NULL, 0, counts), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_largest_remainder),
        cmocka_unit_test(without_shares_they_are_equal),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
