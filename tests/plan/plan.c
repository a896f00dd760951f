/* SPDX-License-Identifier: MIT
 *
 * The planner's promises, without a device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/search.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static const qn_optimizer adamw = {.kind = QN_ADAMW};

static void every_budget_keeps_the_invariants(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const int64_t budgets[] = {8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 96, 400};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        const qn_plan_params params = {
            .budget = budgets[i] * MIB, .batch = {256}, .optimizer = adamw};
        qn_plan *plan = test_plan(graph, &params);
        test_invariants(plan);
        test_interpret(plan);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

static void more_budget_is_never_slower(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    double before = 1e9;
    for (int64_t budget = 6 * MIB; budget < 300 * MIB; budget += budget / 9) {
        const qn_plan_params params = {.budget = budget, .batch = {256}, .optimizer = adamw};
        struct qn_facts facts = test_facts();
        qn_plan *plan;
        if (qn_plan_create(&plan, graph, &facts, &params, NULL) != QN_OK)
            continue;
        assert_true(plan->info.seconds <= before);
        before = plan->info.seconds;
        qn_plan_destroy(&plan);
    }
    assert_true(before < 1e9);
    qn_graph_destroy(&graph);
}

static void smallest_budget_is_exact(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const int64_t micro_batches[] = {0, 16, 64, 256};
    for (int i = 0; i < 4; i++) {
        qn_plan_params params = {
            .budget = 1, .batch = {256}, .optimizer = adamw, .micro_batch = micro_batches[i]};
        struct qn_facts facts = test_facts();
        qn_plan *plan;
        int64_t smallest = 0;
        assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, &smallest), QN_ERR_BUDGET);
        assert_null(plan);
        params.budget = smallest - 1;
        assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_ERR_BUDGET);
        params.budget = smallest;
        plan = test_plan(graph, &params);
        assert_int_equal(plan->info.peak_bytes, smallest);
        assert_int_equal(plan->info.smallest_budget, smallest);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

enum { MOST_POINTS = 1000 };

static void assert_is_point(const qn_graph *graph, qn_plan_params *params, int64_t budget,
                            const qn_plan_point *point)
{
    params->budget = budget;
    qn_plan *plan = test_plan(graph, params);
    assert_int_equal(plan->info.peak_bytes, point->bytes);
    assert_int_equal(plan->info.micro_batch, point->micro_batch);
    assert_int_equal(plan->info.recomputed_steps, point->recomputed_steps);
    assert_true(plan->info.seconds == point->seconds);
    qn_plan_destroy(&plan);
}

/* Each point is the plan of its budget, and up to the next one. */
static void frontier_is_what_budgets_give(void **state)
{
    (void)state;
    static qn_plan_point points[MOST_POINTS];
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 400 * MIB, .batch = {60}, .optimizer = adamw};
    qn_plan *plan = test_plan(graph, &params);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    assert_in_range(count, 10, MOST_POINTS);
    assert_int_equal(plan->info.smallest_budget, points[0].bytes);
    assert_int_equal(plan->info.next_budget, 0);
    for (int i = 1; i < count; i++) {
        assert_true(points[i].bytes > points[i - 1].bytes);
        assert_true(points[i].seconds < points[i - 1].seconds);
    }
    for (int i = 0; i < count; i += count / 5) {
        assert_is_point(graph, &params, points[i].bytes, &points[i]);
        if (i + 1 < count)
            assert_is_point(graph, &params, points[i + 1].bytes - 1, &points[i]);
    }
    assert_is_point(graph, &params, 800 * MIB, &points[count - 1]);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* Of a batch with more useful micro-batches than are tried, the smallest one is tried all the same.
 */
static void smallest_budget_of_a_large_batch(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    struct qn_facts facts = test_facts();
    qn_plan_params params = {.budget = 1, .batch = {16384}};
    qn_plan *plan;
    int64_t chosen = 0, one = 0;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, &chosen), QN_ERR_BUDGET);
    params.micro_batch = 1;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, &one), QN_ERR_BUDGET);
    assert_true(chosen > 0 && chosen <= one);
    qn_graph_destroy(&graph);
}

static void less_budget_recomputes_more(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {
        .budget = 1000 * MIB, .batch = {256}, .micro_batch = 64, .optimizer = adamw};
    qn_plan *keep = test_plan(graph, &params);
    assert_int_equal(keep->info.recomputed_steps, 0);
    params.budget = keep->info.peak_bytes / 4 * 3;
    qn_plan *some = test_plan(graph, &params);
    params.budget = keep->info.smallest_budget;
    qn_plan *most = test_plan(graph, &params);
    assert_true(some->info.recomputed_steps > 0);
    assert_true(most->info.recomputed_steps > some->info.recomputed_steps);
    assert_true(some->info.seconds > keep->info.seconds);
    qn_plan_destroy(&keep);
    qn_plan_destroy(&some);
    qn_plan_destroy(&most);
    qn_graph_destroy(&graph);
}

static void same_input_same_plan(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 12 * MIB, .batch = {250}, .optimizer = adamw};
    qn_plan *a = test_plan(graph, &params), *b = test_plan(graph, &params);
    assert_true(a->info.hash == b->info.hash);
    params.micro_batch = a->info.micro_batch;
    qn_plan *again = test_plan(graph, &params);
    assert_true(a->info.hash == again->info.hash);
    params.budget = a->info.peak_bytes - 1;
    params.micro_batch = 0;
    qn_plan *other = test_plan(graph, &params);
    assert_true(a->info.hash != other->info.hash);
    qn_plan_destroy(&a);
    qn_plan_destroy(&b);
    qn_plan_destroy(&again);
    qn_plan_destroy(&other);
    qn_graph_destroy(&graph);
}

static void ragged_batches_and_schedules(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params params = {
        .budget = 16 * MIB, .batch = {100, 7, 256, 250}, .optimizer = adamw};
    qn_plan *plan = test_plan(graph, &params);
    assert_int_equal(plan->program.n_cycles, 4);
    for (int i = 0; i < 4; i++) {
        const struct qn_cycle_plan *cycle = &plan->program.cycles[i];
        assert_int_equal(cycle->micro_steps * plan->info.micro_batch + cycle->remainder,
                         cycle->batch);
        assert_int_equal(cycle->rest >= 0, cycle->remainder > 0);
        if (cycle->micro_steps == 0)
            assert_true(plan->program.phases[cycle->rest].first);
    }
    test_invariants(plan);
    test_interpret(plan);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void several_pools(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    struct qn_facts facts = test_facts();
    facts.max_alloc_bytes = 4 * MIB;
    const qn_plan_params params = {.budget = 24 * MIB, .batch = {256}, .optimizer = adamw};
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    assert_true(plan->info.pools > 2);
    for (int p = 0; p < plan->info.pools; p++)
        assert_true(plan->placement.pool_bytes[p] <= facts.max_alloc_bytes);
    test_invariants(plan);
    test_interpret(plan);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void parameters_in_several_blocks(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(8, 256);
    struct qn_facts facts = test_facts();
    facts.max_alloc_bytes = MIB;
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {64}, .optimizer = adamw};
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    assert_true(plan->persist.n_blocks > 1);
    test_invariants(plan);
    test_interpret(plan);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* Trainable by its flags, but no loss reaches it: nobody would write its gradient. */
static void unused_parameters_are_not_trained(void **state)
{
    (void)state;
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {64}, .optimizer = adamw};
    qn_graph *graph = test_chain(2, 64);
    qn_plan *without = test_plan(graph, &params);
    qn_tensor unused = qn_parameter(graph, "unused", 2, (int64_t[]){32, 32}, NULL);
    qn_tensor aside = qn_input(graph, "aside", QN_F32, 2, (int64_t[]){QN_BATCH, 32});
    qn_output(graph, qn_linear(graph, aside, unused, (qn_tensor){0}), "only evaluated");
    qn_plan *with = test_plan(graph, &params);
    test_invariants(with);
    test_interpret(with);
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        if (tag == QN_TAG_GRADIENTS || tag == QN_TAG_OPTIMIZER)
            assert_int_equal(with->info.bytes_by_tag[tag], without->info.bytes_by_tag[tag]);
    qn_plan_destroy(&with);
    qn_plan_destroy(&without);
    qn_graph_destroy(&graph);
}

/* Whether storage `number` is read at the last of several steps that it lives for. */
static bool ends_with_a_read(const qn_plan *plan, int number)
{
    const struct qn_storage *storage = &plan->program.storages[number];
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        int step = storage->end - phase->start;
        if (storage->start == storage->end || step < 0 || step >= phase->n_steps)
            continue;
        const struct qn_task *task = &phase->problem->tasks[phase->steps[step].task];
        for (int r = 0; r < task->n_reads; r++)
            if (phase->steps[step].read[r] == number)
                return true;
    }
    return false;
}

/* A storage that ends one step too early must be noticed, whichever it is. */
static void the_interpreter_notices_early_ends(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(3, 32);
    const qn_plan_params params = {
        .budget = 400 * MIB, .batch = {32}, .micro_batch = 8, .optimizer = adamw};
    qn_plan *plan = test_plan(graph, &params);
    test_interpret(plan);
    int planted = 0;
    for (int i = 0; i < plan->program.n_storages; i++) {
        if (!ends_with_a_read(plan, i))
            continue;
        plan->program.storages[i].end--;
        assert_false(test_runs_on_poison(plan));
        plan->program.storages[i].end++;
        planted++;
    }
    assert_true(planted > 10);
    test_interpret(plan);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

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

/* --- the reason of a refusal --- */

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
    const qn_facts facts[] = {{.alignment = -512},       {.alignment = 6},
                              {.vector_width = -1},      {.max_alloc_bytes = INT64_MAX},
                              {.bytes_per_second = -1},  {.flops = (double)NAN},
                              {.launch_seconds = -1e-5}, {.max_alloc_bytes = 100}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        assert_refused(graph, &lines, &facts[i], &good, QN_ERR_ARGUMENT, "facts->");
    const qn_facts none = {.cpu = true};
    const qn_plan_params params[] = {
        {.batch = {64}, .recompute = (qn_recompute_mode)7},
        {.batch = {64}, .recompute = (qn_recompute_mode)-1},
        {.batch = {64}, .optimizer = {.kind = (qn_optimizer_kind)9}},
        {.batch = {64}, .optimizer = {.kind = (qn_optimizer_kind)-1}},
        {.batch = {64}, .budget = -1},
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

/* A group larger than every batch is never seen whole, and never shaped. */
static void a_group_beyond_the_batch(void **state)
{
    (void)state;
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 3, 512, 512});
    qn_tensor w = qn_parameter(graph, "w", 4, (int64_t[]){4, 3, 3, 3}, NULL);
    x = qn_conv2d(graph, x, w, (qn_tensor){0}, NULL);
    x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                      &(qn_batch_norm_params){.group = 1 << 30});
    qn_loss(graph, x, "mean", NULL);
    const qn_plan_params params = {.batch = {8}, .budget = 2000 * MIB};
    qn_plan *plan = test_plan(graph, &params);
    assert_int_equal(plan->info.micro_batch, 8);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* A micro-batch may be no multiple of the group only where it is the whole of every batch. */
static void groups_stay_whole_in_every_batch(void **state)
{
    (void)state;
    static const struct {
        int64_t batch[2], micro_batch;
        qn_status status;
    } cases[] = {
        {{16, 256}, 24, QN_ERR_ARGUMENT}, {{250, 500}, 250, QN_ERR_ARGUMENT},
        {{250, 500}, 500, QN_OK},         {{16, 250}, 250, QN_OK},
        {{16, 256}, 32, QN_OK},
    };
    qn_graph *graph = test_model("cnn", NULL, 0);
    struct qn_facts facts = test_facts();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_plan_params params = {.budget = 900 * MIB,
                                       .batch = {cases[i].batch[0], cases[i].batch[1]},
                                       .micro_batch = cases[i].micro_batch};
        qn_plan *plan;
        assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), cases[i].status);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

/* --- explaining --- */

static int count_text(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

static int recomputed_writes(const struct qn_phase_run *phase)
{
    int count = 0;
    for (int i = 0; i < phase->n_steps; i++)
        if (phase->steps[i].recomputed)
            count += phase->problem->tasks[phase->steps[i].task].n_writes;
    return count;
}

/* What recomputed steps write begins to live again; nothing else does. */
static void explains_what_is_recomputed(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 1000 * MIB, .batch = {64}};
    qn_plan *plan = test_plan(graph, &params);
    params.budget = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    plan = test_plan(graph, &params);
    int again = 0;
    for (int n = 0; n < plan->graph->n_nodes; n++) {
        char *text;
        const qn_status status = qn_plan_explain(plan, plan->graph->nodes[n].name, &text);
        again += text ? count_text(text, "  made again in step ") : 0;
        assert_true(status == QN_OK ? *text : !text);
        free(text);
    }
    assert_true(again > 0);
    assert_int_equal(again, recomputed_writes(&plan->program.phases[0]));
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void explains_no_tensor_that_is_not_there(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {256}};
    qn_plan *plan = test_plan(graph, &params);
    char *text;
    assert_int_equal(qn_plan_explain(plan, "nobody", &text), QN_ERR_ARGUMENT);
    assert_null(text);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* --- modes --- */

static void modes_do_what_they_say(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 400 * MIB, .batch = {256}, .micro_batch = 64};
    params.recompute = QN_RECOMPUTE_NONE;
    qn_plan *none = test_plan(graph, &params);
    params.recompute = QN_RECOMPUTE_ALL;
    qn_plan *all = test_plan(graph, &params);
    params.recompute = QN_RECOMPUTE_CHOSEN;
    params.chosen = "conv1,conv2";
    qn_plan *chosen = test_plan(graph, &params);
    assert_int_equal(none->info.recomputed_steps, 0);
    assert_true(all->info.recomputed_steps > chosen->info.recomputed_steps);
    assert_true(chosen->info.recomputed_steps > 0);
    test_interpret(all);
    test_interpret(chosen);
    qn_plan_destroy(&none);
    qn_plan_destroy(&all);
    qn_plan_destroy(&chosen);
    qn_graph_destroy(&graph);
}

/* A model without anything that can be made again has one plan, whatever is asked. */
static void nothing_to_recompute(void **state)
{
    (void)state;
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){1, 4}, NULL);
    qn_loss(graph, qn_linear(graph, x, w, (qn_tensor){0}), "mean", NULL);
    const qn_plan_params params = {
        .budget = MIB, .batch = {100}, .micro_batch = 64, .recompute = QN_RECOMPUTE_ALL};
    qn_plan *plan = test_plan(graph, &params);
    assert_int_equal(plan->info.recomputed_steps, 0);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* Keeping everything costs what a plan that keeps everything says, remainder included. */
static void keep_all_seconds_are_those_of_keeping_all(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {
        .budget = 400 * MIB, .batch = {112}, .micro_batch = 64, .recompute = QN_RECOMPUTE_ALL};
    qn_plan *all = test_plan(graph, &params);
    params.recompute = QN_RECOMPUTE_NONE;
    qn_plan *none = test_plan(graph, &params);
    assert_true(all->info.recomputed_steps > 0);
    assert_true(none->info.keep_all_seconds == none->info.seconds);
    assert_true(fabs(all->info.keep_all_seconds / none->info.seconds - 1) < 1e-9);
    qn_plan_destroy(&all);
    qn_plan_destroy(&none);
    qn_graph_destroy(&graph);
}

static void prints(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params params = {.budget = 16 * MIB, .batch = {256}};
    qn_plan *plan = test_plan(graph, &params);
    char *texts[] = {qn_plan_text(plan), qn_plan_json(plan), qn_plan_svg(plan),
                     qn_plan_variants_json(plan)};
    const char *const wanted[] = {"planned peak", "\"peak_bytes_planned\"", "</svg>", "conv2d"};
    for (int i = 0; i < 4; i++) {
        assert_non_null(texts[i]);
        assert_non_null(strstr(texts[i], wanted[i]));
        free(texts[i]);
    }
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* --- the JSON of a plan adds up --- */

static double number_in(const cJSON *from, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static double sum_of(const cJSON *list)
{
    double sum = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) sum += item->valuedouble;
    return sum;
}

static int count_recomputed(const cJSON *steps)
{
    int count = 0;
    const cJSON *step;
    cJSON_ArrayForEach(step, steps)
    {
        assert_true(cJSON_GetArraySize(step) == 2 || cJSON_GetArraySize(step) == 3);
        count += cJSON_GetArraySize(step) == 3;
    }
    return count;
}

static void json_adds_up(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params params = {.budget = 8 * MIB, .batch = {250}};
    qn_plan *plan = test_plan(graph, &params);
    char *text = qn_plan_json(plan), *variants = qn_plan_variants_json(plan);
    cJSON *json = cJSON_Parse(text), *table = cJSON_Parse(variants);
    assert_non_null(json);
    assert_true(cJSON_IsArray(table) && cJSON_GetArraySize(table) > 50);
    const cJSON *phases = cJSON_GetObjectItemCaseSensitive(json, "phases");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(phases, 0), "steps");
    assert_int_equal(cJSON_GetArraySize(phases), plan->program.n_phases);
    assert_int_equal(cJSON_GetArraySize(steps), number_in(json, "steps"));
    assert_true(number_in(json, "recomputed_steps") > 0);
    assert_int_equal(count_recomputed(steps), number_in(json, "recomputed_steps"));
    assert_true(sum_of(cJSON_GetObjectItemCaseSensitive(json, "bytes_by_tag")) ==
                number_in(json, "live_bytes"));
    assert_true(sum_of(cJSON_GetObjectItemCaseSensitive(json, "pools")) +
                    number_in(json, "clblast_bytes") ==
                number_in(json, "peak_bytes_planned"));
    assert_true(number_in(json, "micro_batch") * number_in(json, "micro_steps") +
                    number_in(json, "remainder") ==
                number_in(json, "batch"));
    cJSON_Delete(json);
    cJSON_Delete(table);
    free(text);
    free(variants);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_budget_keeps_the_invariants),
        cmocka_unit_test(more_budget_is_never_slower),
        cmocka_unit_test(smallest_budget_is_exact),
        cmocka_unit_test(frontier_is_what_budgets_give),
        cmocka_unit_test(explains_what_is_recomputed),
        cmocka_unit_test(explains_no_tensor_that_is_not_there),
        cmocka_unit_test(smallest_budget_of_a_large_batch),
        cmocka_unit_test(less_budget_recomputes_more),
        cmocka_unit_test(same_input_same_plan),
        cmocka_unit_test(ragged_batches_and_schedules),
        cmocka_unit_test(several_pools),
        cmocka_unit_test(parameters_in_several_blocks),
        cmocka_unit_test(unused_parameters_are_not_trained),
        cmocka_unit_test(the_interpreter_notices_early_ends),
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(refusals_have_one_line),
        cmocka_unit_test(facts_have_defaults),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(huge_sizes_do_not_wrap),
        cmocka_unit_test(a_group_beyond_the_batch),
        cmocka_unit_test(groups_stay_whole_in_every_batch),
        cmocka_unit_test(modes_do_what_they_say),
        cmocka_unit_test(nothing_to_recompute),
        cmocka_unit_test(keep_all_seconds_are_those_of_keeping_all),
        cmocka_unit_test(prints),
        cmocka_unit_test(json_adds_up),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
