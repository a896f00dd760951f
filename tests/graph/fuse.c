/* SPDX-License-Identifier: MIT
 *
 * Which elementwise operators become one node, and which batch norms take a ReLU in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "op/batch_norm.h"
#include "op/chain.h"
#include <quern/ops.h>

#include <stdio.h>
#include <string.h>

static const qn_tensor none = {0};

struct net {
    qn_graph *graph;
    qn_tensor x, y; /* (b, 6), each the result of a softmax */
};

static struct net open_net(void)
{
    struct net net;
    assert_int_equal(qn_graph_create(&net.graph, NULL), QN_OK);
    qn_tensor in = qn_input(net.graph, "in", QN_F32, 2, (int64_t[]){QN_BATCH, 6});
    qn_tensor w = qn_parameter(net.graph, "w", 2, (int64_t[]){6, 6}, NULL);
    in = qn_linear(net.graph, in, w, none);
    net.x = qn_softmax(net.graph, in);
    net.y = qn_softmax(net.graph, in);
    return net;
}

/* What lies between the fields of a shape is anything. */
static void fill_padding(qn_graph *graph)
{
    for (int i = 0; i < graph->n_tensors; i++) {
        struct qn_shape *shape = &graph->tensors[i].symbolic.shape, copy = *shape;
        memset(shape, i, sizeof *shape);
        shape->rank = copy.rank;
        memcpy(shape->dim, copy.dim, sizeof copy.dim);
    }
}

/* Ends the network with a loss of `last`, fuses it and gives the node that made `last`. */
static const struct qn_node *fused(struct net *net, qn_tensor last)
{
    qn_loss(net->graph, last, "loss", NULL);
    assert_int_equal(qn_graph_status(net->graph), QN_OK);
    fill_padding(net->graph);
    assert_true(qn_graph_fuse(net->graph));
    return &net->graph->nodes[net->graph->tensors[last.id].node];
}

/* The steps of the chain as "add 0 1, relu 8"; "" if the node is none. */
static const char *steps_of(const struct qn_node *node, char text[200])
{
    static const char *const names[] = {"relu", "leaky_relu", "sigmoid",  "tanh",
                                        "gelu", "gelu_tanh",  "silu",     "scale",
                                        "add",  "multiply",   "hardswish"};
    const struct qn_chain_attr *attr = node->attr;
    int used = 0;
    text[0] = 0;
    for (int k = 0; strcmp(node->op->name, "chain") == 0 && k < attr->count; k++) {
        const struct qn_chain_link *step = &attr->step[k];
        used += snprintf(text + used, 200 - (size_t)used, "%s%s %d", k ? ", " : "", names[step->op],
                         step->a);
        if (qn_chain_is_binary(step->op))
            used += snprintf(text + used, 200 - (size_t)used, " %d", step->b);
    }
    return text;
}

static void assert_fused(struct net *net, qn_tensor last, const char *steps)
{
    char text[200];
    assert_string_equal(steps_of(fused(net, last), text), steps);
    qn_graph_destroy(&net->graph);
}

static void the_last_node_becomes_the_chain(void **state)
{
    (void)state;
    char text[200];
    struct net net = open_net();
    qn_tensor sum = qn_add(net.graph, net.x, net.y), last = qn_relu(net.graph, sum);
    qn_name(net.graph, last, "out");
    const int nodes = net.graph->n_nodes;
    const struct qn_node *node = fused(&net, last);
    assert_string_equal(steps_of(node, text), "add 0 1, relu 8");
    assert_string_equal(node->name, "out");
    assert_int_equal(node->out, last.id);
    assert_int_equal(node->in[0], net.x.id);
    assert_int_equal(node->in[1], net.y.id);
    assert_int_equal(net.graph->n_nodes, nodes + 1); /* the loss */
    bool used[32] = {false};
    qn_graph_mark_training(net.graph, used);
    assert_true(used[net.graph->tensors[last.id].node]);
    assert_false(used[net.graph->tensors[sum.id].node]);
    qn_graph_destroy(&net.graph);
}

static void constants_come_along(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor last = qn_leaky_relu(net.graph, qn_scale(net.graph, net.x, 0.5), 0.25);
    const struct qn_chain_attr *attr = fused(&net, last)->attr;
    assert_int_equal(attr->count, 2);
    assert_true(attr->step[0].value == 0.5f && attr->step[1].value == 0.25f);
    qn_graph_destroy(&net.graph);
}

static void a_value_may_be_read_twice_inside(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor h = qn_tanh(net.graph, net.x);
    assert_fused(&net, qn_multiply(net.graph, h, qn_sigmoid(net.graph, h)),
                 "tanh 0, sigmoid 8, multiply 8 9");
}

static void what_others_read_stays(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor h = qn_add(net.graph, net.x, net.y);
    qn_loss(net.graph, qn_softmax(net.graph, h), "other", NULL);
    assert_fused(&net, qn_relu(net.graph, h), "");
    net = open_net();
    h = qn_add(net.graph, net.x, net.y);
    qn_output(net.graph, h, "sum");
    assert_fused(&net, qn_relu(net.graph, h), "");
}

/* GELU needs its argument: apart the sum is kept, in one both of its terms would be. */
static void nothing_more_is_kept(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor h = qn_add(net.graph, net.x, net.y);
    assert_fused(&net, qn_gelu(net.graph, h, QN_GELU_EXACT), "");
    net = open_net();
    h = qn_silu(net.graph, net.x);
    assert_fused(&net, qn_multiply(net.graph, h, net.y), "silu 0, multiply 8 1");
}

/* Two terms would wait for the chain where one sum does. */
static void nothing_more_waits(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor h = qn_add(net.graph, net.x, net.y), z = qn_softmax(net.graph, net.x);
    assert_fused(&net, qn_add(net.graph, h, z), "");
    net = open_net();
    z = qn_softmax(net.graph, net.x);
    h = qn_add(net.graph, net.x, net.y);
    assert_fused(&net, qn_add(net.graph, h, z), "add 0 1, add 8 2");
}

static void a_bias_lies_along_the_last_dimension(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor b = qn_parameter(net.graph, "b", 1, (int64_t[]){6}, NULL);
    assert_fused(&net, qn_gelu(net.graph, qn_bias(net.graph, net.x, b), QN_GELU_TANH),
                 "add 0 5, gelu_tanh 8");
    net = open_net();
    b = qn_parameter(net.graph, "b", 1, (int64_t[]){6}, NULL);
    assert_fused(&net, qn_hardswish(net.graph, qn_bias(net.graph, net.x, b)),
                 "add 0 5, hardswish 8");
    net = open_net();
    b = qn_parameter(net.graph, "b", 1, (int64_t[]){2}, NULL);
    qn_tensor planes = qn_reshape(net.graph, net.x, 3, (int64_t[]){QN_BATCH, 2, 3});
    assert_fused(&net, qn_relu(net.graph, qn_bias(net.graph, planes, b)), "");
}

static void a_chain_has_an_end(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor x = net.x;
    for (int i = 0; i < QN_CHAIN_STEPS + 2; i++)
        x = qn_relu(net.graph, x);
    char text[200];
    const struct qn_node *last = fused(&net, x);
    const struct qn_chain_attr *attr = last->attr;
    assert_int_equal(attr->count, QN_CHAIN_STEPS);
    const struct qn_node *rest = &net.graph->nodes[net.graph->tensors[last->in[0]].node];
    assert_string_equal(steps_of(rest, text), "relu 0, relu 8");
    qn_graph_destroy(&net.graph);
}

static void a_chain_has_so_many_inputs(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor in[QN_CHAIN_BIAS + 1];
    for (int i = 0; i <= QN_CHAIN_BIAS; i++)
        in[i] = qn_softmax(net.graph, net.x);
    qn_tensor sum = in[0];
    for (int i = 1; i <= QN_CHAIN_BIAS; i++)
        sum = qn_add(net.graph, sum, in[i]);
    assert_fused(&net, sum, "add 0 1, add 8 2, add 9 3, add 10 4");
}

static qn_tensor norm_of(struct net *net)
{
    qn_tensor norm = qn_batch_norm(net->graph, net->x, none, none, NULL);
    qn_name(net->graph, norm, "norm");
    return norm;
}

static void a_chain_is_chosen_by_any_of_its_nodes(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 3; chosen++) {
        struct net net = open_net();
        qn_tensor sum = qn_add(net.graph, net.x, net.y), last = qn_relu(net.graph, sum);
        if (chosen)
            qn_recompute(net.graph, chosen == 1 ? sum : last);
        assert_int_equal(fused(&net, last)->recompute, chosen != 0);
        qn_graph_destroy(&net.graph);
    }
}

/* Whether the node is the batch norm, with a ReLU. */
static bool is_joined(const struct qn_node *node)
{
    return strcmp(node->op->name, "batch_norm") == 0 && strcmp(node->name, "norm") == 0 &&
           ((const struct qn_batch_norm_attr *)node->attr)->relu == 1;
}

static void a_batch_norm_takes_its_relu_in(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor norm = norm_of(&net), last = qn_relu(net.graph, norm);
    const uint32_t place = net.graph->tensors[norm.id].node;
    const uint32_t relu = net.graph->tensors[last.id].node;
    net.graph->nodes[relu].recompute = true;
    qn_output(net.graph, last, "out");
    const struct qn_node *node = fused(&net, last);
    assert_true(is_joined(node));
    assert_int_equal(net.graph->tensors[last.id].node, place);
    assert_int_equal(node->out, last.id);
    assert_int_equal(node->in[0], net.x.id);
    assert_true(node->recompute);
    bool used[32] = {false};
    qn_graph_mark_training(net.graph, used);
    qn_graph_mark_evaluation(net.graph, used);
    assert_true(used[place]);
    assert_false(used[relu]);
    qn_graph_destroy(&net.graph);
}

static void a_batch_norm_is_chosen_by_its_relu(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 3; chosen++) {
        struct net net = open_net();
        qn_tensor norm = norm_of(&net), last = qn_relu(net.graph, norm);
        if (chosen)
            qn_recompute(net.graph, chosen == 1 ? norm : last);
        assert_int_equal(fused(&net, last)->recompute, chosen != 0);
        qn_graph_destroy(&net.graph);
    }
}

/* However many there are, the norm takes them all in, and every node follows what it reads. */
static void a_batch_norm_takes_several_relus_in(void **state)
{
    (void)state;
    for (int relus = 2; relus <= 3; relus++) {
        struct net net = open_net();
        qn_tensor last = norm_of(&net);
        for (int i = 0; i < relus; i++)
            last = qn_relu(net.graph, last);
        const struct qn_node *node = fused(&net, last);
        assert_true(is_joined(node));
        assert_int_equal(node->out, last.id);
        for (int n = 0; n < net.graph->n_nodes; n++)
            for (int i = 0; i < QN_MAX_IN && net.graph->nodes[n].in[i]; i++)
                assert_true((int)net.graph->tensors[net.graph->nodes[n].in[i]].node < n);
        struct qn_arena arena = {0};
        struct qn_shapes shapes;
        assert_int_equal(qn_graph_shapes(net.graph, 16, &arena, NULL, &shapes), QN_OK);
        qn_arena_free(&arena);
        qn_graph_destroy(&net.graph);
    }
}

static void assert_apart(struct net *net, qn_tensor norm)
{
    qn_tensor last = qn_relu(net->graph, norm);
    assert_string_equal(fused(net, last)->op->name, "relu");
    assert_false(is_joined(&net->graph->nodes[net->graph->tensors[norm.id].node]));
    qn_graph_destroy(&net->graph);
}

static void a_batch_norm_with_other_readers_stays(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor norm = norm_of(&net);
    qn_loss(net.graph, qn_softmax(net.graph, norm), "other", NULL);
    assert_apart(&net, norm);
    net = open_net();
    norm = norm_of(&net);
    qn_output(net.graph, norm, "norm");
    assert_apart(&net, norm);
}

static void a_relu_behind_something_else_stays(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor last = qn_relu(net.graph, qn_layer_norm(net.graph, net.x, none, none, NULL));
    assert_string_equal(fused(&net, last)->op->name, "relu");
    qn_graph_destroy(&net.graph);
}

/* A chain with the ReLU in it would keep what the batch norm gave. */
static void a_batch_norm_comes_before_a_chain(void **state)
{
    (void)state;
    struct net net = open_net();
    qn_tensor h = qn_relu(net.graph, norm_of(&net));
    qn_tensor last = qn_add(net.graph, h, net.y);
    assert_string_equal(fused(&net, last)->op->name, "add");
    assert_true(is_joined(&net.graph->nodes[net.graph->tensors[h.id].node]));
    qn_graph_destroy(&net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_node_becomes_the_chain),
        cmocka_unit_test(constants_come_along),
        cmocka_unit_test(a_value_may_be_read_twice_inside),
        cmocka_unit_test(what_others_read_stays),
        cmocka_unit_test(nothing_more_is_kept),
        cmocka_unit_test(nothing_more_waits),
        cmocka_unit_test(a_bias_lies_along_the_last_dimension),
        cmocka_unit_test(a_chain_has_an_end),
        cmocka_unit_test(a_chain_has_so_many_inputs),
        cmocka_unit_test(a_chain_is_chosen_by_any_of_its_nodes),
        cmocka_unit_test(a_batch_norm_takes_its_relu_in),
        cmocka_unit_test(a_batch_norm_is_chosen_by_its_relu),
        cmocka_unit_test(a_batch_norm_takes_several_relus_in),
        cmocka_unit_test(a_batch_norm_with_other_readers_stays),
        cmocka_unit_test(a_relu_behind_something_else_stays),
        cmocka_unit_test(a_batch_norm_comes_before_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
