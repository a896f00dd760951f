/* SPDX-License-Identifier: MIT
 *
 * The gradient of the recipes' networks on Fashion-MNIST under several micro-batches, at saved
 * states of a run.
 *
 *   splits [UPDATES ...]     compares after that many updates (0 if none is named), in rising order
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <stdlib.h>

enum { BATCH = 256, MOST_STATES = 8 };

static int states[MOST_STATES] = {0};
static int n_states = 1;

static qn_graph *model(const char *name)
{
    const qn_model_data data = {.channels = 1,
                                .height = 28,
                                .width = 28,
                                .classes = 10,
                                .mean = {0.286f},
                                .deviation = {0.353f}};
    qn_graph *graph = test_graph(QN_F32);
    assert_int_equal(qn_model_build(graph, name, &data, NULL, 0), QN_OK);
    return graph;
}

static struct test_run open_split(const qn_graph *graph, int64_t micro_batch)
{
    const qn_plan_params plan = {.budget = INT64_C(1) << 30,
                                 .batch = {BATCH},
                                 .micro_batch = micro_batch,
                                 .optimizer = {.name = "adamw"}};
    const qn_trainer_params trainer = {.seed = 3};
    return test_open(device, graph, &plan, &trainer);
}

static void copy_weights(qn_trainer *from, qn_trainer *to)
{
    qn_shape shape;
    const char *name;
    for (int i = 0; (name = qn_trainer_tensor(from, i, &shape)); i++) {
        int64_t count = 1;
        for (int d = 0; d < shape.rank; d++)
            count *= shape.dim[d];
        float *values = malloc((size_t)count * sizeof *values);
        assert_int_equal(qn_trainer_read(from, name, values, count), QN_OK);
        assert_int_equal(qn_trainer_write(to, name, values, count), QN_OK);
        free(values);
    }
}

static int64_t gradients(qn_trainer *trainer, qn_batch *batch, float **values)
{
    const qn_cycle cycle = {BATCH, 0, qn_batch_fetch, batch};
    assert_int_equal(qn_trainer_accumulate(trainer, &cycle), QN_OK);
    return test_read_gradients(trainer, values);
}

static void compare_state(struct test_run *whole, const qn_graph *graph, qn_batch *batch,
                          const int64_t *splits, double tolerance)
{
    float *reference;
    int64_t count = gradients(whole->trainer, batch, &reference);
    for (int i = 0; splits[i]; i++) {
        struct test_run run = open_split(graph, splits[i]);
        float *values;
        copy_weights(whole->trainer, run.trainer);
        assert_int_equal(gradients(run.trainer, batch, &values), count);
        double distance = test_distance(values, reference, count);
        print_message("  update %d, micro-batch %d against %d: %.3g\n",
                      (int)qn_trainer_updates(whole->trainer), (int)splits[i], BATCH, distance);
        assert_true(distance < tolerance);
        free(values);
        test_close(&run);
    }
    free(reference);
}

static void train_to(struct test_run *run, qn_loader *loader, qn_batch *batch, int update)
{
    const qn_cycle cycle = {BATCH, 0.002, qn_batch_fetch, batch};
    while (qn_trainer_updates(run->trainer) < update) {
        assert_int_equal(qn_loader_next(loader, BATCH, batch), QN_OK);
        assert_int_equal(qn_trainer_step(run->trainer, &cycle, NULL), QN_OK);
    }
    assert_int_equal(qn_trainer_finish(run->trainer, NULL), QN_OK);
    assert_int_equal(qn_loader_next(loader, BATCH, batch), QN_OK);
}

static void compare(const char *name, const int64_t *splits, double tolerance)
{
    qn_dataset *dataset;
    qn_loader *loader;
    qn_batch batch;
    const qn_dataset_params data = {.name = "fashion-mnist"};
    const qn_loader_params order = {.seed = 3, .max_samples = BATCH};
    assert_int_equal(qn_dataset_open(&dataset, &data), QN_OK);
    assert_int_equal(qn_loader_open(&loader, dataset, &order), QN_OK);
    qn_graph *graph = model(name);
    struct test_run run = open_split(graph, BATCH);
    for (int i = 0; i < n_states; i++) {
        train_to(&run, loader, &batch, states[i]);
        compare_state(&run, graph, &batch, splits, tolerance);
    }
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void convolutional_network(void **state)
{
    (void)state;
    compare("cnn", (const int64_t[]){64, 16, 0}, 1e-4);
}

static void perceptron(void **state)
{
    (void)state;
    compare("mlp", (const int64_t[]){64, 37, 1, 0}, 1e-5);
}

int main(int argc, char **argv)
{
    n_states = argc > 1 ? 0 : 1;
    for (int i = 1; i < argc && n_states < MOST_STATES; i++)
        states[n_states++] = atoi(argv[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutional_network),
        cmocka_unit_test(perceptron),
    };
    return cmocka_run_group_tests_name("splits", tests, open_device, close_device);
}
