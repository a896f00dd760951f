/* SPDX-License-Identifier: MIT
 *
 * What cannot be planned is refused by name, with one line; facts that are missing have defaults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static void refuses_by_name(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(2, 1024);
    struct qn_facts facts = test_facts();
    facts.max_alloc_bytes = MIB;
    qn_plan *plan;
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {64}};
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_ERR_MEMORY);
    qn_graph_destroy(&graph);
    graph = test_model("cnn", NULL, 0);
    facts = test_facts();
    const qn_plan_params odd = {.budget = 400 * MIB, .batch = {256}, .micro_batch = 24};
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &odd, NULL), QN_ERR_ARGUMENT);
    const qn_plan_params nobody = {.budget = 400 * MIB, .batch = {256}, .chosen = "conv1,conv9"};
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &nobody, NULL), QN_ERR_ARGUMENT);
    static const char *const wrong[] = {"linear", "linear=fast", "lineal=cpu",
                                        "linear=cpu,=", "linear=cpu,conv2d"};
    for (int i = 0; i < 5; i++) {
        const qn_plan_params wish = {.budget = 400 * MIB, .batch = {256}, .variants = wrong[i]};
        assert_int_equal(qn_plan_create(&plan, graph, &facts, &wish, NULL), QN_ERR_ARGUMENT);
    }
    const qn_plan_params nothing = {.budget = 400 * MIB};
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &nothing, NULL), QN_ERR_ARGUMENT);
    qn_graph_destroy(&graph);
}

struct lines {
    int count;
    char last[300];
};

static void keep_line(void *user, qn_log_level level, const char *text)
{
    struct lines *lines = user;
    assert_int_equal(level, QN_LOG_ERROR);
    snprintf(lines->last, sizeof lines->last, "%s", text);
    lines->count++;
}

/* One linear layer and `length` softmaxes, whose outputs must all be kept. */
static qn_graph *softmaxes(struct lines *lines, int length)
{
    qn_graph *graph;
    const qn_graph_params params = {.log = {keep_line, lines, QN_LOG_ERROR}};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 64});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){64, 64}, NULL);
    x = qn_linear(graph, x, w, (qn_tensor){0});
    for (int i = 0; i < length; i++)
        x = qn_softmax(graph, x);
    qn_loss(graph, x, "mean", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void assert_refused(const qn_graph *graph, struct lines *lines, const qn_facts *facts,
                           const qn_plan_params *params, qn_status status, const char *reason)
{
    qn_plan *plan;
    *lines = (struct lines){.count = 0};
    assert_int_equal(qn_plan_create(&plan, graph, facts, params, NULL), status);
    assert_null(plan);
    assert_int_equal(lines->count, 1);
    print_message("  %s\n", lines->last);
    assert_non_null(strstr(lines->last, reason));
}

static void refusals_have_one_line(void **state)
{
    (void)state;
    struct lines lines;
    struct qn_facts facts = test_facts();
    qn_plan_params params = {.budget = 400 * MIB, .batch = {256}, .recompute = QN_RECOMPUTE_NONE};
    qn_graph *graph = softmaxes(&lines, 300);
    facts.max_alloc_bytes = 64 << 10;
    params.micro_batch = 256;
    assert_refused(graph, &lines, &facts, &params, QN_ERR_BUDGET,
                   "more than 254 buffers of the largest allocation, 65536 bytes");
    facts.max_alloc_bytes = 32 << 10;
    assert_refused(graph, &lines, &facts, &params, QN_ERR_MEMORY,
                   "65536 bytes at batch 256 are more than the largest allocation, 32768");
    qn_facts_default(&facts, false);
    facts.max_work_group = 64;
    facts.local_bytes = 1024;
    params.micro_batch = 0; /* several are tried, and only the last of them may speak */
    assert_refused(graph, &lines, &facts, &params, QN_ERR_DEVICE, "no kernel variant");
    qn_graph_destroy(&graph);
}

/* Facts of 0 take their defaults one by one. */
static void facts_have_defaults(void **state)
{
    (void)state;
    struct lines lines;
    qn_graph *graph = softmaxes(&lines, 3);
    const qn_plan_params params = {.batch = {64}};
    struct qn_facts defaults;
    qn_facts_default(&defaults, true);
    const qn_facts some[] = {
        {.cpu = true}, {.cpu = true, .flops = 1e9}, {.cpu = true, .max_alloc_bytes = MIB + 100}};
    for (int i = 0; i < 3; i++) {
        qn_plan *plan;
        assert_int_equal(qn_plan_create(&plan, graph, &some[i], &params, NULL), QN_OK);
        assert_int_equal(plan->facts.alignment, defaults.alignment);
        assert_true(plan->facts.flops == (i == 1 ? 1e9 : defaults.flops));
        assert_int_equal(plan->facts.max_alloc_bytes, i == 2 ? MIB : defaults.max_alloc_bytes);
        assert_string_equal(plan->facts.name, defaults.name);
        assert_int_equal(plan->info.budget_bytes, defaults.global_bytes / 4 * 3);
        test_interpret(plan);
        qn_plan_destroy(&plan);
    }
    const qn_facts small = {.cpu = true, .max_alloc_bytes = 4096};
    assert_refused(graph, &lines, &small, &params, QN_ERR_MEMORY, "largest allocation, 4096");
    qn_graph_destroy(&graph);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    struct lines lines;
    qn_graph *graph = softmaxes(&lines, 3);
    const qn_plan_params good = {.batch = {64}};
    const qn_facts facts[] = {{.alignment = -512},
                              {.alignment = 6},
                              {.vector_width = -1},
                              {.vector_width = 5},
                              {.max_alloc_bytes = INT64_MAX},
                              {.bytes_per_second = -1},
                              {.flops = (double)NAN},
                              {.launch_seconds = -1e-5},
                              {.max_alloc_bytes = 100},
                              {.bytes_per_second = 1e-300},
                              {.launch_seconds = 1e308},
                              {.flops = (double)INFINITY}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        assert_refused(graph, &lines, &facts[i], &good, QN_ERR_ARGUMENT, "plan: facts: ");
    assert_refused(graph, &lines, &facts[9], &good, QN_ERR_ARGUMENT,
                   "facts: bytes_per_second: 1e-300 is not from 1 to 1e+24");
    const qn_facts none = {.cpu = true};
    const qn_plan_params params[] = {
        {.batch = {64}, .recompute = (qn_recompute_mode)7},
        {.batch = {64}, .recompute = (qn_recompute_mode)-1},
        {.batch = {64}, .budget = -1},
        {.batch = {64}, .optimizer = {.momentum = 1}},
        {.batch = {64}, .optimizer = {.momentum = -0.5}},
        {.batch = {64}, .optimizer = {.momentum = (double)NAN}},
        {.batch = {64}, .optimizer = {.nesterov = true}},
        {.batch = {64}, .optimizer = {.name = "adam", .beta1 = 1}},
        {.batch = {64}, .optimizer = {.name = "adam", .beta2 = -0.1}},
        {.batch = {64}, .optimizer = {.name = "adamw", .beta2 = (double)NAN}},
        {.batch = {64}, .optimizer = {.name = "adamw", .eps = -1e-8}},
        {.batch = {64}, .optimizer = {.name = "adamw", .eps = (double)INFINITY}},
    };
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        assert_refused(graph, &lines, &none, &params[i], QN_ERR_ARGUMENT, "params->");
    qn_graph_destroy(&graph);
}

/* Sizes near the end of 63 bits are refused by name, or a smaller micro-batch is found. */
static void huge_sizes_do_not_wrap(void **state)
{
    (void)state;
    struct lines lines;
    const qn_facts facts = {.cpu = true, .max_alloc_bytes = INT64_C(1) << 40};
    qn_plan_params params = {.batch = {INT64_MAX}, .budget = 64 * MIB};
    qn_graph *graph = softmaxes(&lines, 3);
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    assert_true(plan->info.micro_batch < INT64_MAX / 1000);
    qn_plan_destroy(&plan);
    params.batch[0] = 64;
    const int64_t sizes[] = {(INT64_C(1) << 61) - 2, INT64_C(1) << 31};
    for (int i = 0; i < 2; i++) {
        qn_graph_destroy(&graph);
        graph = softmaxes(&lines, 3);
        qn_tensor large = qn_parameter(graph, "large", 1, &sizes[i], NULL);
        qn_loss(graph,
                qn_scale(graph,
                         qn_linear(graph, qn_input(graph, "y", QN_F32, 2, (int64_t[]){QN_BATCH, 1}),
                                   qn_reshape(graph, large, 2, (int64_t[]){0, 1}), (qn_tensor){0}),
                         1),
                "l", NULL);
        assert_refused(graph, &lines, &facts, &params, QN_ERR_MEMORY, "large: ");
    }
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_by_name),        cmocka_unit_test(refusals_have_one_line),
        cmocka_unit_test(facts_have_defaults),    cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(huge_sizes_do_not_wrap),
    };
    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
