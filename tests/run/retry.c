/* SPDX-License-Identifier: MIT
 *
 * Data that cannot be fetched: the call fails, and the next one goes on as if it had never been.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bed.h"

#include <stdlib.h>

enum { SAMPLES = BED_SAMPLES, MOST_CALLS = 100 };

static const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, &data};

static struct test_run open_run(void)
{
    static const qn_plan_params plan = {.budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = 16};
    static const qn_trainer_params trainer = {.seed = 3};
    return test_open(device, graph, &plan, &trainer);
}

/* Runs a cycle; if `fail_at` is above 0, first one whose call of that number fails. Gives the calls
 * of the good one. */
static int run(qn_trainer *trainer, bool update, int fail_at)
{
    data.fail_at = fail_at ? data.fetched + fail_at : 0;
    if (fail_at)
        assert_int_equal(update ? qn_trainer_step(trainer, &cycle, NULL)
                                : qn_trainer_accumulate(trainer, &cycle),
                         QN_ERR_IO);
    int before = data.fetched;
    assert_int_equal(update ? qn_trainer_step(trainer, &cycle, NULL)
                            : qn_trainer_accumulate(trainer, &cycle),
                     QN_OK);
    return data.fetched - before;
}

/* Steps and accumulations in turn, each after a failure; gives the weights. */
static int64_t train(int fail_at, bool accumulate, float **weights, qn_metrics *last, int *calls)
{
    struct test_run test = open_run();
    for (int i = 0; i < 3; i++) {
        *calls = run(test.trainer, true, fail_at);
        if (accumulate)
            run(test.trainer, false, fail_at);
    }
    assert_int_equal(qn_trainer_updates(test.trainer), 3);
    assert_int_equal(qn_trainer_finish(test.trainer, last), QN_OK);
    int64_t count = test_weights(test.trainer, weights);
    test_close(&test);
    return count;
}

static void fail_everywhere(bool accumulate)
{
    float *want, *have;
    int calls;
    qn_metrics expected, last;
    int64_t count = train(0, accumulate, &want, &expected, &calls);
    assert_true(calls > 5 && calls < MOST_CALLS);
    for (int fail_at = 1, same; fail_at <= calls; fail_at++) {
        assert_int_equal(train(fail_at, accumulate, &have, &last, &same), count);
        assert_int_equal(same, calls);
        assert_memory_equal(have, want, (size_t)count * sizeof *have);
        assert_int_equal(last.valid, expected.valid);
        assert_true(last.loss == expected.loss && last.update == expected.update);
        free(have);
    }
    free(want);
}

static void steps_may_be_repeated(void **state)
{
    (void)state;
    fail_everywhere(false);
}

static void steps_and_accumulations_may_be_repeated(void **state)
{
    (void)state;
    fail_everywhere(true);
}

static void gradients_are_those_of_the_good_call(void **state)
{
    (void)state;
    struct test_run test = open_run();
    float *want, *have;
    int calls = run(test.trainer, false, 0);
    int64_t count = test_read_gradients(test.trainer, &want);
    for (int fail_at = 1; fail_at <= calls; fail_at++) {
        run(test.trainer, false, fail_at);
        assert_int_equal(test_read_gradients(test.trainer, &have), count);
        assert_memory_equal(have, want, (size_t)count * sizeof *have);
        free(have);
    }
    free(want);
    test_close(&test);
}

/* The metrics of an update wait for who asks, whatever runs before, and are given once. */
static void accumulations_keep_the_metrics(void **state)
{
    (void)state;
    struct test_run test = open_run();
    qn_metrics last;
    run(test.trainer, true, 0);
    run(test.trainer, false, 0);
    assert_int_equal(qn_trainer_finish(test.trainer, &last), QN_OK);
    assert_true(last.valid && last.update == 0 && last.samples == SAMPLES && last.loss > 0);
    assert_int_equal(qn_trainer_finish(test.trainer, &last), QN_OK);
    assert_false(last.valid);
    test_close(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_may_be_repeated),
        cmocka_unit_test(steps_and_accumulations_may_be_repeated),
        cmocka_unit_test(gradients_are_those_of_the_good_call),
        cmocka_unit_test(accumulations_keep_the_metrics),
    };
    return cmocka_run_group_tests_name("retry", tests, open_bed, close_bed);
}
