/* SPDX-License-Identifier: MIT
 *
 * Parameters that are updated as their gradients complete: the same training in fewer bytes. Bytes
 * are counted from outside where clcount is preloaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "same.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 72, MOST_POINTS = 400 };

/* --- graphs --- */

/* A weight and a bias of two layers, a bias that is frozen, a weight that is seen through a view;
 * two have several chunks. */
static qn_graph *shared_graph(qn_dtype storage)
{
    qn_graph *graph = test_graph(storage);
    const qn_init init = qn_init_fan_in(HIDDEN);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor in = qn_parameter(graph, "in", 2, (int64_t[]){HIDDEN, WIDTH}, &init);
    qn_tensor still = qn_parameter(graph, "still", 1, (int64_t[]){HIDDEN}, &init);
    qn_tensor tied = qn_parameter(graph, "tied", 2, (int64_t[]){HIDDEN, HIDDEN}, &init);
    qn_tensor bias = qn_parameter(graph, "bias", 1, (int64_t[]){HIDDEN}, &init);
    qn_tensor flat = qn_parameter(graph, "flat", 1, (int64_t[]){TEST_CLASSES * HIDDEN}, &init);
    qn_freeze(graph, still);
    qn_scale_rate(graph, "tied", 0.3);
    qn_scale_decay(graph, "bias", 2);
    x = qn_tanh(graph, qn_linear(graph, x, in, still));
    x = qn_tanh(graph, qn_linear(graph, x, tied, bias));
    x = qn_tanh(graph, qn_linear(graph, x, tied, bias));
    qn_tensor seen = qn_reshape(graph, flat, 2, (int64_t[]){TEST_CLASSES, HIDDEN});
    x = qn_linear(graph, x, seen, (qn_tensor){0});
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* Two losses with a weight each: "left" reads the target, "right" does not. */
static qn_graph *two_losses(void)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_tensor left = qn_parameter(graph, "left", 2, (int64_t[]){1, WIDTH}, &init);
    qn_tensor right = qn_parameter(graph, "right", 2, (int64_t[]){TEST_CLASSES, WIDTH}, &init);
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_squared_error(graph, qn_linear(graph, x, left, (qn_tensor){0}), target), "a",
            NULL);
    x = qn_linear(graph, x, right, (qn_tensor){0});
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "b", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* --- training --- */

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .effort = QN_EFFORT_INSTANT};
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

/* Of the plans with early updates the smallest or the fastest, as params for it alone. */
static qn_plan_params early(const qn_graph *graph, const qn_plan_params *params, bool fastest)
{
    static qn_plan_point points[MOST_POINTS];
    qn_plan_params found = *params;
    qn_plan *plan;
    found.early_updates = true;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &found, NULL), QN_OK);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    int point = fastest ? count - 1 : 0;
    while (point >= 0 && point < count && !points[point].early_updates)
        point += fastest ? -1 : 1;
    assert_in_range(point, 0, count - 2);
    found.budget = points[point].bytes;
    qn_plan_destroy(&plan);
    return found;
}

/* Keeping all with updates at the end, against early updates in the fewest and in many bytes. */
static void check(const qn_graph *graph, const qn_plan_params *params, bool mixed)
{
    struct trained want = train(graph, params, &trainer_params, mixed);
    for (int i = 0; i < 3; i++) {
        const qn_plan_params small = early(graph, params, i == 2);
        qn_trainer_params trainer = trainer_params;
        trainer.poison = i == 1;
        struct trained have = train(graph, &small, &trainer, mixed);
        assert_same(&have, &want);
        free(have.weights);
    }
    free(want.weights);
}

/* Every optimizer, the first with momentum and without. */
static void check_optimizers(qn_graph *graph)
{
    for (int i = -1; i < 0 || qn_optimizer_name(i); i++) {
        qn_plan_params params = base;
        params.optimizer = (qn_optimizer){.name = qn_optimizer_name(i)};
        if (i < 0)
            params.optimizer.momentum = 0.9;
        check(graph, &params, false);
    }
    qn_graph_destroy(&graph);
}

static void the_same_bits(void **state)
{
    (void)state;
    check_optimizers(test_cnn(QN_F32));
    check_optimizers(test_cnn(QN_BF16));
}

static void the_same_bits_of_shared_parameters(void **state)
{
    (void)state;
    check_optimizers(shared_graph(QN_F32));
    check_optimizers(shared_graph(QN_BF16));
}

static void the_same_bits_at_several_batch_sizes(void **state)
{
    (void)state;
    qn_graph *graph = shared_graph(QN_F32);
    qn_plan_params params = base;
    params.batch[1] = FEWER;
    params.optimizer.name = "adam";
    params.micro_batch = SAMPLES;
    check(graph, &params, true);
    qn_graph_destroy(&graph);
}

static void the_same_bits_in_small_pools(void **state)
{
    (void)state;
    qn_device *whole = device;
    const qn_device_params small = {.max_alloc_bytes = 24 << 10};
    assert_int_equal(qn_device_open(&device, &small), QN_OK);
    qn_graph *graph = shared_graph(QN_F32);
    check(graph, &base, false);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
    device = whole;
}

/* --- where there are none --- */

static bool offers_early(const qn_graph *graph, const qn_plan_params *params)
{
    static qn_plan_point points[MOST_POINTS];
    qn_plan *plan;
    bool any = false;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL), QN_OK);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    for (int i = 0; i < count; i++)
        any |= points[i].early_updates;
    qn_plan_destroy(&plan);
    return any;
}

static void only_where_they_can_be(void **state)
{
    (void)state;
    qn_graph *graph = shared_graph(QN_F32), *half = shared_graph(QN_F16);
    qn_plan_params params = base;
    assert_false(offers_early(graph, &params));
    params.early_updates = true;
    assert_true(offers_early(graph, &params));
    assert_false(offers_early(half, &params));
    params.micro_batch = SAMPLES;
    assert_true(offers_early(graph, &params));
    params.micro_batch = SAMPLES - 1;
    assert_false(offers_early(graph, &params));
    qn_graph_destroy(&graph);
    qn_graph_destroy(&half);
}

static void neither_clip_nor_gradients(void **state)
{
    (void)state;
    struct test_data data;
    float bias[HIDDEN];
    qn_trainer *trainer;
    qn_graph *graph = shared_graph(QN_F32);
    const qn_plan_params params = early(graph, &base, false);
    const qn_trainer_params clips = {.clip = 1};
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, &data};
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    assert_true(qn_plan_facts(run.plan)->early_updates);
    assert_int_equal(qn_trainer_open(&trainer, device, run.plan, &clips), QN_ERR_ARGUMENT);
    assert_null(trainer);
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_read_gradient(run.trainer, "bias", bias, HIDDEN), QN_ERR_ARGUMENT);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* --- what a training meets --- */

static void train_under_budgets(const qn_graph *graph, const qn_plan_params *params, double clip,
                                const int64_t *budgets, struct trained *result)
{
    struct test_data data;
    qn_trainer_params trainer = trainer_params;
    trainer.clip = clip;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, params, &trainer);
    for (int i = 0; i < UPDATES; i++) {
        result->metrics[i] = test_train(run.trainer, &data, SAMPLES, 1);
        if (i + 1 == UPDATES)
            break;
        const bool fits = qn_trainer_set_budget(run.trainer, budgets[i]) == QN_OK;
        assert_int_equal(fits, clip == 0 || i == 1);
        assert_int_equal(qn_plan_facts(qn_trainer_plan(run.trainer))->early_updates,
                         clip == 0 && i != 1);
    }
    result->count = test_weights(run.trainer, &result->weights);
    test_close(&run);
    test_data_free(&data);
}

/* A trainer that clips gets no plan with early updates, and where there is no other the old one
 * goes on. */
static void a_budget_that_changes(void **state)
{
    (void)state;
    struct trained have;
    qn_graph *graph = test_cnn(QN_F32);
    qn_plan_params params = base;
    params.optimizer.name = "adamw";
    params.micro_batch = SAMPLES;
    const int64_t budgets[] = {early(graph, &params, false).budget, base.budget,
                               early(graph, &params, true).budget};
    struct trained want = train(graph, &params, &trainer_params, false);
    params.early_updates = true;
    for (int clips = 0; clips < 2; clips++) {
        train_under_budgets(graph, &params, clips ? INFINITY : 0, budgets, &have);
        assert_same(&have, &want);
        free(have.weights);
    }
    free(want.weights);
    qn_graph_destroy(&graph);
}

/* Each as one of its elements; every element has a gradient. */
struct sides {
    float left, right;
};

static struct sides read_sides(qn_trainer *trainer)
{
    float left[WIDTH], right[TEST_CLASSES * WIDTH];
    assert_int_equal(qn_trainer_read(trainer, "left", left, WIDTH), QN_OK);
    assert_int_equal(qn_trainer_read(trainer, "right", right, TEST_CLASSES * WIDTH), QN_OK);
    return (struct sides){left[1], right[1]};
}

/* The left gradient is not finite in two updates, and then it is. */
static void a_gradient_that_is_not_finite(void **state)
{
    (void)state;
    qn_graph *graph = two_losses();
    const qn_plan_params plans[] = {base, early(graph, &base, true)};
    for (int is_early = 0; is_early < 2; is_early++) {
        struct test_data data;
        test_data_make(&data, SAMPLES, WIDTH);
        struct test_run run = test_open(device, graph, &plans[is_early], &trainer_params);
        const float good = data.target[3];
        for (int i = 0; i < 3; i++) {
            data.target[3] = i < 2 ? NAN : good;
            const struct sides before = read_sides(run.trainer);
            assert_int_equal(test_train(run.trainer, &data, SAMPLES, 1).skipped, i < 2);
            const struct sides after = read_sides(run.trainer);
            assert_true(isfinite(after.left) && isfinite(after.right));
            assert_int_equal(after.left != before.left, i == 2);
            assert_int_equal(after.right != before.right, i == 2 || is_early);
        }
        test_close(&run);
        test_data_free(&data);
    }
    qn_graph_destroy(&graph);
}

/* No parameter has changed when the last of the samples are fetched. */
static void data_that_cannot_be_fetched(void **state)
{
    (void)state;
    qn_graph *graph = shared_graph(QN_F32);
    const qn_plan_params params = early(graph, &base, false);
    check_fetch_fails(graph, &params, &trainer_params, 1);
    qn_graph_destroy(&graph);
}

static void goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    qn_graph *graph = shared_graph(QN_F32);
    qn_plan_params params = base;
    params.optimizer.name = "adam";
    params = early(graph, &params, false);
    assert_true(check_resumes(graph, &params, &trainer_params).early_updates);
    qn_graph_destroy(&graph);
}

/* Updates are told apart from the backward pass that they are in. */
static void count_updates(void *user, const qn_profile_step *step)
{
    int *updates = user;
    if (step->kind == QN_PROFILE_UPDATE && strcmp(step->group, "step") == 0)
        ++*updates;
}

static void a_profile_shows_them(void **state)
{
    (void)state;
    struct test_data data;
    int updates = 0;
    qn_graph *graph = shared_graph(QN_F32);
    const qn_plan_params params = early(graph, &base, true);
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    qn_trainer_profile(run.trainer, count_updates, &updates);
    test_train(run.trainer, &data, SAMPLES, 1);
    assert_int_equal(updates, 4); /* in, tied, bias, flat */
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(the_same_bits_of_shared_parameters),
        cmocka_unit_test(the_same_bits_at_several_batch_sizes),
        cmocka_unit_test(the_same_bits_in_small_pools),
        cmocka_unit_test(only_where_they_can_be),
        cmocka_unit_test(neither_clip_nor_gradients),
        cmocka_unit_test(a_budget_that_changes),
        cmocka_unit_test(a_gradient_that_is_not_finite),
        cmocka_unit_test(data_that_cannot_be_fetched),
        cmocka_unit_test(goes_on_from_a_checkpoint),
        cmocka_unit_test(a_profile_shows_them),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
