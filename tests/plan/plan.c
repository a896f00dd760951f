/* SPDX-License-Identifier: MIT
 *
 * The planner's promises, without a device.
 *
 * Usage: test_plan_plan [N]: of a row of budgets one in N, all without it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static const qn_optimizer adamw = {.name = "adamw"};
static int stride = 1; /* of the budgets that are tried */

static void every_budget_keeps_the_invariants(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const int64_t budgets[] = {8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 96, 400};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i += (size_t)stride) {
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
    int number = 0;
    for (int64_t budget = 6 * MIB; budget < 300 * MIB; budget += budget / 9) {
        if (number++ % stride)
            continue;
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
        assert_int_equal(cycle->runs[0].rest >= 0, cycle->remainder > 0);
        if (cycle->micro_steps == 0)
            assert_true(plan->program.phases[cycle->runs[0].rest].first);
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

static qn_tensor made_by(const qn_graph *graph, const char *name)
{
    int n = 0;
    while (strcmp(graph->nodes[n].name, name) != 0)
        n++;
    return (qn_tensor){graph->nodes[n].out};
}

static void names_of_what_was_fused_choose(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {
        .budget = 400 * MIB, .batch = {256}, .micro_batch = 64, .recompute = QN_RECOMPUTE_CHOSEN};
    const qn_tensor norm = made_by(graph, "bn1");
    int relu = 0;
    while (graph->nodes[relu].in[0] != norm.id)
        relu++;
    params.chosen = "bn1";
    qn_plan *by_norm = test_plan(graph, &params);
    params.chosen = graph->nodes[relu].name;
    qn_plan *by_relu = test_plan(graph, &params);
    params.chosen = NULL;
    qn_recompute(graph, (qn_tensor){graph->nodes[relu].out});
    qn_plan *marked = test_plan(graph, &params);
    assert_true(by_norm->info.recomputed_steps > 0);
    assert_int_equal(by_relu->info.hash, by_norm->info.hash);
    assert_int_equal(marked->info.hash, by_norm->info.hash);
    qn_plan_destroy(&by_norm);
    qn_plan_destroy(&by_relu);
    qn_plan_destroy(&marked);
    qn_graph_destroy(&graph);
}

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
    params.chosen = "conv1";
    qn_recompute(graph, made_by(graph, "conv2"));
    qn_plan *marked = test_plan(graph, &params);
    assert_int_equal(marked->info.hash, chosen->info.hash);
    qn_plan_destroy(&marked);
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

/* An update is forward passes, backward passes and what follows: at the same micro-batch twice as
 * many micro-steps have the same last backward pass, and the remainder's is shorter. */
static void parts_of_an_update(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    qn_plan_params params = {.budget = 400 * MIB, .batch = {64}, .micro_batch = 32};
    qn_plan *two = test_plan(graph, &params);
    params.batch[0] = 128;
    qn_plan *four = test_plan(graph, &params);
    params.batch[0] = 72;
    qn_plan *ragged = test_plan(graph, &params);
    const double micro_step = (two->info.seconds - two->info.update_seconds) / 2;
    assert_true(two->info.update_seconds > 0);
    assert_true(two->info.backward_seconds > 0.4 * micro_step);
    assert_true(two->info.backward_seconds < micro_step);
    assert_true(fabs(four->info.backward_seconds / two->info.backward_seconds - 1) < 1e-9);
    assert_true(fabs(four->info.update_seconds / two->info.update_seconds - 1) < 1e-9);
    assert_true(ragged->info.backward_seconds < two->info.backward_seconds);
    qn_plan_destroy(&two);
    qn_plan_destroy(&four);
    qn_plan_destroy(&ragged);
    qn_graph_destroy(&graph);
}

/* Every parameter is trained or frozen. */
static void parameters_that_are_trained(void **state)
{
    (void)state;
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {64}};
    qn_graph *graph = test_model("mlp", NULL, 0);
    qn_plan *all = test_plan(graph, &params);
    int64_t numbers = 0;
    for (int p = 0; p < all->persist.n_parameters; p++)
        numbers += qn_operand_count(&all->persist.parameters[p].node->leaf);
    assert_int_equal(all->info.trained_parameters, numbers);
    qn_freeze_named(graph, "fc1*");
    qn_plan *some = test_plan(graph, &params);
    assert_true(some->info.frozen_parameters > 0);
    assert_int_equal(some->info.trained_parameters, numbers - some->info.frozen_parameters);
    qn_plan_destroy(&all);
    qn_plan_destroy(&some);
    qn_graph_destroy(&graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_budget_keeps_the_invariants),
        cmocka_unit_test(more_budget_is_never_slower),
        cmocka_unit_test(smallest_budget_is_exact),
        cmocka_unit_test(frontier_is_what_budgets_give),
        cmocka_unit_test(smallest_budget_of_a_large_batch),
        cmocka_unit_test(less_budget_recomputes_more),
        cmocka_unit_test(same_input_same_plan),
        cmocka_unit_test(ragged_batches_and_schedules),
        cmocka_unit_test(several_pools),
        cmocka_unit_test(parameters_in_several_blocks),
        cmocka_unit_test(unused_parameters_are_not_trained),
        cmocka_unit_test(the_interpreter_notices_early_ends),
        cmocka_unit_test(a_group_beyond_the_batch),
        cmocka_unit_test(groups_stay_whole_in_every_batch),
        cmocka_unit_test(modes_do_what_they_say),
        cmocka_unit_test(names_of_what_was_fused_choose),
        cmocka_unit_test(nothing_to_recompute),
        cmocka_unit_test(keep_all_seconds_are_those_of_keeping_all),
        cmocka_unit_test(parts_of_an_update),
        cmocka_unit_test(parameters_that_are_trained),
    };
    stride = argc > 1 ? atoi(argv[1]) : stride;
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
