/* SPDX-License-Identifier: MIT
 *
 * What a trainer refuses: numbers that cannot be trained with, and everything after an error of the
 * device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bed.h"

#include <math.h>

enum { SAMPLES = 16 };

static const qn_plan_params sixteen = {.budget = 64 << 20, .batch = {SAMPLES}};

static void parameters_are_checked(void **state)
{
    (void)state;
    static const qn_trainer_params wrong[] = {{.clip = -1},
                                              {.clip = (double)NAN},
                                              {.weight_decay = -1},
                                              {.weight_decay = (double)NAN},
                                              {.weight_decay = (double)INFINITY}};
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &sixteen, NULL), QN_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qn_trainer *trainer = (qn_trainer *)&data;
        assert_int_equal(qn_trainer_open(&trainer, device, plan, &wrong[i]), QN_ERR_ARGUMENT);
        assert_null(trainer);
    }
    qn_plan_destroy(&plan);
}

static void learning_rates_are_checked(void **state)
{
    (void)state;
    static const double wrong[] = {-0.1, (double)NAN, (double)INFINITY, 1e39};
    struct test_run run = test_open(device, graph, &sixteen, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const qn_cycle cycle = {SAMPLES, wrong[i], test_fetch, &data};
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    }
    assert_int_equal(qn_trainer_updates(run.trainer), 0);
    const qn_cycle cycle = {SAMPLES, 0, test_fetch, &data};
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    test_close(&run);
}

static qn_status lose(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    (void)input;
    (void)first;
    (void)count;
    (void)rows;
    return QN_ERR_DEVICE;
}

static void an_error_of_the_device_stays(void **state)
{
    (void)state;
    const qn_cycle good = {SAMPLES, 0.1, test_fetch, &data}, bad = {SAMPLES, 0.1, lose, &data};
    struct test_run run = test_open(device, graph, &sixteen, NULL);
    qn_trainer *trainer = run.trainer;
    qn_shape shape;
    const char *name = qn_trainer_tensor(trainer, 0, &shape);
    float values[4096];
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        count *= shape.dim[i];
    assert_in_range(count, 1, 4096);
    assert_int_equal(qn_trainer_step(trainer, &bad, NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_step(trainer, &good, NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_accumulate(trainer, &good), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_finish(trainer, NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_set_budget(trainer, 32 << 20), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_evaluate(trainer, 1, test_fetch, NULL, &data), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_read(trainer, name, values, count), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_write(trainer, name, values, count), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_read_gradient(trainer, name, values, count), QN_ERR_DEVICE);
    assert_int_equal(qn_checkpoint_save(trainer, "nowhere", NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_weights_load(trainer, "nowhere.safetensors"), QN_ERR_DEVICE);
    test_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(learning_rates_are_checked),
        cmocka_unit_test(an_error_of_the_device_stays),
    };
    return cmocka_run_group_tests_name("refused", tests, open_bed, close_bed);
}
