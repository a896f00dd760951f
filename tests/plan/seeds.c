/* SPDX-License-Identifier: MIT
 *
 * Each seed wins somewhere, and is missed when it is left out, also at the default effort, where
 * local search makes up for much; and what a search costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/search/improve.h"
#include "plan/search/search.h"
#include "support.h"

#define MIB ((int64_t)1 << 20)

enum {
    KEEP_ALL = 1 << QN_SEED_KEEP_ALL,
    SEGMENTS = 1 << QN_SEED_SEGMENTS,
    SELECTIVE = 1 << QN_SEED_SELECTIVE,
    CUTS = 1 << QN_SEED_CUTS,
    DYNAMIC = 1 << QN_SEED_DYNAMIC,
    LISTS = 1 << QN_SEED_LISTS,
    PARKED = 1 << QN_SEED_PARKED,
    ALL_SEEDS = KEEP_ALL | SEGMENTS | SELECTIVE | CUTS | DYNAMIC
};

static const double NO_PLAN = 1e9;

/* By how much a plan has to be slower: local search that begins elsewhere finds other lists, some
 * of them a little worse by chance. */
static const double MISSED = 1.01;

/* Of the fastest plan within the budget; NO_PLAN: none fits. */
static double seconds_of(const qn_graph *graph, const qn_plan_params *params, unsigned without)
{
    struct qn_facts facts = test_facts();
    struct qn_arena arena = {0};
    struct qn_lowering how = {.arena = &arena,
                              .facts = &facts,
                              .params = params,
                              .park = params->park,
                              .without_seeds = without};
    struct qn_persist persist;
    struct qn_lists lists;
    struct qn_frontier frontier = {.count = 0};
    test_persist(&how, graph, &persist);
    assert_int_equal(qn_lists_find(&how, &persist, 0, &lists), QN_OK);
    how.lists = &lists;
    assert_int_equal(qn_search(&how, &persist, &frontier), QN_OK);
    const int found = qn_frontier_find(&frontier, params->budget);
    const double seconds = found < 0 ? NO_PLAN : frontier.points[found].seconds;
    qn_arena_free(&arena);
    return seconds;
}

/* A graph as plans have it, and the bytes of its plan that recomputes nothing. Takes the graph. */
static qn_plan *keep_all(qn_graph *graph, qn_plan_params params)
{
    params.budget = 2048 * MIB;
    params.recompute = QN_RECOMPUTE_NONE;
    qn_plan *plan = test_plan(graph, &params);
    qn_graph_destroy(&graph);
    return plan;
}

/* At a share of the bytes of keeping all, without local search: the seed alone is as good as all
 * of them, and without it the plan is slower. */
static void assert_wins(const qn_plan *all, qn_plan_params params, double share, unsigned seed)
{
    const qn_graph *graph = all->graphs[0];
    params.effort = QN_EFFORT_INSTANT;
    params.budget = (int64_t)(share * (double)all->info.peak_bytes);
    const double best = seconds_of(graph, &params, 0);
    assert_true(best < NO_PLAN);
    assert_true(seconds_of(graph, &params, seed) > best);
    assert_true(seconds_of(graph, &params, ALL_SEEDS & ~seed) == best);
}

/* Local search from all the other seeds does not make up for this one. */
static void assert_missed(const qn_plan *all, qn_plan_params params, double share, unsigned seed)
{
    const qn_graph *graph = all->graphs[0];
    params.budget = (int64_t)(share * (double)all->info.peak_bytes);
    const double best = seconds_of(graph, &params, 0);
    assert_true(best < NO_PLAN);
    assert_true(seconds_of(graph, &params, seed) > MISSED * best);
}

/* Placing takes a plan most of its time. */
static void hardly_more_is_placed_than_is_found(void **state)
{
    (void)state;
    const qn_model_option options[] = {{"depth", "18"}, {"stem", "3"}};
    qn_graph *graph = test_model("resnet", options, 2);
    const qn_plan_params params = {.batch = {64}};
    struct qn_facts facts = test_facts();
    struct qn_arena arena = {0};
    const struct qn_lowering how = {.arena = &arena, .facts = &facts, .params = &params};
    struct qn_persist persist;
    struct qn_frontier frontier = {.count = 0};
    test_persist(&how, graph, &persist);
    assert_int_equal(qn_search(&how, &persist, &frontier), QN_OK);
    assert_true(frontier.count > 10);
    assert_true(frontier.placed <= frontier.count + frontier.count / 2);
    qn_arena_free(&arena);
    qn_graph_destroy(&graph);
}

/* --- each seed --- */

static void keep_all_wins_with_room(void **state)
{
    (void)state;
    const qn_plan_params params = {.batch = {256}, .micro_batch = 256};
    qn_plan *all = keep_all(test_model("mlp", NULL, 0), params);
    assert_wins(all, params, 1, KEEP_ALL);
    assert_missed(all, params, 1, KEEP_ALL);
    qn_plan_destroy(&all);
}

static const qn_plan_params eight_texts = {.batch = {8}, .micro_batch = 8};

static qn_plan *transformer(const char *fused)
{
    const qn_model_data text = {.channels = 1, .height = 1, .width = 128, .tokens = 500};
    const qn_model_option options[] = {
        {"layers", "4"}, {"heads", "4"}, {"width", "64"}, {"fused", fused}};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    assert_int_equal(qn_model_build(graph, "gpt", &text, options, 4), QN_OK);
    return keep_all(graph, eight_texts);
}

/* Scores and their softmax in each of the layers: some are made again, and what they are made of is
 * kept. */
static void cuts_win_on_attention(void **state)
{
    (void)state;
    qn_plan *all = transformer("0");
    assert_wins(all, eight_texts, 0.67, CUTS);
    assert_missed(all, eight_texts, 0.65, CUTS);
    qn_plan_destroy(&all);
}

/* Whole layers, each when its time comes. */
static void segments_win_with_few_bytes(void **state)
{
    (void)state;
    qn_plan *unfused = transformer("0"), *fused = transformer("1");
    assert_wins(unfused, eight_texts, 0.265, SEGMENTS);
    assert_missed(fused, eight_texts, 0.2275, SEGMENTS);
    qn_plan_destroy(&unfused);
    qn_plan_destroy(&fused);
}

/* Each value is made again as often as its bytes are worth, from the nearest one that is there. */
static void dynamic_programming_wins_on_a_chain(void **state)
{
    (void)state;
    const qn_plan_params params = {.batch = {16384}, .micro_batch = 16384};
    qn_plan *all = keep_all(test_chain(36, 32), params);
    assert_wins(all, params, 0.2, DYNAMIC);
    assert_missed(all, params, 0.12, DYNAMIC);
    qn_plan_destroy(&all);
}

/* Sums of residual blocks are cheap, but made again without a boundary they take the whole network.
 */
static void selective_wins_on_residual_blocks(void **state)
{
    (void)state;
    const qn_model_option depth = {"depth", "34"};
    const qn_plan_params params = {.batch = {512}, .micro_batch = 512};
    qn_plan *all = keep_all(test_model("resnet", &depth, 1), params);
    assert_wins(all, params, 2.0 / 3, SELECTIVE);
    assert_missed(all, params, 0.63, SELECTIVE);
    qn_plan_destroy(&all);
}

/* With few bytes each of the other seeds makes again more than it has to. */
static void lists_of_local_search_are_missed(void **state)
{
    (void)state;
    qn_plan *all = transformer("1");
    assert_missed(all, eight_texts, 0.2275, LISTS);
    qn_plan_destroy(&all);
}

static void parked_values_are_missed_with_few_bytes(void **state)
{
    (void)state;
    const qn_plan_params params = {.batch = {16384}, .micro_batch = 16384, .park = true};
    qn_plan *all = keep_all(test_chain(24, 32), params);
    assert_missed(all, params, 0.14, PARKED);
    qn_plan_destroy(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardly_more_is_placed_than_is_found),
        cmocka_unit_test(keep_all_wins_with_room),
        cmocka_unit_test(cuts_win_on_attention),
        cmocka_unit_test(segments_win_with_few_bytes),
        cmocka_unit_test(dynamic_programming_wins_on_a_chain),
        cmocka_unit_test(selective_wins_on_residual_blocks),
        cmocka_unit_test(lists_of_local_search_are_missed),
        cmocka_unit_test(parked_values_are_missed_with_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
