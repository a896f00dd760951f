/* SPDX-License-Identifier: MIT */
#include <quern/schedule.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const qn_batch_schedule one = {1, {{0, 10}}};
static const qn_batch_schedule three = {3, {{0, 10}, {5, 40}, {7, 20}}};

static void a_batch_stays_until_the_next(void **state)
{
    static const int64_t batches[] = {10, 10, 10, 10, 10, 40, 40, 20, 20};
    (void)state;
    for (int64_t u = 0; u < 9; u++) {
        assert_int_equal(qn_schedule_batch(&one, u), 10);
        assert_int_equal(qn_schedule_batch(&three, u), batches[u]);
    }
    assert_int_equal(qn_schedule_batch(&three, INT64_MAX), 20);
    assert_int_equal(qn_schedule_batch(NULL, 0), 0);
}

/* Against taking batch after batch. */
static void updates_are_those_that_see_all_samples(void **state)
{
    (void)state;
    assert_int_equal(qn_schedule_updates(&one, 0), 0);
    assert_int_equal(qn_schedule_updates(&one, 99), 10);
    assert_int_equal(qn_schedule_updates(&three, 50), 5);
    assert_int_equal(qn_schedule_updates(&three, 51), 6);
    for (int64_t samples = 0; samples < 300; samples++) {
        int64_t updates = 0;
        for (int64_t left = samples; left > 0; updates++)
            left -= qn_schedule_batch(&three, updates);
        assert_int_equal(qn_schedule_updates(&three, samples), updates);
    }
    assert_int_equal(qn_schedule_updates(NULL, 9), 0);
}

static void sizes_are_given_once(void **state)
{
    static const qn_batch_schedule back = {4, {{0, 10}, {1, 40}, {2, 10}, {3, 20}}};
    int64_t sizes[QN_MAX_BATCH_SIZES];
    (void)state;
    sizes[1] = 99;
    assert_int_equal(qn_schedule_sizes(&one, sizes), 1);
    assert_int_equal(sizes[0], 10);
    assert_int_equal(sizes[1], 0);
    assert_int_equal(qn_schedule_sizes(&back, sizes), 3);
    assert_int_equal(sizes[0], 40);
    assert_int_equal(sizes[1] + sizes[2], 30);
    assert_int_equal(sizes[3], 0);
    assert_int_equal(qn_schedule_sizes(NULL, sizes), 0);
    assert_int_equal(sizes[0], 0);
    assert_int_equal(qn_schedule_sizes(&one, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_stays_until_the_next),
        cmocka_unit_test(updates_are_those_that_see_all_samples),
        cmocka_unit_test(sizes_are_given_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
