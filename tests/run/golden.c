/* SPDX-License-Identifier: MIT
 *
 * A few updates of a small network beside PyTorch's figures (tools/golden/training.py), in one
 * micro-step and in several.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 12, UPDATES = 6 };

struct golden {
    const char *name;
    double loss[UPDATES], norm[UPDATES], mean[4], variance[4], bias[TEST_CLASSES];
};

#include "../golden/training.h"

static const qn_optimizer optimizers[] = {
    {.name = "sgd", .momentum = 0.9},
    {.name = "sgd", .momentum = 0.9, .nesterov = true},
    {.name = "adam"},
    {.name = "adamw", .beta1 = 0.8, .beta2 = 0.95},
    {.name = "adafactor"},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };
/* 1 / sqrt(5) is below that of adafactor. */
static const double rates[OPTIMIZERS] = {0.1, 0.1, 0.02, 0.02, 0.45};

static const struct {
    const char *name;
    int rank;
    int64_t dim[4];
} parameters[] = {
    {"conv1.weight", 4, {4, 1, 3, 3}},
    {"bn.weight", 1, {4}},
    {"bn.bias", 1, {4}},
    {"conv2.weight", 4, {6, 2, 3, 3}},
    {"conv2.bias", 1, {6}},
    {"fc.weight", 2, {5, 24}},
    {"fc.bias", 1, {5}},
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

static void sines(float *values, int64_t count, double step, double amplitude)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(amplitude * sin(step * (double)(i + 1)));
}

static qn_graph *network(void)
{
    static const float class_weights[TEST_CLASSES] = {0.5f, 1, 2, 1.5f, 0.25f};
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor p[N_PARAMETERS];
    for (int i = 0; i < N_PARAMETERS; i++)
        p[i] = qn_parameter(graph, parameters[i].name, parameters[i].rank, parameters[i].dim, NULL);
    qn_tensor x = qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 1, 8, 8});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = qn_conv2d(graph, x, p[0], (qn_tensor){0}, &(qn_conv2d_params){.padding = {1, 1}});
    x = qn_batch_norm(graph, x, p[1], p[2], &(qn_batch_norm_params){.group = SAMPLES});
    qn_name(graph, x, "bn");
    x = qn_max_pool2d(graph, qn_relu(graph, x), &(qn_pool2d_params){.size = {2, 2}});
    x = qn_tanh(graph,
                qn_conv2d(graph, x, p[3], p[4],
                          &(qn_conv2d_params){.stride = {2, 2}, .padding = {1, 1}, .groups = 2}));
    x = qn_linear(graph, qn_flatten(graph, x), p[5], p[6]);
    const qn_cross_entropy_params loss = {
        .ignore = true, .ignore_label = 99, .label_smoothing = 0.1, .class_weights = class_weights};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &loss), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void set_parameters(qn_trainer *trainer)
{
    float values[256];
    for (int i = 0; i < N_PARAMETERS; i++) {
        int64_t count = 1;
        for (int d = 0; d < parameters[i].rank; d++)
            count *= parameters[i].dim[d];
        sines(values, count, 0.7 + 0.31 * i, 0.4);
        for (int64_t e = 0; strcmp(parameters[i].name, "bn.weight") == 0 && e < count; e++)
            values[e] += 1;
        assert_int_equal(qn_trainer_write(trainer, parameters[i].name, values, count), QN_OK);
    }
}

static void make_data(struct test_data *data)
{
    test_data_make(data, SAMPLES, 64);
    sines(data->x, SAMPLES * 64, 0.713, 1);
    for (int i = 0; i < SAMPLES; i++)
        data->labels[i] = i % 4 ? 3 * i % TEST_CLASSES : 99;
}

static void assert_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-4 * fabs(want) + 2e-5))
        fail_msg("%s: got %.9g, PyTorch has %.9g", what, got, want);
}

static void assert_tensor(qn_trainer *trainer, const char *name, const double *want, int count)
{
    float values[8];
    assert_int_equal(qn_trainer_read(trainer, name, values, count), QN_OK);
    for (int i = 0; i < count; i++)
        assert_near(name, (double)values[i], want[i]);
}

static void compare(qn_device *device, int which)
{
    struct test_data data;
    qn_graph *graph = network();
    const qn_plan_params plan = {
        .budget = 16 << 20, .batch = {SAMPLES}, .optimizer = optimizers[which]};
    const qn_trainer_params trainer = {.weight_decay = 0.01, .clip = 0.5};
    struct test_run run = test_open(device, graph, &plan, &trainer);
    const qn_cycle cycle = {SAMPLES, rates[which], test_fetch, &data};
    make_data(&data);
    set_parameters(run.trainer);
    for (int i = 0; i < UPDATES; i++) {
        qn_metrics metrics;
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        assert_near("loss", metrics.loss, golden[which].loss[i]);
        assert_near("gradient norm", metrics.grad_norm, golden[which].norm[i]);
    }
    assert_tensor(run.trainer, "bn.running_mean", golden[which].mean, 4);
    assert_tensor(run.trainer, "bn.running_var", golden[which].variance, 4);
    assert_tensor(run.trainer, "fc.bias", golden[which].bias, TEST_CLASSES);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

static void equals_pytorch(void **state)
{
    (void)state;
    qn_device *device = test_device();
    for (int i = 0; i < OPTIMIZERS; i++) {
        print_message("  %s\n", golden[i].name);
        compare(device, i);
    }
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_pytorch)};
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
