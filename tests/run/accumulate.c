/* SPDX-License-Identifier: MIT
 *
 * Accumulation: the gradient of the whole effective batch, however it is split.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 21, SAMPLES = 256 };

static void splits_agree(const qn_graph *graph, int64_t samples, const int64_t *splits,
                         int n_splits, double tolerance)
{
    struct test_data data;
    float *whole = NULL;
    test_data_make(&data, samples, WIDTH);
    for (int i = 0; i < n_splits; i++) {
        const qn_plan_params params = {
            .budget = 64 << 20, .batch = {samples}, .micro_batch = splits[i]};
        struct test_run run = test_open(device, graph, &params, NULL);
        float *gradient;
        int64_t count = test_gradients(run.trainer, &data, samples, &gradient);
        if (whole) {
            double distance = test_distance(gradient, whole, count);
            print_message("  micro-batch %d: %.3g\n", (int)splits[i], distance);
            assert_true(distance < tolerance);
            free(gradient);
        } else {
            whole = gradient;
        }
        test_close(&run);
    }
    free(whole);
    test_data_free(&data);
}

static void any_split_with_ignored_labels(void **state)
{
    (void)state;
    static const int64_t splits[] = {256, 64, 37, 1};
    qn_graph *graph = test_mlp(WIDTH, false);
    splits_agree(graph, SAMPLES, splits, 4, 1e-5);
    qn_graph_destroy(&graph);
}

static void any_split_with_class_weights(void **state)
{
    (void)state;
    static const int64_t splits[] = {101, 100, 33, 7};
    qn_graph *graph = test_mlp(WIDTH, true);
    splits_agree(graph, 101, splits, 4, 1e-5);
    qn_graph_destroy(&graph);
}

/* What dropout draws for the probabilities belongs to the samples. */
static void any_split_with_attention(void **state)
{
    (void)state;
    enum { TOKENS = 5, HEADS = 4, KV_HEADS = 2, SIZE = 8, PACKED = (HEADS + 2 * KV_HEADS) * SIZE };
    static const int64_t splits[] = {30, 7, 1};
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){TOKENS * PACKED, WIDTH}, &init);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    x = qn_linear(graph, x, w, (qn_tensor){0});
    x = qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, TOKENS, PACKED});
    x = qn_attention(graph, x, (qn_tensor){0}, (qn_tensor){0}, (qn_tensor){0},
                     &(qn_attention_params){
                         .heads = HEADS, .kv_heads = KV_HEADS, .causal = true, .dropout = 0.3});
    qn_loss(graph, qn_mean(graph, qn_multiply(graph, x, x), 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    splits_agree(graph, 30, splits, 3, 1e-5);
    qn_graph_destroy(&graph);
}

/* What f16 multiplies its losses with is not part of the gradient. */
static void the_loss_scale_is_divided_out(void **state)
{
    (void)state;
    enum { COUNT = 8, SIDE = 8 };
    static const qn_dtype storages[] = {QN_F32, QN_F16, QN_BF16};
    struct test_data data;
    float *gradients[3];
    int64_t count = 0;
    test_data_make(&data, COUNT, SIDE * SIDE);
    for (int i = 0; i < 3; i++) {
        qn_graph *graph = test_cnn(storages[i]);
        const qn_plan_params params = {.budget = 64 << 20, .batch = {COUNT}};
        struct test_run run = test_open(device, graph, &params, NULL);
        count = test_gradients(run.trainer, &data, COUNT, &gradients[i]);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    assert_true(test_distance(gradients[1], gradients[0], count) < 0.01);
    assert_true(test_distance(gradients[2], gradients[0], count) < 0.08);
    for (int i = 0; i < 3; i++)
        free(gradients[i]);
    test_data_free(&data);
}

/* A weight that two layers share owns one accumulator. */
static void shared_and_frozen_parameters(void **state)
{
    (void)state;
    static const int64_t splits[] = {50, 13, 1};
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    qn_tensor frozen = qn_parameter(graph, "frozen", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    qn_freeze(graph, frozen);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    x = qn_tanh(graph, qn_linear(graph, x, w, (qn_tensor){0}));
    x = qn_linear(graph, x, frozen, (qn_tensor){0});
    x = qn_tanh(graph, qn_linear(graph, x, w, (qn_tensor){0}));
    qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    struct test_data data;
    test_data_make(&data, 50, WIDTH);
    float *whole = NULL;
    for (int i = 0; i < 3; i++) {
        const qn_plan_params params = {.budget = 64 << 20, .batch = {50}, .micro_batch = splits[i]};
        struct test_run run = test_open(device, graph, &params, NULL);
        const qn_cycle cycle = {50, 0, test_fetch, &data};
        float *gradient = malloc(WIDTH * WIDTH * sizeof *gradient);
        assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
        assert_int_equal(qn_trainer_read_gradient(run.trainer, "w", gradient, WIDTH * WIDTH),
                         QN_OK);
        assert_int_not_equal(
            qn_trainer_read_gradient(run.trainer, "frozen", gradient, WIDTH * WIDTH), QN_OK);
        if (whole)
            assert_true(test_distance(gradient, whole, WIDTH * WIDTH) < 1e-5);
        else
            whole = gradient;
        if (whole != gradient)
            free(gradient);
        test_close(&run);
    }
    free(whole);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* A model with a parameter that only its output reads trains as if that were not there. */
static qn_graph *with_unused(bool unused)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    x = qn_tanh(graph, qn_linear(graph, x, w, (qn_tensor){0}));
    qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    if (unused) {
        w = qn_parameter(graph, "unused", 2, (int64_t[]){WIDTH, WIDTH}, &init);
        qn_output(graph, qn_linear(graph, x, w, (qn_tensor){0}), "y");
    }
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void unused_parameters_stay_what_they_are(void **state)
{
    (void)state;
    enum { COUNT = WIDTH * WIDTH };
    struct test_data data;
    test_data_make(&data, 50, WIDTH);
    float before[COUNT], after[COUNT], learned[3][COUNT];
    qn_metrics last[3];
    for (int i = 0; i < 3; i++) {
        qn_graph *graph = with_unused(i > 0);
        const qn_plan_params params = {.budget = 64 << 20, .batch = {50}, .micro_batch = 20};
        const qn_trainer_params poison = {.poison = i == 2};
        struct test_run run = test_open(device, graph, &params, &poison);
        if (i)
            assert_int_equal(qn_trainer_read(run.trainer, "unused", before, COUNT), QN_OK);
        last[i] = test_train(run.trainer, &data, 50, 3);
        assert_int_equal(qn_trainer_read(run.trainer, "w", learned[i], COUNT), QN_OK);
        if (i) {
            assert_int_equal(qn_trainer_read(run.trainer, "unused", after, COUNT), QN_OK);
            assert_memory_equal(before, after, sizeof before);
            assert_memory_equal(learned[0], learned[i], sizeof before);
            assert_true(last[i].grad_norm == last[0].grad_norm);
            assert_int_equal(qn_trainer_read_gradient(run.trainer, "unused", after, COUNT),
                             QN_ERR_ARGUMENT);
        }
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    test_data_free(&data);
}

/* --- the classic toy case: y = w * x, mean squared error, six samples --- */

static qn_graph *dot_product(qn_reduction reduction)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init half = qn_init_constant(0.5);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){1, 4}, &half);
    qn_tensor y = qn_linear(graph, x, w, (qn_tensor){0});
    const qn_loss_params params = {.reduction = reduction};
    qn_loss(graph, qn_squared_error(graph, y, target), "loss", &params);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void accumulate_dot(struct test_data *data, int64_t first, int64_t samples, int64_t micro,
                           float gradient[4])
{
    qn_graph *graph = dot_product(QN_REDUCE_MEAN);
    struct test_data part = *data;
    part.x += first * data->width;
    part.target += first;
    part.samples = samples;
    const qn_plan_params params = {.budget = 1 << 20, .batch = {samples}, .micro_batch = micro};
    struct test_run run = test_open(device, graph, &params, NULL);
    const qn_cycle cycle = {samples, 0, test_fetch, &part};
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_read_gradient(run.trainer, "w", gradient, 4), QN_OK);
    test_close(&run);
    qn_graph_destroy(&graph);
}

static void unnormalised_accumulation_would_give_three_times(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, 6, 4);
    double exact[4] = {0};
    for (int i = 0; i < 6; i++) {
        double y = 0;
        for (int j = 0; j < 4; j++)
            y += 0.5 * (double)data.x[4 * i + j];
        for (int j = 0; j < 4; j++)
            exact[j] += 2 * (y - (double)data.target[i]) * (double)data.x[4 * i + j] / 6;
    }
    float whole[4], three[4], sum[4] = {0};
    accumulate_dot(&data, 0, 6, 6, whole);
    accumulate_dot(&data, 0, 6, 2, three);
    for (int part = 0; part < 3; part++) {
        float alone[4];
        accumulate_dot(&data, 2 * part, 2, 2, alone); /* the mean over two samples, by itself */
        for (int j = 0; j < 4; j++)
            sum[j] += alone[j];
    }
    for (int j = 0; j < 4; j++) {
        assert_true(fabs((double)whole[j] - exact[j]) < 1e-5);
        assert_true(fabs((double)three[j] - exact[j]) < 1e-5);
        assert_true(fabs((double)sum[j] - 3 * exact[j]) < 1e-5);
    }
    test_data_free(&data);
}

/* A sum is a sum: its gradient grows with the batch. */
static void sums_are_not_divided(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, 6, 4);
    float mean[4], sum[4];
    accumulate_dot(&data, 0, 6, 2, mean);
    qn_graph *graph = dot_product(QN_REDUCE_SUM);
    const qn_plan_params params = {.budget = 1 << 20, .batch = {6}, .micro_batch = 4};
    struct test_run run = test_open(device, graph, &params, NULL);
    const qn_cycle cycle = {6, 0, test_fetch, &data};
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_read_gradient(run.trainer, "w", sum, 4), QN_OK);
    for (int j = 0; j < 4; j++)
        assert_true(fabs((double)sum[j] - 6 * (double)mean[j]) < 1e-4);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* Rows weighed by an input: what weighs nothing counts nothing. */
static void weights_from_an_input(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, 6, 4);
    qn_graph *graph = test_graph(QN_F32);
    const qn_init half = qn_init_constant(0.5);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor mask = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){1, 4}, &half);
    const qn_loss_params loss = {.weights = mask};
    qn_loss(graph, qn_linear(graph, x, w, (qn_tensor){0}), "loss", &loss);
    double exact[4] = {0}, weight = 0;
    for (int i = 0; i < 6; i++) {
        data.target[i] = (float)(i % 3);
        weight += i % 3;
        for (int j = 0; j < 4; j++)
            exact[j] += i % 3 * (double)data.x[4 * i + j];
    }
    const qn_plan_params params = {.budget = 1 << 20, .batch = {6}, .micro_batch = 4};
    struct test_run run = test_open(device, graph, &params, NULL);
    const qn_cycle cycle = {6, 0, test_fetch, &data};
    float gradient[4];
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_read_gradient(run.trainer, "w", gradient, 4), QN_OK);
    for (int j = 0; j < 4; j++)
        assert_true(fabs((double)gradient[j] - exact[j] / weight) < 1e-5);
    for (int i = 0; i < 6; i++)
        data.target[i] = 0;
    qn_metrics metrics;
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
    assert_true(metrics.valid && metrics.skipped);
    assert_true(isnan(metrics.losses[0]) && metrics.loss == 0 && metrics.grad_norm == 0);
    float after[4];
    assert_int_equal(qn_trainer_read(run.trainer, "w", after, 4), QN_OK);
    assert_true(after[0] == 0.5f && after[3] == 0.5f);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* The mask belongs to the sample, not to the micro-step that it happens to be in. */
static void any_split_with_dropout(void **state)
{
    (void)state;
    static const int64_t splits[] = {64, 32, 13, 1};
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor w1 = qn_parameter(graph, "w1", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    qn_tensor w2 = qn_parameter(graph, "w2", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    x = qn_dropout(graph, qn_tanh(graph, qn_linear(graph, x, w1, (qn_tensor){0})), 0.5);
    x = qn_dropout(graph, qn_tanh(graph, qn_linear(graph, x, w2, (qn_tensor){0})), 0.3);
    qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    splits_agree(graph, 64, splits, 4, 1e-5);
    qn_graph_destroy(&graph);
}

/* The gradient of a cycle of a plan of one size or several. */
static int64_t gradient_of(const qn_graph *graph, const qn_plan_params *params,
                           struct test_data *data, int64_t samples, float **gradient)
{
    struct test_run run = test_open(device, graph, params, NULL);
    int64_t count = test_gradients(run.trainer, data, samples, gradient);
    test_close(&run);
    return count;
}

static void each_batch_size_is_as_if_alone(void **state)
{
    (void)state;
    static const int64_t sizes[] = {100, 7, SAMPLES};
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = test_mlp(WIDTH, true);
    const qn_plan_params all = {.budget = 64 << 20, .batch = {100, 7, SAMPLES}, .micro_batch = 64};
    for (int i = 0; i < 3; i++) {
        const qn_plan_params alone = {.budget = 64 << 20, .batch = {sizes[i]}, .micro_batch = 7};
        float *have, *want;
        int64_t count = gradient_of(graph, &all, &data, sizes[i], &have);
        assert_int_equal(gradient_of(graph, &alone, &data, sizes[i], &want), count);
        assert_true(test_distance(have, want, count) < 1e-5);
        free(have);
        free(want);
    }
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* --- samples of several rows --- */

enum { ROWS = 4, ROW_WIDTH = 6, ROW_SAMPLES = 16 };

/* x is (ROWS * batch, ROW_WIDTH): normalised in groups of two samples, thinned out, multiplied. */
static qn_graph *rows_of_samples(void)
{
    const qn_init init = qn_init_fan_in(ROW_WIDTH);
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){ROWS * QN_BATCH, ROW_WIDTH});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){1, ROW_WIDTH}, &init);
    x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                      &(qn_batch_norm_params){.group = 2});
    qn_name(graph, x, "bn");
    x = qn_linear(graph, qn_dropout(graph, x, 0.5), w, (qn_tensor){0});
    qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void check_running_mean(qn_trainer *trainer, const struct test_data *data)
{
    float mean[ROW_WIDTH];
    assert_int_equal(qn_trainer_read(trainer, "bn.running_mean", mean, ROW_WIDTH), QN_OK);
    for (int c = 0; c < ROW_WIDTH; c++) {
        double sum = 0;
        for (int row = 0; row < ROWS * ROW_SAMPLES; row++)
            sum += (double)data->x[row * ROW_WIDTH + c];
        assert_true(fabs((double)mean[c] - 0.1 * sum / (ROWS * ROW_SAMPLES)) < 1e-6);
    }
}

static void rows_of_a_sample_stay_together(void **state)
{
    (void)state;
    struct test_data data;
    float *whole = NULL;
    test_data_make(&data, ROW_SAMPLES, ROWS * ROW_WIDTH);
    qn_graph *graph = rows_of_samples();
    for (int64_t micro = 8; micro >= 2; micro /= 2) {
        const qn_plan_params params = {
            .budget = 1 << 20, .batch = {ROW_SAMPLES}, .micro_batch = micro};
        struct test_run run = test_open(device, graph, &params, NULL);
        float *gradient;
        int64_t count = test_gradients(run.trainer, &data, ROW_SAMPLES, &gradient);
        assert_true(!whole || test_distance(gradient, whole, count) < 1e-5);
        free(whole);
        whole = gradient;
        test_train(run.trainer, &data, ROW_SAMPLES, 1);
        check_running_mean(run.trainer, &data);
        test_close(&run);
    }
    free(whole);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* The effective batch may follow a schedule; each size of the plan trains. */
static void batch_sizes_follow_a_schedule(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = test_mlp(WIDTH, false);
    const qn_plan_params params = {.budget = 64 << 20, .batch = {100, 7, 256}, .micro_batch = 64};
    struct test_run run = test_open(device, graph, &params, NULL);
    qn_metrics first = test_train(run.trainer, &data, 7, 2);
    assert_int_equal(first.samples, 7);
    test_train(run.trainer, &data, 100, 2);
    qn_metrics last = test_train(run.trainer, &data, 256, 2);
    assert_int_equal(last.update, 5);
    assert_true(isfinite(last.loss));
    const qn_cycle unplanned = {99, 0, test_fetch, &data};
    assert_int_equal(qn_trainer_step(run.trainer, &unplanned, NULL), QN_ERR_ARGUMENT);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_with_ignored_labels),
        cmocka_unit_test(any_split_with_class_weights),
        cmocka_unit_test(any_split_with_attention),
        cmocka_unit_test(the_loss_scale_is_divided_out),
        cmocka_unit_test(shared_and_frozen_parameters),
        cmocka_unit_test(unused_parameters_stay_what_they_are),
        cmocka_unit_test(unnormalised_accumulation_would_give_three_times),
        cmocka_unit_test(sums_are_not_divided),
        cmocka_unit_test(weights_from_an_input),
        cmocka_unit_test(any_split_with_dropout),
        cmocka_unit_test(each_batch_size_is_as_if_alone),
        cmocka_unit_test(rows_of_a_sample_stay_together),
        cmocka_unit_test(batch_sizes_follow_a_schedule),
    };
    return cmocka_run_group_tests_name("accumulate", tests, open_device, close_device);
}
