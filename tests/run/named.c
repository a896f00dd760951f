/* SPDX-License-Identifier: MIT
 *
 * Parameters by patterns of their names: what each gets of the learning rate and of weight decay,
 * and that frozen ones stay as they are and cost nothing but themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 16, WIDTH = 24, LAYERS = 4, COUNT = WIDTH * WIDTH };

static const double RATE = 0.125, DECAY = 0.25;

/* "layers.0.weight" and so on, without anything between them. */
static qn_graph *network(void)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    for (int i = 0; i < LAYERS; i++) {
        char weight[32], bias[32];
        snprintf(weight, sizeof weight, "layers.%d.weight", i);
        snprintf(bias, sizeof bias, "layers.%d.bias", i);
        x = qn_linear(graph, x, qn_parameter(graph, weight, 2, (int64_t[]){WIDTH, WIDTH}, &init),
                      qn_parameter(graph, bias, 1, (int64_t[]){WIDTH}, &init));
    }
    qn_loss(graph, qn_mean(graph, qn_tanh(graph, x), 1), "loss", NULL);
    return graph;
}

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = SAMPLES, .effort = QN_EFFORT_INSTANT};

struct expected {
    const char *name;
    double rate, decay;
    int count;
};

/* p - rate * (g + decay * p) of the one before. */
static void check_step(qn_trainer *trainer, struct test_data *data, const struct expected *e)
{
    const qn_cycle cycle = {SAMPLES, 0, test_fetch, data};
    static float before[COUNT], gradient[COUNT], after[COUNT];
    assert_int_equal(qn_trainer_accumulate(trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_read(trainer, e->name, before, e->count), QN_OK);
    assert_int_equal(qn_trainer_read_gradient(trainer, e->name, gradient, e->count), QN_OK);
    const qn_cycle update = {SAMPLES, RATE, test_fetch, data};
    assert_int_equal(qn_trainer_step(trainer, &update, NULL), QN_OK);
    assert_int_equal(qn_trainer_read(trainer, e->name, after, e->count), QN_OK);
    for (int i = 0; i < e->count; i++) {
        const double p = (double)before[i], g = (double)gradient[i];
        const double want = p - RATE * e->rate * (g + DECAY * e->decay * p);
        if (!(fabs((double)after[i] - want) < 1e-6))
            fail_msg("%s: element %d is %.9g, not %.9g", e->name, i, (double)after[i], want);
    }
}

static void each_has_its_factors(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {"layers.0.weight", 1, 1, COUNT},   {"layers.0.bias", 1, 0, WIDTH},
        {"layers.1.weight", 0.1, 1, COUNT}, {"layers.1.bias", 0.1, 2, WIDTH},
        {"layers.2.weight", 3, 0, COUNT},   {"layers.2.bias", 8, 0, WIDTH},
        {"layers.3.weight", 0, 1, COUNT},
    };
    struct test_data data;
    qn_graph *graph = network();
    qn_scale_rate(graph, "layers.1.*, layers.2.*", 0.1);
    qn_scale_rate(graph, "layers.2.weight", 3);
    qn_scale_rate(graph, "layers.2.b*", 8);
    qn_scale_rate(graph, "layers.3.weight", 0);
    qn_scale_decay(graph, "*.1.bias", 2);
    qn_scale_decay(graph, "*.2.weight", 0);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_trainer_params params = {.seed = 3, .weight_decay = DECAY};
    struct test_run run = test_open(device, graph, &base, &params);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        check_step(run.trainer, &data, &expected[i]);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

static qn_plan *plan_of(const char *frozen)
{
    qn_plan *plan;
    qn_graph *graph = network();
    qn_freeze_named(graph, frozen);
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &base, NULL), QN_OK);
    qn_graph_destroy(&graph);
    return plan;
}

/* The gradient of a weight is made of the input of its layer: with the later weights frozen no
 * input but the first is kept, and with the first ones frozen nothing goes back to them. */
static void frozen_ones_cost_nothing(void **state)
{
    (void)state;
    static const char *const frozen[] = {NULL, "layers.?.weight", "layers.0.*,layers.1.*"};
    const int64_t weight = COUNT * 4, row = SAMPLES * WIDTH * 4;
    qn_plan_info info[3];
    int steps[3];
    for (int i = 0; i < 3; i++) {
        qn_plan *plan = plan_of(frozen[i]);
        info[i] = *qn_plan_facts(plan);
        steps[i] = info[i].steps;
        print_message("  %s: %d steps, %d bytes kept, %d of gradients, %d spared\n",
                      frozen[i] ? frozen[i] : "nothing", steps[i],
                      (int)info[i].bytes_by_tag[QN_TAG_KEPT],
                      (int)info[i].bytes_by_tag[QN_TAG_GRADIENTS], (int)info[i].frozen_bytes);
        qn_plan_destroy(&plan);
    }
    assert_int_equal(info[0].frozen_tensors, 0);
    assert_int_equal(info[1].frozen_tensors, LAYERS);
    assert_int_equal(info[1].frozen_parameters, LAYERS * COUNT);
    assert_true(info[1].frozen_bytes >= LAYERS * weight);
    assert_int_equal(info[0].bytes_by_tag[QN_TAG_GRADIENTS] - info[1].frozen_bytes,
                     info[1].bytes_by_tag[QN_TAG_GRADIENTS]);
    assert_true(info[1].bytes_by_tag[QN_TAG_KEPT] <=
                info[0].bytes_by_tag[QN_TAG_KEPT] - (LAYERS - 2) * row);
    assert_int_equal(info[2].frozen_tensors, 4);
    assert_true(steps[2] <= steps[0] - 2 * 3 + 1); /* two layers back, but for the last's input */
}

static void frozen_ones_stay(void **state)
{
    (void)state;
    static const char *const frozen[] = {"layers.1.weight", "layers.2.bias"};
    static float before[2][COUNT], after[COUNT];
    struct test_data data;
    qn_graph *graph = network();
    qn_freeze_named(graph, "*.1.weight, *.2.bias");
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run =
        test_open(device, graph, &base, &(qn_trainer_params){.weight_decay = DECAY});
    for (int i = 0; i < 2; i++)
        qn_trainer_read(run.trainer, frozen[i], before[i], i ? WIDTH : COUNT);
    test_train(run.trainer, &data, SAMPLES, 3);
    for (int i = 0; i < 2; i++) {
        qn_trainer_read(run.trainer, frozen[i], after, i ? WIDTH : COUNT);
        assert_memory_equal(after, before[i], (size_t)(i ? WIDTH : COUNT) * sizeof *after);
        assert_int_equal(qn_trainer_read_gradient(run.trainer, frozen[i], after, i ? WIDTH : COUNT),
                         QN_ERR_ARGUMENT);
    }
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_factors),
        cmocka_unit_test(frozen_ones_cost_nothing),
        cmocka_unit_test(frozen_ones_stay),
    };
    return cmocka_run_group_tests_name("named", tests, open_device, close_device);
}
