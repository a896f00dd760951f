/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "runs.h"

#include <string.h>

float x_at(int64_t sample, int64_t i)
{
    return (float)qn_random_normal(7, (uint64_t)sample, (uint64_t)i);
}

void fill_rows(int64_t first, int64_t count, int64_t width, float *rows)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < width; k++)
            rows[i * width + k] = x_at(first + i, k);
}

qn_status fetch_inputs(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    if (strcmp(input, "index") == 0) {
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)rows)[i] = (int32_t)(first + i);
    } else if (strcmp(input, "target") == 0) {
        for (int64_t i = 0; i < count; i++)
            ((float *)rows)[i] = x_at(first + i, -1);
    } else {
        assert_string_equal(input, "x");
        fill_rows(first, count, WIDE, rows);
    }
    return QN_OK;
}

qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    const qn_init init = qn_init_fan_in(in);
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, in}, &init),
                     (qn_tensor){0});
}

struct test_run open_runs(const qn_run_list *list, const qn_plan_params *params,
                          const qn_trainer_params *trainer)
{
    struct test_run run;
    assert_int_equal(qn_plan_create_runs(&run.plan, list, qn_device_facts(device), params, NULL),
                     QN_OK);
    if (largest_since)
        largest_since();
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, trainer), QN_OK);
    return run;
}

void close_counted(struct test_run *run)
{
    const qn_plan_info *info = qn_plan_facts(run->plan);
    assert_true(info->peak_bytes <= info->budget_bytes);
    if (largest_since)
        assert_int_equal(largest_since(), info->peak_bytes);
    test_close(run);
}

void train_updates(qn_trainer *trainer, const qn_cycle *cycle, int updates)
{
    for (int i = 0; i < updates; i++)
        assert_int_equal(qn_trainer_step(trainer, cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(trainer, NULL), QN_OK);
}

float *cycle_gradient(const qn_run_list *list, const qn_plan_params *params,
                      const qn_trainer_params *trainer, const qn_cycle *cycle, int64_t *count)
{
    struct test_run run = open_runs(list, params, trainer);
    float *gradient;
    assert_int_equal(qn_trainer_accumulate(run.trainer, cycle), QN_OK);
    *count = test_read_gradients(run.trainer, &gradient);
    close_counted(&run);
    return gradient;
}
