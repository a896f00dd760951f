/* SPDX-License-Identifier: MIT
 *
 * Plans that update parameters as their gradients complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/cost/tuning.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const qn_model_option depth18[] = {{"depth", "18"}}, depth16[] = {{"depth", "16"}};

static bool is_early(const qn_plan_point *point)
{
    return point->early_updates;
}

static struct test_budgets find(const qn_graph *graph, qn_plan_params params)
{
    params.early_updates = true;
    const struct test_budgets found = test_budgets(graph, &params, is_early);
    assert_true(found.count > 0);
    return found;
}

static qn_plan *plan_early(const qn_graph *graph, qn_plan_params params, int64_t budget)
{
    params.budget = budget;
    params.early_updates = true;
    qn_plan *plan = test_plan(graph, &params);
    assert_true(plan->info.early_updates);
    assert_int_equal(plan->info.peak_bytes, budget);
    return plan;
}

/* --- what is safe --- */

enum { LOOKS = 4 };

static void check_model(qn_graph *graph, int64_t batch, const char *optimizer)
{
    const qn_plan_params params = {
        .batch = {batch, batch / 2}, .micro_batch = batch, .optimizer = {.name = optimizer}};
    const struct test_budgets budgets = find(graph, params);
    for (int i = 0; i < LOOKS; i++) {
        const int64_t budget = budgets.bytes[i * (budgets.count - 1) / (LOOKS - 1)];
        qn_plan *plan = plan_early(graph, params, budget);
        test_invariants(plan);
        test_interpret(plan);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

static void no_step_reads_what_was_updated(void **state)
{
    (void)state;
    check_model(test_model("cnn", NULL, 0), 32, "adamw");
    check_model(test_model("resnet", depth18, 1), 8, "sgd");
    check_model(test_chain(12, 96), 64, "adam");
}

/* --- what it is worth --- */

static int64_t smallest(const qn_graph *graph, qn_plan_params params, qn_recompute_mode mode,
                        bool early)
{
    int64_t bytes;
    qn_plan *plan;
    struct qn_facts facts = test_facts();
    facts.max_alloc_bytes = facts.global_bytes; /* no gaps between pools */
    params.recompute = mode;
    params.early_updates = early;
    params.budget = 1;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, &bytes), QN_ERR_BUDGET);
    return bytes;
}

/* The lower bound of VGG-16 is its parameters: with all of their gradients, or with the largest. */
static void a_network_of_large_parameters(void **state)
{
    (void)state;
    const qn_model_data data = {.channels = 3, .height = 224, .width = 224, .classes = 1000};
    const qn_plan_params params = {.batch = {16}, .micro_batch = 16, .effort = QN_EFFORT_INSTANT};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    assert_int_equal(qn_model_build(graph, "vgg", &data, depth16, 1), QN_OK);
    const double keep_all = (double)smallest(graph, params, QN_RECOMPUTE_NONE, false);
    const int64_t kept = smallest(graph, params, QN_RECOMPUTE_NONE, true);
    const int64_t late = smallest(graph, params, QN_RECOMPUTE_AUTO, false);
    const int64_t early = smallest(graph, params, QN_RECOMPUTE_AUTO, true);
    print_message("  VGG-16, 16 x 224^2: keep-all peak %.0f, early %.1f %% of it; smallest budget "
                  "%.1f %%, early %.1f %%\n",
                  keep_all, 100 * (double)kept / keep_all, 100 * (double)late / keep_all,
                  100 * (double)early / keep_all);
    assert_true((double)kept < 0.94 * keep_all);
    assert_true((double)early < 0.57 * keep_all && (double)late > 0.72 * keep_all);
    qn_graph_destroy(&graph);
}

/* What is recomputed is found by local search here too. */
static void more_effort_is_faster(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {
        .batch = {32}, .micro_batch = 32, .effort = QN_EFFORT_INSTANT, .early_updates = true};
    const int64_t budget = find(graph, params).bytes[0];
    qn_plan *instant = plan_early(graph, params, budget);
    params.effort = QN_EFFORT_DEFAULT;
    qn_plan *searched = plan_early(graph, params, budget);
    assert_true(searched->info.seconds < instant->info.seconds);
    qn_plan_destroy(&searched);
    qn_plan_destroy(&instant);
    qn_graph_destroy(&graph);
}

/* Bytes of the gradients of parameters that are alive together. */
static int64_t most_gradients(const qn_plan *plan)
{
    int64_t most = 0;
    for (int at = 0; at < plan->program.length; at++) {
        int64_t alive = 0;
        for (int i = 0; i < plan->program.n_storages; i++) {
            const struct qn_storage *s = &plan->program.storages[i];
            alive += s->tag == QN_TAG_GRADIENTS && s->start <= at && s->end >= at ? s->bytes : 0;
        }
        most = alive > most ? alive : most;
    }
    return most;
}

static void gradients_never_exist_all_at_once(void **state)
{
    (void)state;
    enum { LENGTH = 12, WIDTH = 96 };
    const int64_t one = WIDTH * WIDTH * sizeof(float);
    qn_graph *graph = test_chain(LENGTH, WIDTH);
    const qn_plan_params params = {
        .budget = INT64_C(1) << 30, .batch = {64}, .recompute = QN_RECOMPUTE_NONE};
    qn_plan *early = plan_early(graph, params, find(graph, params).bytes[0]);
    qn_plan *late = test_plan(graph, &params);
    assert_int_equal(most_gradients(early), one);
    assert_int_equal(most_gradients(late), LENGTH * one);
    assert_true(late->info.hash != early->info.hash);
    qn_plan_destroy(&early);
    qn_plan_destroy(&late);
    qn_graph_destroy(&graph);
}

/* --- what stays --- */

struct lowered {
    struct qn_arena arena;
    struct qn_facts facts;
    qn_plan_params params;
    struct qn_persist persist;
    struct qn_problem problem;
};

static void lower(struct lowered *l, const qn_graph *graph, int64_t batch, bool early)
{
    *l = (struct lowered){.facts = test_facts(), .params = {.batch = {batch}}};
    const struct qn_lowering how = {
        .arena = &l->arena, .facts = &l->facts, .params = &l->params, .early = early};
    test_persist(&how, graph, &l->persist);
    assert_int_equal(qn_lower_run(&how, &l->persist, 0, batch, &l->problem), QN_OK);
}

static int next_of_a_node(const struct lowered *l, int task)
{
    while (task < l->problem.n_tasks && l->problem.tasks[task].kind == QN_TASK_GROUP &&
           l->problem.tasks[task].node < 0)
        task++;
    return task;
}

/* The same tasks in the same order, and what was tuned for one is found for the other: so the bits
 * are the same. */
static void all_else_stays_the_same(void **state)
{
    (void)state;
    struct lowered late, early;
    char key[2][QN_TASK_KEY];
    qn_graph *graph = test_model("cnn", NULL, 0);
    lower(&late, graph, 16, false); /* as many as a layer has channels, or half */
    lower(&early, graph, 16, true);
    int e = 0;
    for (int t = 0; t < late.problem.n_tasks; t++, e++) {
        e = next_of_a_node(&early, e);
        assert_true(e < early.problem.n_tasks);
        const struct qn_task *a = &late.problem.tasks[t], *b = &early.problem.tasks[e];
        assert_int_equal(a->node, b->node);
        assert_ptr_equal(a->group, b->group);
        if (a->group)
            assert_string_equal(qn_task_key(&late.problem, a, key[0]),
                                qn_task_key(&early.problem, b, key[1]));
    }
    assert_int_equal(next_of_a_node(&early, e), early.problem.n_tasks);
    assert_true(early.problem.n_tasks > late.problem.n_tasks);
    qn_arena_free(&late.arena);
    qn_arena_free(&early.arena);
    qn_graph_destroy(&graph);
}

/* Whoever does not ask gets the plans of old; who does gets them too where there is room. */
static void where_there_is_room_nothing_changes(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    qn_plan_params params = {.budget = INT64_C(1) << 30, .batch = {64}};
    qn_plan *plain = test_plan(graph, &params);
    params.early_updates = true;
    qn_plan *asked = test_plan(graph, &params);
    assert_false(asked->info.early_updates);
    assert_true(asked->info.hash == plain->info.hash);
    qn_plan_destroy(&plain);
    qn_plan_destroy(&asked);
    qn_graph_destroy(&graph);
}

/* Takes `text`. */
static bool says(char *text, const char *what)
{
    assert_non_null(text);
    const bool found = strstr(text, what) != NULL;
    free(text);
    return found;
}

static void a_plan_says_so(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(6, 64);
    const qn_plan_params params = {.budget = INT64_C(1) << 30, .batch = {32}, .micro_batch = 32};
    qn_plan *plan = plan_early(graph, params, find(graph, params).bytes[0]);
    char *text;
    assert_true(says(qn_plan_text(plan), "\nupdates as gradients complete\n"));
    assert_true(says(qn_plan_json(plan), "\"early_updates\": true"));
    assert_true(says(qn_plan_svg(plan), "gradients"));
    assert_int_equal(qn_plan_explain(plan, "w3", &text), QN_OK);
    assert_true(says(text, "w3: step\n"));
    qn_plan_destroy(&plan);
    plan = test_plan(graph, &params);
    assert_false(says(qn_plan_text(plan), "updates as gradients complete"));
    assert_true(says(qn_plan_json(plan), "\"early_updates\": false"));
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_reads_what_was_updated),
        cmocka_unit_test(a_network_of_large_parameters),
        cmocka_unit_test(more_effort_is_faster),
        cmocka_unit_test(gradients_never_exist_all_at_once),
        cmocka_unit_test(all_else_stays_the_same),
        cmocka_unit_test(where_there_is_room_nothing_changes),
        cmocka_unit_test(a_plan_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
