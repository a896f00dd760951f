/* SPDX-License-Identifier: MIT
 *
 * A perceptron of two layers for tests of optimizers whose slots have scales. The first weight has
 * two chunks, the second of which ends within a scale's elements; all else is small.
 */
#ifndef QN_TESTS_RUN_TWO_LAYERS_H
#define QN_TESTS_RUN_TWO_LAYERS_H

#include "same.h"

enum { HIDDEN = 74, PARAMETERS = 4, MOST_ELEMENTS = HIDDEN * WIDTH };

static const struct {
    const char *name;
    int rank;
    int64_t dim[2];
} parameters[PARAMETERS] = {{"in.weight", 2, {HIDDEN, WIDTH}},
                            {"in.bias", 1, {HIDDEN}},
                            {"out.weight", 2, {TEST_CLASSES, HIDDEN}},
                            {"out.bias", 1, {TEST_CLASSES}}};

/* Weights are of the type `stored`. */
static inline qn_graph *two_layers_of(qn_dtype activations, qn_dtype stored)
{
    qn_graph *graph;
    const qn_graph_params params = {
        .log = test_log, .storage = activations, .parameter_storage = stored};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    const qn_init init = qn_init_fan_in(WIDTH);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor p[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        p[i] =
            qn_parameter(graph, parameters[i].name, parameters[i].rank, parameters[i].dim, &init);
    x = qn_tanh(graph, qn_linear(graph, x, p[0], p[1]));
    x = qn_linear(graph, x, p[2], p[3]);
    qn_output(graph, x, "logits");
    const qn_cross_entropy_params loss = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &loss), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static inline qn_graph *two_layers(qn_dtype stored)
{
    return two_layers_of(QN_F32, stored);
}

#endif
