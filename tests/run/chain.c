/* SPDX-License-Identifier: MIT
 *
 * A chain gives the bits of the operators that it stands for, in f32: three networks, one with
 * chains, one whose plan makes them, one where it cannot, are trained alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <stdlib.h>
#include <string.h>

/* Rows of no whole vectors, and more of them than a block. */
enum { WIDTH = 37, SAMPLES = 150 };

#define S(k) (QN_CHAIN_STEP + (k))
static const qn_tensor none = {0};

enum way { CHAINS, FUSED, ALONE };

/* What is an output is no inner value of a chain. */
static qn_tensor inner(qn_graph *graph, qn_tensor x, enum way way)
{
    if (way == ALONE)
        qn_output(graph, x, NULL);
    return x;
}

static qn_tensor bias_gelu(qn_graph *graph, qn_tensor x, qn_tensor bias, enum way way)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_ADD, 0, QN_CHAIN_BIAS, 0},
                                          {QN_CHAIN_GELU, S(0), 0, 0}};
    const qn_tensor in[QN_CHAIN_INPUTS] = {x, [QN_CHAIN_BIAS] = bias};
    return way == CHAINS
               ? qn_chain(graph, in, steps, 2)
               : qn_gelu(graph, inner(graph, qn_bias(graph, x, bias), way), QN_GELU_EXACT);
}

static qn_tensor gate(qn_graph *graph, qn_tensor x, qn_tensor y, enum way way)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_SILU, 0, 0, 0},
                                          {QN_CHAIN_MULTIPLY, S(0), 1, 0}};
    const qn_tensor in[QN_CHAIN_INPUTS] = {x, y};
    return way == CHAINS ? qn_chain(graph, in, steps, 2)
                         : qn_multiply(graph, inner(graph, qn_silu(graph, x), way), y);
}

/* A sum of products, which a compiler would like to round once. */
static qn_tensor blend(qn_graph *graph, qn_tensor x, qn_tensor y, enum way way)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_SCALE, 0, 0, 0.7},
                                          {QN_CHAIN_ADD, S(0), 1, 0},
                                          {QN_CHAIN_LEAKY_RELU, S(1), 0, 0.3},
                                          {QN_CHAIN_GELU_TANH, S(2), 0, 0}};
    const qn_tensor in[QN_CHAIN_INPUTS] = {x, y};
    if (way == CHAINS)
        return qn_chain(graph, in, steps, 4);
    x = inner(graph, qn_scale(graph, x, 0.7), way);
    x = inner(graph, qn_add(graph, x, y), way);
    x = inner(graph, qn_leaky_relu(graph, x, 0.3), way);
    return qn_gelu(graph, x, QN_GELU_TANH);
}

static qn_tensor add_relu(qn_graph *graph, qn_tensor x, qn_tensor y, enum way way)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_ADD, 0, 1, 0}, {QN_CHAIN_RELU, S(0), 0, 0}};
    const qn_tensor in[QN_CHAIN_INPUTS] = {x, y};
    return way == CHAINS ? qn_chain(graph, in, steps, 2)
                         : qn_relu(graph, inner(graph, qn_add(graph, x, y), way));
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t out)
{
    const qn_init init = qn_init_fan_in(WIDTH);
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, WIDTH}, &init), none);
}

/* Every tensor but the last has several readers: their gradients add up. */
static qn_graph *network(enum way way)
{
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor bias = qn_parameter(graph, "bias", 1, (int64_t[]){WIDTH}, &init);
    qn_tensor a = bias_gelu(graph, dense(graph, x, "w1", WIDTH), bias, way);
    qn_tensor b = gate(graph, dense(graph, a, "w2", WIDTH), a, way);
    qn_tensor c = blend(graph, dense(graph, b, "w3", WIDTH), a, way);
    qn_tensor d = add_relu(graph, dense(graph, c, "w4", WIDTH), b, way);
    d = dense(graph, d, "w5", TEST_CLASSES);
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, d, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* Gives the number of weights, and of the steps of a micro-step. */
static int64_t train(qn_device *device, enum way way, struct test_data *data, float **weights,
                     int *steps)
{
    qn_graph *graph = network(way);
    const qn_plan_params plan = {
        .budget = INT64_C(1) << 24, .batch = {SAMPLES}, .micro_batch = SAMPLES - 30};
    const qn_trainer_params trainer = {.seed = 5};
    struct test_run run = test_open(device, graph, &plan, &trainer);
    test_train(run.trainer, data, SAMPLES, 4);
    int64_t count = test_weights(run.trainer, weights);
    *steps = qn_plan_facts(run.plan)->steps;
    test_close(&run);
    qn_graph_destroy(&graph);
    return count;
}

static void assert_same_bits(const float *with, const float *without, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(with + i, without + i, sizeof *with) != 0)
            fail_msg("weight %lld of %lld: %.9g with chains, %.9g without", (long long)i,
                     (long long)count, (double)with[i], (double)without[i]);
}

static void same_bits(void **state)
{
    (void)state;
    qn_device *device = test_device();
    struct test_data data;
    float *weights[3];
    int steps[3];
    test_data_make(&data, SAMPLES, WIDTH);
    int64_t count = train(device, ALONE, &data, &weights[ALONE], &steps[ALONE]);
    for (enum way way = CHAINS; way <= FUSED; way++) {
        assert_int_equal(train(device, way, &data, &weights[way], &steps[way]), count);
        assert_same_bits(weights[way], weights[ALONE], count);
        free(weights[way]);
    }
    assert_true(steps[CHAINS] < steps[ALONE]);
    assert_true(steps[FUSED] < steps[ALONE]);
    free(weights[ALONE]);
    test_data_free(&data);
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
