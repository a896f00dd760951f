/* SPDX-License-Identifier: MIT
 *
 * The same training whatever the plan: recompute, budget, pools, poison and fan-out change no bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 44, MICRO = 16, UPDATES = 4 };

/* Weights after some updates under a plan; the caller frees them. */
static int64_t train(qn_dtype storage, const qn_plan_params *params, bool poison, float **weights,
                     qn_plan_info *info)
{
    struct test_data data;
    qn_graph *graph = test_cnn(storage);
    const qn_trainer_params trainer = {
        .seed = 11, .weight_decay = 0.01, .clip = 1, .poison = poison};
    test_data_make(&data, SAMPLES, 64);
    struct test_run run = test_open(device, graph, params, &trainer);
    qn_metrics last = test_train(run.trainer, &data, SAMPLES, UPDATES);
    assert_true(isfinite(last.loss) && last.grad_norm > 0 && !last.skipped);
    int64_t count = test_weights(run.trainer, weights);
    if (info)
        *info = *qn_plan_facts(run.plan);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
    return count;
}

static void assert_same_bits(const float *a, const float *b, int64_t count)
{
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
}

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = MICRO, .optimizer = {.name = "adamw"}};

static void plans_change_no_bit(void **state)
{
    (void)state;
    float *keep;
    qn_plan_info kept;
    qn_plan_params params = base;
    params.recompute = QN_RECOMPUTE_NONE;
    int64_t count = train(QN_F32, &params, false, &keep, &kept);
    const struct {
        qn_recompute_mode mode;
        int64_t budget;
        const char *chosen;
        bool poison;
    } others[] = {
        {QN_RECOMPUTE_ALL, 64 << 20, NULL, false},
        {QN_RECOMPUTE_CHOSEN, 64 << 20, "conv1,conv3", false},
        {QN_RECOMPUTE_AUTO, kept.peak_bytes * 3 / 4, NULL, false},
        {QN_RECOMPUTE_AUTO, 0, NULL, false}, /* the smallest */
        {QN_RECOMPUTE_AUTO, 0, NULL, true},
        {QN_RECOMPUTE_NONE, 64 << 20, NULL, true},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        float *weights;
        qn_plan_info info;
        params.recompute = others[i].mode;
        params.chosen = others[i].chosen;
        params.budget = others[i].budget ? others[i].budget : kept.smallest_budget;
        qn_plan_info any;
        if (!others[i].budget) { /* of the automatic mode, which can go lower than keeping all */
            float *unused;
            params.budget = 64 << 20;
            train(QN_F32, &params, false, &unused, &any);
            free(unused);
            params.budget = any.smallest_budget;
        }
        assert_int_equal(train(QN_F32, &params, others[i].poison, &weights, &info), count);
        print_message("  plan of %d bytes, %d recomputed steps\n", (int)info.peak_bytes,
                      info.recomputed_steps);
        assert_same_bits(weights, keep, count);
        assert_true(info.recomputed_steps > 0 || others[i].mode == QN_RECOMPUTE_NONE);
        free(weights);
    }
    free(keep);
}

static void pools_change_no_bit(void **state)
{
    (void)state;
    float *one, *many;
    int64_t count = train(QN_F32, &base, false, &one, NULL);
    qn_device *whole = device;
    const qn_device_params small = {.max_alloc_bytes = 64 << 10};
    assert_int_equal(qn_device_open(&device, &small), QN_OK);
    qn_plan_info info;
    assert_int_equal(train(QN_F32, &base, false, &many, &info), count);
    assert_true(info.pools > 2);
    assert_same_bits(one, many, count);
    qn_device_close(&device);
    device = whole;
    free(one);
    free(many);
}

static void storage_types_train(void **state)
{
    (void)state;
    float *f32, *other;
    int64_t count = train(QN_F32, &base, false, &f32, NULL);
    const qn_dtype types[] = {QN_BF16, QN_F16};
    for (int i = 0; i < 2; i++) {
        float *again;
        assert_int_equal(train(types[i], &base, false, &other, NULL), count);
        double distance = test_distance(other, f32, count);
        print_message("  %s: %.3g from f32\n", qn_dtype_name(types[i]), distance);
        assert_true(distance > 0 && distance < 0.3);
        qn_plan_params params = base;
        params.recompute = QN_RECOMPUTE_ALL;
        train(types[i], &params, true, &again, NULL);
        assert_same_bits(other, again, count);
        free(again);
        free(other);
    }
    free(f32);
}

/* Two trainers take turns in one process and do not notice each other. */
static void trainers_side_by_side(void **state)
{
    (void)state;
    float *alone, *first, *second;
    int64_t count = train(QN_F32, &base, false, &alone, NULL);
    struct test_data data;
    qn_graph *graph = test_cnn(QN_F32);
    const qn_trainer_params trainer = {.seed = 11, .weight_decay = 0.01, .clip = 1};
    qn_device *other = test_device();
    test_data_make(&data, SAMPLES, 64);
    struct test_run a = test_open(device, graph, &base, &trainer);
    struct test_run b = test_open(other, graph, &base, &trainer);
    for (int i = 0; i < UPDATES; i++) {
        test_train(a.trainer, &data, SAMPLES, 1);
        test_train(b.trainer, &data, SAMPLES, 1);
    }
    test_weights(a.trainer, &first);
    test_weights(b.trainer, &second);
    assert_same_bits(first, alone, count);
    assert_same_bits(second, alone, count);
    test_close(&a);
    test_close(&b);
    qn_device_close(&other);
    qn_graph_destroy(&graph);
    test_data_free(&data);
    free(alone);
    free(first);
    free(second);
}

/* --- evaluation --- */

struct seen {
    struct test_data data;
    float logits[SAMPLES * TEST_CLASSES];
    int64_t rows;
};

static qn_status fetch_seen(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return test_fetch(&((struct seen *)user)->data, input, first, count, rows);
}

static qn_status keep_logits(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    struct seen *seen = user;
    assert_string_equal(name, "logits");
    memcpy(seen->logits + first * TEST_CLASSES, rows,
           (size_t)(count * TEST_CLASSES) * sizeof(float));
    seen->rows += count;
    return QN_OK;
}

/* In evaluation a sample's result depends on no other sample, so any micro-batch gives the same. */
static void evaluation_knows_no_micro_batch(void **state)
{
    (void)state;
    static struct seen seen[2];
    for (int i = 0; i < 2; i++) {
        qn_graph *graph = test_cnn(QN_F32);
        qn_plan_params params = base;
        params.micro_batch = i ? 4 : 16;
        const qn_trainer_params trainer = {.seed = 11};
        struct test_run run = test_open(device, graph, &params, &trainer);
        test_data_make(&seen[i].data, SAMPLES, 64);
        assert_int_equal(
            qn_trainer_evaluate(run.trainer, SAMPLES - 1, fetch_seen, keep_logits, &seen[i]),
            QN_OK);
        assert_int_equal(seen[i].rows, SAMPLES - 1);
        test_close(&run);
        qn_graph_destroy(&graph);
        test_data_free(&seen[i].data);
    }
    int64_t count = (SAMPLES - 1) * TEST_CLASSES;
    assert_true(test_distance(seen[0].logits, seen[1].logits, count) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_change_no_bit),
        cmocka_unit_test(pools_change_no_bit),
        cmocka_unit_test(storage_types_train),
        cmocka_unit_test(trainers_side_by_side),
        cmocka_unit_test(evaluation_knows_no_micro_batch),
    };
    return cmocka_run_group_tests_name("recompute", tests, open_device, close_device);
}
