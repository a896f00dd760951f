/* SPDX-License-Identifier: MIT
 *
 * A budget that changes in the middle of a training: the same training, and never more bytes than
 * the larger of two budgets. Bytes are counted from outside where clcount is preloaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "counted.h"
#include "plan/plan.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 44, MICRO = 12, CHANGES = 10, UPDATES = 2 * (CHANGES + 1), MOST_POINTS = 400 };

struct trained {
    double loss[UPDATES];
    float *weights;
    int64_t count;
    int plans, micro_batches; /* changes of them */
};

struct watch {
    uint64_t hash;
    int64_t micro_batch, budget;
};

static struct watch look(const qn_trainer *trainer)
{
    const qn_plan_info *info = qn_plan_facts(qn_trainer_plan(trainer));
    return (struct watch){info->hash, info->micro_batch, info->budget_bytes};
}

static void change_budget(qn_trainer *trainer, int64_t budget, struct trained *result)
{
    const struct watch before = look(trainer);
    if (largest_since)
        assert_true(largest_since() <= (unsigned long long)before.budget);
    assert_int_equal(qn_trainer_set_budget(trainer, budget), QN_OK);
    const struct watch after = look(trainer);
    assert_int_equal(after.budget, budget);
    assert_true(qn_trainer_bytes(trainer) <= budget);
    if (largest_since)
        assert_true(largest_since() <=
                    (unsigned long long)(budget > before.budget ? budget : before.budget));
    result->plans += after.hash != before.hash;
    result->micro_batches += after.micro_batch != before.micro_batch;
}

/* Two updates with each budget; without budgets all of them with the first. */
static void train(const qn_graph *graph, const qn_plan_params *plan, const int64_t *budgets,
                  struct trained *result)
{
    struct test_data data;
    const qn_trainer_params params = {.seed = 11, .weight_decay = 0.01, .clip = 1};
    const qn_cycle cycle = {SAMPLES, 0.01, test_fetch, &data};
    *result = (struct trained){.count = 0};
    test_data_make(&data, SAMPLES, 64);
    struct test_run run = test_open(device, graph, plan, &params);
    for (int u = 0; u < UPDATES; u++) {
        qn_metrics previous;
        if (budgets && u && u % 2 == 0)
            change_budget(run.trainer, budgets[u / 2 - 1], result);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, &previous), QN_OK);
        assert_int_equal(previous.valid, u > 0);
        if (u)
            result->loss[u - 1] = previous.loss;
    }
    qn_metrics last;
    assert_int_equal(qn_trainer_finish(run.trainer, &last), QN_OK);
    result->loss[UPDATES - 1] = last.loss;
    result->count = test_weights(run.trainer, &result->weights);
    test_close(&run);
    test_data_free(&data);
}

/* Ten budgets, up and down along the frontier. */
static void pick_budgets(const qn_graph *graph, const qn_plan_params *params, int64_t *budgets)
{
    static const int parts[CHANGES] = {9, 0, 5, 2, 10, 1, 7, 3, 8, 4};
    static qn_plan_point points[MOST_POINTS];
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL), QN_OK);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    assert_in_range(count, 3, MOST_POINTS);
    for (int i = 0; i < CHANGES; i++)
        budgets[i] = points[parts[i] * (count - 1) / 10].bytes;
    qn_plan_destroy(&plan);
}

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .optimizer = {.name = "adamw"}};

static void same_bits_at_one_micro_batch(void **state)
{
    (void)state;
    static const qn_dtype storages[] = {QN_F32, QN_F16}; /* f16 has a loss scale to move */
    for (int i = 0; i < 2; i++) {
        int64_t budgets[CHANGES];
        struct trained calm, changing;
        qn_graph *graph = test_cnn(storages[i]);
        qn_plan_params params = base;
        params.micro_batch = MICRO;
        pick_budgets(graph, &params, budgets);
        train(graph, &params, NULL, &calm);
        train(graph, &params, budgets, &changing);
        print_message("  %d other plans\n", changing.plans);
        assert_true(changing.plans >= 5);
        assert_memory_equal(changing.loss, calm.loss, sizeof calm.loss);
        assert_memory_equal(changing.weights, calm.weights, (size_t)calm.count * sizeof(float));
        free(calm.weights);
        free(changing.weights);
        qn_graph_destroy(&graph);
    }
}

static void same_training_at_any_micro_batch(void **state)
{
    (void)state;
    int64_t budgets[CHANGES];
    struct trained calm, changing;
    qn_graph *graph = test_cnn(QN_F32);
    pick_budgets(graph, &base, budgets);
    train(graph, &base, NULL, &calm);
    train(graph, &base, budgets, &changing);
    print_message("  %d other plans, %d other micro-batches; weights differ by %.2g\n",
                  changing.plans, changing.micro_batches,
                  test_distance(changing.weights, calm.weights, calm.count));
    assert_true(changing.plans >= 5 && changing.micro_batches >= 2);
    for (int u = 0; u < UPDATES; u++)
        assert_true(fabs(changing.loss[u] - calm.loss[u]) <= 1e-4 * fabs(calm.loss[u]));
    assert_true(test_distance(changing.weights, calm.weights, calm.count) < 1e-3);
    free(calm.weights);
    free(changing.weights);
    qn_graph_destroy(&graph);
}

static void a_budget_for_which_there_is_no_plan(void **state)
{
    (void)state;
    struct test_data data;
    float *before, *after;
    qn_graph *graph = test_cnn(QN_F32);
    const qn_trainer_params params = {.seed = 11};
    test_data_make(&data, SAMPLES, 64);
    struct test_run run = test_open(device, graph, &base, &params);
    test_train(run.trainer, &data, SAMPLES, 2);
    const int64_t count = test_weights(run.trainer, &before);
    assert_int_equal(qn_trainer_set_budget(run.trainer, 1000), QN_ERR_BUDGET);
    assert_int_equal(qn_trainer_set_budget(run.trainer, 0), QN_ERR_ARGUMENT);
    assert_ptr_equal(qn_trainer_plan(run.trainer), run.plan);
    assert_int_equal(test_weights(run.trainer, &after), count);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    test_train(run.trainer, &data, SAMPLES, 2);
    assert_int_equal(qn_trainer_updates(run.trainer), 4);
    free(before);
    free(after);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* What the plan knows of a device is numbers: CLBlast is asked nothing when the budget changes. */
static void a_plan_outlives_the_device_it_was_made_with(void **state)
{
    (void)state;
    struct test_data data;
    qn_device *first = NULL;
    qn_plan *plan = NULL;
    qn_trainer *trainer = NULL;
    qn_graph *graph = test_cnn(QN_F32);
    qn_plan_params params = base;
    const qn_trainer_params trainer_params = {.seed = 11};
    params.variants = "linear=clblast";
    test_data_make(&data, SAMPLES, 64);
    assert_int_equal(qn_device_open(&first, NULL), QN_OK);
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(first), &params, NULL), QN_OK);
    assert_true(plan->program.blas_temp > 0);
    qn_device_close(&first);
    assert_int_equal(qn_trainer_open(&trainer, device, plan, &trainer_params), QN_OK);
    test_train(trainer, &data, SAMPLES, 1);
    assert_int_equal(qn_trainer_set_budget(trainer, qn_plan_facts(plan)->peak_bytes), QN_OK);
    test_train(trainer, &data, SAMPLES, 1);
    qn_trainer_close(&trainer);
    qn_plan_destroy(&plan);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_at_one_micro_batch),
        cmocka_unit_test(same_training_at_any_micro_batch),
        cmocka_unit_test(a_budget_for_which_there_is_no_plan),
        cmocka_unit_test(a_plan_outlives_the_device_it_was_made_with),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
