/* SPDX-License-Identifier: MIT
 *
 * One tensor in several places of one operator: its gradient is the sum of what two tensors of the
 * same values would have in those places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 6, CHANNELS = 4, SIDE = 8, TOKENS = 4, WIDTH = CHANNELS * SIDE * SIDE };

static const qn_tensor none = {0};
static qn_device *device;

/* A network in the making: its operands are one tensor, or several of the same values. */
struct net {
    qn_graph *graph;
    qn_tensor x; /* (b, WIDTH) */
    bool one;
    int made; /* operands so far */
    qn_tensor parameter;
};

/* x plus a parameter of its own, or plus that of the first operand. */
static qn_tensor operand(struct net *net, int rank, const int64_t *dim)
{
    static const qn_init init = {QN_INIT_CONSTANT, 0.125, 0};
    char name[8];
    snprintf(name, sizeof name, "p%d", net->made);
    if (!net->one || !net->made)
        net->parameter = qn_parameter(net->graph, name, 1, (int64_t[]){WIDTH}, &init);
    net->made++;
    return qn_reshape(net->graph, qn_bias(net->graph, net->x, net->parameter), rank, dim);
}

/* The operand of the network that has one, and another one of the same values otherwise. */
static qn_tensor again(struct net *net, qn_tensor first, int rank, const int64_t *dim)
{
    return net->one ? first : operand(net, rank, dim);
}

static const int64_t image_dim[] = {QN_BATCH, CHANNELS, SIDE, SIDE},
                     token_dim[] = {QN_BATCH, TOKENS, WIDTH / TOKENS},
                     row_dim[] = {QN_BATCH, WIDTH};
#define AGAIN(first, of) again(net, first, sizeof of / sizeof *of, of)
#define OPERAND(of) operand(net, sizeof of / sizeof *of, of)

static const qn_attention_params heads = {.heads = 2, .causal = true};

static qn_tensor keys_and_values(struct net *net)
{
    qn_tensor q = qn_reshape(net->graph, qn_sigmoid(net->graph, net->x), 3, token_dim);
    qn_tensor k = OPERAND(token_dim), v = AGAIN(k, token_dim);
    return qn_attention(net->graph, q, k, v, none, &heads);
}

static qn_tensor all_of_attention(struct net *net)
{
    qn_tensor q = OPERAND(token_dim), k = AGAIN(q, token_dim), v = AGAIN(q, token_dim);
    return qn_attention(net->graph, q, k, v, none, &heads);
}

/* A view of a tensor is that tensor. */
static qn_tensor a_view_of_it(struct net *net)
{
    qn_tensor k = OPERAND(token_dim), v = AGAIN(k, token_dim);
    v = qn_reshape(net->graph, qn_flatten(net->graph, v), 3, token_dim);
    return qn_attention(net->graph, k, k, v, none, &heads);
}

static qn_tensor joined(struct net *net)
{
    qn_tensor a = OPERAND(image_dim), b = AGAIN(a, image_dim), c = AGAIN(a, image_dim);
    return qn_softmax(net->graph, qn_concat(net->graph, 3, (const qn_tensor[]){a, b, c}, 3));
}

static qn_tensor chained(struct net *net)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_SIGMOID, 0, 0, 0},
                                          {QN_CHAIN_MULTIPLY, QN_CHAIN_STEP, 1, 0}};
    qn_tensor a = OPERAND(image_dim), b = AGAIN(a, image_dim);
    return qn_chain(net->graph, (const qn_tensor[QN_CHAIN_INPUTS]){a, b}, steps, 2);
}

static qn_tensor multiplied(struct net *net)
{
    qn_tensor a = OPERAND(image_dim), b = AGAIN(a, image_dim);
    return qn_multiply(net->graph, a, b);
}

static qn_tensor gated_by_itself(struct net *net)
{
    qn_tensor a = OPERAND(image_dim), b = AGAIN(a, image_dim);
    return qn_gated(net->graph, a, b, QN_GATE_SILU);
}

static qn_tensor with_its_residual(struct net *net)
{
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor w = qn_parameter(net->graph, "w", 2, (int64_t[]){WIDTH, WIDTH}, &init);
    qn_tensor a = OPERAND(row_dim), b = AGAIN(a, row_dim);
    return qn_linear_residual(net->graph, a, w, none, b);
}

static qn_tensor convolved_twice(struct net *net)
{
    const qn_init init = qn_init_fan_in(9 * CHANNELS);
    const int64_t dim[] = {CHANNELS, 2 * CHANNELS, 3, 3};
    qn_tensor a = OPERAND(image_dim), b = AGAIN(a, image_dim);
    return qn_conv2d_concat(net->graph, a, b, qn_parameter(net->graph, "w", 4, dim, &init), none,
                            NULL);
}

static qn_tensor squared(struct net *net)
{
    qn_tensor a = OPERAND(token_dim), b = AGAIN(a, token_dim);
    return qn_batch_matmul(net->graph, a, b, &(qn_batch_matmul_params){.transpose_b = true});
}

/* --- weight and bias of a norm --- */

static void affine(struct net *net, int64_t count, qn_tensor *weight, qn_tensor *bias)
{
    const qn_init init = qn_init_constant(0.5);
    *weight = qn_parameter(net->graph, "p0", 1, &count, &init);
    *bias = net->one ? *weight : qn_parameter(net->graph, "p1", 1, &count, &init);
}

static qn_tensor batch_normed(struct net *net)
{
    qn_tensor weight, bias, x = qn_reshape(net->graph, net->x, 4, image_dim);
    affine(net, CHANNELS, &weight, &bias);
    return qn_batch_norm(net->graph, x, weight, bias, &(qn_batch_norm_params){.group = SAMPLES});
}

static qn_tensor layer_normed(struct net *net)
{
    qn_tensor weight, bias;
    affine(net, WIDTH, &weight, &bias);
    return qn_layer_norm(net->graph, net->x, weight, bias, NULL);
}

static qn_tensor group_normed(struct net *net)
{
    qn_tensor weight, bias, x = qn_reshape(net->graph, net->x, 4, image_dim);
    affine(net, CHANNELS, &weight, &bias);
    return qn_group_norm(net->graph, x, weight, bias, &(qn_group_norm_params){.groups = 2});
}

static const struct {
    const char *name;
    qn_tensor (*make)(struct net *net);
} makers[] = {
    {"attention to keys as values", keys_and_values},
    {"attention of a tensor to itself", all_of_attention},
    {"attention to a view", a_view_of_it},
    {"concat", joined},
    {"chain", chained},
    {"multiply", multiplied},
    {"gated", gated_by_itself},
    {"linear with its residual", with_its_residual},
    {"conv2d of two images", convolved_twice},
    {"batch_matmul", squared},
    {"batch_norm", batch_normed},
    {"layer_norm", layer_normed},
    {"group_norm", group_normed},
};

/* Gradients of p0, p1, ... added up, in micro-steps of 6, then 4 + 2. */
static void add_gradients(struct net *net, int maker, int64_t micro_batch, float sum[WIDTH])
{
    struct test_data data;
    qn_shape shape;
    const char *name;
    float gradient[WIDTH];
    *net = (struct net){.graph = test_graph(QN_F32), .one = net->one};
    net->x = qn_input(net->graph, "x", QN_F32, 2, row_dim);
    qn_tensor y = makers[maker].make(net);
    qn_loss(net->graph, qn_multiply(net->graph, y, y), "loss", NULL);
    assert_int_equal(qn_graph_status(net->graph), QN_OK);
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_plan_params params = {
        .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = micro_batch};
    struct test_run run = test_open(device, net->graph, &params, NULL);
    const qn_cycle cycle = {SAMPLES, 0, test_fetch, &data};
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    for (int i = 0; i < WIDTH; i++)
        sum[i] = 0;
    for (int t = 0; (name = qn_trainer_tensor(run.trainer, t, &shape)); t++) {
        if (name[0] != 'p')
            continue;
        assert_int_equal(qn_trainer_read_gradient(run.trainer, name, gradient, shape.dim[0]),
                         QN_OK);
        for (int i = 0; i < shape.dim[0]; i++)
            sum[i] += gradient[i];
    }
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&net->graph);
}

static void gradients_of_all_places_add_up(void **state)
{
    (void)state;
    for (int m = 0; m < (int)(sizeof makers / sizeof *makers); m++)
        for (int64_t micro_batch = SAMPLES; micro_batch >= 4; micro_batch -= 2) {
            struct net one = {.one = true}, several = {.one = false};
            float shared[WIDTH], apart[WIDTH];
            if (makers[m].make == batch_normed && micro_batch < SAMPLES)
                continue;
            add_gradients(&one, m, micro_batch, shared);
            add_gradients(&several, m, micro_batch, apart);
            const double distance = test_distance(shared, apart, WIDTH);
            if (!(distance < 1e-5))
                fail_msg("%s: %g away from the sum", makers[m].name, distance);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_of_all_places_add_up)};
    device = test_device();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    qn_device_close(&device);
    return failed;
}
