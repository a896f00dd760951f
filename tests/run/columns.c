/* SPDX-License-Identifier: MIT
 *
 * A training on a dataset from arrays, and one from a function, beside the same training whose data
 * a callback of the caller's fetches: equal to the bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "data/order.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 30, WIDTH = 6, BATCH = 22, MICRO = 8, UPDATES = 6, SEED = 9 };

/* Samples of a cycle by hand: those that follow `position` in the order. */
struct by_hand {
    struct test_data *data;
    struct qn_order order;
    int64_t position;
};

static qn_device *device;
static qn_graph *graph;
static struct test_data data;

static qn_status fetch_by_hand(void *user, const char *input, int64_t first, int64_t count,
                               void *rows)
{
    struct by_hand *hand = user;
    const int64_t bytes = strcmp(input, "x") == 0 ? WIDTH * (int64_t)sizeof(float) : 4;
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = qn_order_at(&hand->order, hand->position + first + i);
        qn_status status = test_fetch(hand->data, input, sample, 1, (char *)rows + i * bytes);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    const struct test_data *from = user;
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = draws[i].sample;
        memcpy((float *)rows[0] + i * WIDTH, from->x + sample * WIDTH, WIDTH * sizeof(float));
        memcpy((int32_t *)rows[1] + i, from->labels + sample, sizeof *from->labels);
    }
    return QN_OK;
}

static struct test_run open_run(void)
{
    const qn_plan_params plan = {
        .budget = 1 << 20, .batch = {BATCH}, .micro_batch = MICRO, .optimizer = {.name = "adamw"}};
    const qn_trainer_params trainer = {.seed = 3};
    return test_open(device, graph, &plan, &trainer);
}

static int64_t end_run(struct test_run *run, float **weights)
{
    assert_int_equal(qn_trainer_finish(run->trainer, NULL), QN_OK);
    int64_t count = test_weights(run->trainer, weights);
    test_close(run);
    return count;
}

static int64_t train_by_hand(float **weights)
{
    struct by_hand hand = {.data = &data};
    struct test_run run = open_run();
    assert_int_equal(qn_order_make(&hand.order, SEED, COUNT, false, NULL), QN_OK);
    for (int i = 0; i < UPDATES; i++, hand.position += BATCH) {
        const qn_cycle cycle = {
            .samples = BATCH, .lr = 0.01, .fetch = fetch_by_hand, .user = &hand};
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    }
    qn_order_free(&hand.order);
    return end_run(&run, weights);
}

static int64_t train_on(qn_dataset *dataset, float **weights)
{
    const qn_loader_params params = {.seed = SEED, .max_samples = BATCH};
    struct test_run run = open_run();
    qn_loader *loader;
    qn_batch batch;
    assert_int_equal(qn_dataset_fits(dataset, graph, NULL), QN_OK);
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    for (int i = 0; i < UPDATES; i++) {
        const qn_cycle cycle = {
            .samples = BATCH, .lr = 0.01, .fetch = qn_batch_fetch, .user = &batch};
        assert_int_equal(qn_loader_next(loader, BATCH, &batch), QN_OK);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    }
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
    return end_run(&run, weights);
}

static void datasets_train_as_a_callback_does(void **state)
{
    (void)state;
    qn_column columns[] = {
        {.name = "x", .dtype = QN_F32, .shape = {1, {WIDTH}}, .data = data.x},
        {.name = "labels", .dtype = QN_I32, .data = data.labels, .classes = TEST_CLASSES},
    };
    const qn_array_params arrays = {.count = COUNT, .n_columns = 2, .columns = columns};
    qn_dataset *datasets[2];
    float *want, *have;
    assert_int_equal(qn_dataset_from_arrays(&datasets[0], &arrays), QN_OK);
    columns[0].data = columns[1].data = NULL;
    const qn_function_params function = {
        .count = COUNT, .n_columns = 2, .columns = columns, .fn = make_rows, .user = &data};
    assert_int_equal(qn_dataset_from_function(&datasets[1], &function), QN_OK);
    const int64_t count = train_by_hand(&want);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(train_on(datasets[i], &have), count);
        assert_memory_equal(have, want, (size_t)count * sizeof *want);
        free(have);
    }
    free(want);
}

static int open_all(void **state)
{
    (void)state;
    device = test_device();
    graph = test_mlp(WIDTH, false);
    test_data_make(&data, COUNT, WIDTH);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    test_data_free(&data);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datasets_train_as_a_callback_does),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
