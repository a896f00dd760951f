/* SPDX-License-Identifier: MIT
 *
 * The norm of a first micro-step's own gradient: that of a cycle of its samples alone, whatever the
 * storage, and at no bit of the training.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bed.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 36, MICRO = 8, UPDATES = 5 };

static const qn_plan_params plan = {.budget = 4 << 20,
                                    .batch = {BATCH, MICRO, MICRO + 4},
                                    .micro_batch = MICRO,
                                    .optimizer = {.name = "adamw"}};
static const qn_trainer_params trainer = {.seed = 4};

static qn_cycle cycle_of(int64_t samples, bool measure)
{
    return (qn_cycle){.samples = samples,
                      .lr = 0.01,
                      .fetch = test_fetch,
                      .user = &data,
                      .measure_noise = measure};
}

/* Labels that count, of each of the first samples on average. */
static double weight_of(int64_t samples)
{
    double sum = 0;
    for (int64_t i = 0; i < samples; i++)
        sum += data.labels[i] != TEST_IGNORED;
    return sum / (double)samples;
}

/* The first micro-step of a cycle against its samples alone, whose weights add up to another sum:
 * in f16 the gradients of activations are rounded otherwise. */
static void check_norm(const qn_metrics *cycle, const qn_metrics *alone, qn_dtype storage)
{
    const double want = alone->grad_norm * weight_of(MICRO) / weight_of(cycle->samples);
    assert_int_equal(cycle->micro_samples, MICRO);
    assert_true(fabs(cycle->micro_norm - want) < (storage == QN_F16 ? 1e-3 : 1e-5) * want);
}

/* One update of fresh parameters. */
static qn_metrics first_update(const qn_graph *net, int64_t samples, bool measure)
{
    struct test_run run = test_open(device, net, &plan, &trainer);
    const qn_cycle cycle = cycle_of(samples, measure);
    qn_metrics metrics;
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
    assert_true(metrics.valid);
    test_close(&run);
    return metrics;
}

static void it_is_the_norm_of_these_samples(void **state)
{
    static const qn_dtype storages[] = {QN_F32, QN_F16};
    (void)state;
    for (int i = 0; i < 2; i++) {
        qn_graph *net = test_cnn(storages[i]);
        const qn_metrics alone = first_update(net, MICRO, true);
        const qn_metrics whole = first_update(net, BATCH, true);
        const qn_metrics two = first_update(net, MICRO + 4, true);
        print_message("  %s: %.7g, alone %.7g; of the cycle %.7g\n", qn_dtype_name(storages[i]),
                      whole.micro_norm, alone.grad_norm, whole.grad_norm);
        check_norm(&whole, &alone, storages[i]);
        check_norm(&two, &alone, storages[i]);
        assert_true(whole.grad_norm < 0.95 * whole.micro_norm);
        assert_int_equal(alone.micro_samples, 0); /* the micro-step was the cycle */
        assert_true(alone.micro_norm == 0);
        const qn_metrics unasked = first_update(net, BATCH, false);
        assert_int_equal(unasked.micro_samples, 0);
        assert_true(unasked.grad_norm == whole.grad_norm);
        qn_graph_destroy(&net);
    }
}

/* Trains with a new budget in the middle, while figures are on their way; gives the weights. */
static int64_t train(bool measure, float **weights)
{
    struct test_run run = test_open(device, graph, &plan, &trainer);
    const qn_cycle cycle = cycle_of(BATCH, measure);
    qn_metrics previous;
    for (int i = 0; i < UPDATES; i++) {
        if (i == 3)
            assert_int_equal(qn_trainer_set_budget(run.trainer, 5 << 20), QN_OK);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, &previous), QN_OK);
        assert_int_equal(previous.micro_samples, measure && i ? MICRO : 0);
        assert_true(!measure || !i || (previous.micro_norm > 0 && isfinite(previous.micro_norm)));
    }
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, NULL), QN_OK);
    int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    return count;
}

static void no_bit_changes(void **state)
{
    (void)state;
    float *with, *without;
    int64_t count = train(false, &without);
    assert_int_equal(train(true, &with), count);
    assert_memory_equal(with, without, (size_t)count * sizeof *with);
    free(with);
    free(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_norm_of_these_samples),
        cmocka_unit_test(no_bit_changes),
    };
    return cmocka_run_group_tests(tests, open_bed, close_bed);
}
