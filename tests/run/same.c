/* SPDX-License-Identifier: MIT */
#include "../support/folder.h"

#include "same.h"
#include "base/shape.h"

#include <stdlib.h>

struct trained train(const qn_graph *graph, const qn_plan_params *params,
                     const qn_trainer_params *trainer, bool mixed)
{
    struct test_data data;
    struct trained result;
    test_data_make(&data, SAMPLES, WIDTH);
    if (largest_since)
        largest_since();
    struct test_run run = test_open(device, graph, params, trainer);
    for (int i = 0; i < UPDATES; i++)
        result.metrics[i] = test_train(run.trainer, &data, mixed && i % 2 ? FEWER : SAMPLES, 1);
    result.info = *qn_plan_facts(run.plan);
    if (largest_since)
        assert_int_equal(largest_since(), result.info.peak_bytes);
    result.count = test_weights(run.trainer, &result.weights);
    test_close(&run);
    test_data_free(&data);
    return result;
}

void assert_same(const struct trained *a, const struct trained *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weights, b->weights, (size_t)a->count * sizeof *a->weights);
    for (int i = 0; i < UPDATES; i++) {
        assert_false(a->metrics[i].skipped || b->metrics[i].skipped);
        assert_true(a->metrics[i].loss == b->metrics[i].loss);
        assert_true(a->metrics[i].grad_norm == b->metrics[i].grad_norm);
    }
}

void check_end(qn_trainer *trainer, struct trained *have, struct trained *want)
{
    have->count = test_weights(trainer, &have->weights);
    assert_same(have, want);
    free(have->weights);
    free(want->weights);
}

void check_fetch_fails(const qn_graph *graph, const qn_plan_params *params,
                       const qn_trainer_params *trainer, int stride)
{
    struct test_data data;
    struct trained want = train(graph, params, trainer, false), have;
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, &data};
    struct test_run run = test_open(device, graph, params, trainer);
    for (int i = 0; i < UPDATES; i++) {
        data.fail_at = data.fetched + 1 + stride * i;
        while (qn_trainer_step(run.trainer, &cycle, NULL) != QN_OK)
            data.fail_at = 0;
        assert_int_equal(qn_trainer_finish(run.trainer, &have.metrics[i]), QN_OK);
    }
    check_end(run.trainer, &have, &want);
    test_close(&run);
    test_data_free(&data);
}

struct test_run resume(const struct test_run *first, const qn_graph *graph)
{
    qn_checkpoint *checkpoint;
    char folder[FOLDER_BYTES];
    make_folder(folder);
    assert_int_equal(qn_checkpoint_save(first->trainer, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    struct test_run second = test_restore(device, graph, checkpoint);
    assert_true(qn_plan_facts(second.plan)->hash == qn_plan_facts(first->plan)->hash);
    qn_checkpoint_close(&checkpoint);
    remove_folder(folder);
    return second;
}

qn_plan_info check_resumes(const qn_graph *graph, const qn_plan_params *params,
                           const qn_trainer_params *trainer)
{
    struct test_data data;
    struct trained want = train(graph, params, trainer, false), have;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run first = test_open(device, graph, params, trainer);
    for (int i = 0; i < UPDATES / 2; i++)
        have.metrics[i] = test_train(first.trainer, &data, SAMPLES, 1);
    struct test_run second = resume(&first, graph);
    for (int i = UPDATES / 2; i < UPDATES; i++)
        have.metrics[i] = test_train(second.trainer, &data, SAMPLES, 1);
    have.info = *qn_plan_facts(second.plan);
    check_end(second.trainer, &have, &want);
    test_close(&first);
    test_close(&second);
    test_data_free(&data);
    return have.info;
}

int64_t stored_bytes(int64_t bytes)
{
    return qn_round_up(bytes, qn_device_facts(device)->alignment);
}

qn_plan_params smallest_early(const qn_graph *graph, const qn_plan_params *of)
{
    qn_plan_params params = *of;
    params.early_updates = true;
    params.budget = test_smallest_budget(device, graph, &params);
    return params;
}

void check_early(const qn_graph *graph, const qn_plan_params *params,
                 const qn_trainer_params *trainer)
{
    const qn_plan_params early = smallest_early(graph, params);
    struct trained a = train(graph, params, trainer, false);
    struct trained b = train(graph, &early, trainer, false);
    assert_true(b.info.early_updates && !a.info.early_updates);
    assert_same(&a, &b);
    free(a.weights);
    free(b.weights);
}

void check_budgets(const qn_graph *graph, const qn_plan_params *of,
                   const qn_trainer_params *trainer)
{
    struct test_data data;
    struct trained have;
    qn_plan_params params = *of;
    struct trained want = train(graph, &params, trainer, false);
    const int64_t budgets[] = {smallest_early(graph, of).budget, of->budget};
    params.early_updates = true;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &params, trainer);
    for (int i = 0; i < UPDATES; i++) {
        if (i) {
            assert_int_equal(qn_trainer_set_budget(run.trainer, budgets[(i - 1) % 2]), QN_OK);
            assert_int_equal(qn_plan_facts(qn_trainer_plan(run.trainer))->early_updates, i % 2);
        }
        have.metrics[i] = test_train(run.trainer, &data, SAMPLES, 1);
    }
    check_end(run.trainer, &have, &want);
    test_close(&run);
    test_data_free(&data);
}
