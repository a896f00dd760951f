/* SPDX-License-Identifier: MIT
 *
 * The hash of a plan sees whatever changes what is trained.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"
#include <quern/ops.h>

/* The hash reads attributes byte by byte, so they may have no padding: this does not compile where
 * one has. */
#include <quern/plan.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
#include "op/batch_norm.h"
#include "op/conv2d.h"
#include "op/cross_entropy.h"
#include "op/elementwise.h"
#include "op/loss.h"
#include "op/optimizer.h"
#include "op/pool.h"
#include "op/reduce.h"
#pragma GCC diagnostic pop

/* Numbers that kernels are given and that move no byte. */
struct model {
    double rate, slope, eps, beta1, momentum, coefficient;
    float class_weight;
    qn_reduction reduction;
    bool nesterov, no_decay;
    double lr_factor;
};

static const struct model usual = {.rate = 0.25,
                                   .slope = 0.1,
                                   .eps = 1e-3,
                                   .beta1 = 0.5,
                                   .momentum = 0.9,
                                   .coefficient = 1,
                                   .class_weight = 1,
                                   .lr_factor = 1};

static uint64_t hash_of(struct model model, const char *optimizer)
{
    const float weights[] = {1, 2, model.class_weight};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 6});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){3, 6}, NULL);
    qn_no_decay(graph, w, model.no_decay);
    qn_scale_rate(graph, "w", model.lr_factor);
    x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                      &(qn_batch_norm_params){.eps = model.eps});
    x = qn_dropout(graph, qn_leaky_relu(graph, x, model.slope), model.rate);
    x = qn_linear(graph, qn_reshape(graph, x, 2, (int64_t[]){0, 6}), w, (qn_tensor){0});
    qn_tensor rows = qn_softmax_cross_entropy(graph, x, labels,
                                              &(qn_cross_entropy_params){.class_weights = weights});
    const qn_loss_params loss = {.coefficient = model.coefficient, .reduction = model.reduction};
    qn_loss(graph, rows, "loss", &loss);
    const qn_plan_params params = {.budget = 1 << 20,
                                   .batch = {32},
                                   .micro_batch = 16,
                                   .optimizer = {.name = optimizer,
                                                 .beta1 = model.beta1,
                                                 .momentum = model.momentum,
                                                 .nesterov = model.nesterov}};
    qn_plan *plan = test_plan(graph, &params);
    uint64_t hash = plan->info.hash;
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
    return hash;
}

static void every_number_counts(void **state)
{
    (void)state;
    struct model changed[] = {usual, usual, usual, usual, usual, usual,
                              usual, usual, usual, usual, usual};
    changed[0].rate = 0.5;
    changed[1].slope = 0.2;
    changed[2].eps = 1e-4;
    changed[3].beta1 = 0.75;
    changed[4].momentum = 0.5;
    changed[5].coefficient = 2;
    changed[6].class_weight = 3;
    changed[7].reduction = QN_REDUCE_SUM;
    changed[8].nesterov = true;
    changed[9].no_decay = true;
    changed[10].lr_factor = 0.5;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        print_message("  change %zu\n", i);
        const char *optimizer = i == 3 ? "adam" : "sgd";
        assert_true(hash_of(changed[i], optimizer) != hash_of(usual, optimizer));
    }
    assert_true(hash_of(usual, "adam") != hash_of(usual, "adamw"));
}

/* Leaves other bytes on the stack, in case some were hashed that nobody had set. */
static void litter(int depth)
{
    volatile unsigned char waste[4096];
    for (size_t i = 0; i < sizeof waste; i++)
        waste[i] = (unsigned char)(0x5a + depth);
    if (depth)
        litter(depth - 1);
}

static void nothing_else_counts(void **state)
{
    (void)state;
    uint64_t first = hash_of(usual, "adam");
    litter(4);
    assert_true(hash_of(usual, "adam") == first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_counts),
        cmocka_unit_test(nothing_else_counts),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
