/* SPDX-License-Identifier: MIT
 *
 * Each seed wins somewhere, and is missed when it is left out; and what a search costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/search/search.h"
#include "support.h"

#define MIB ((int64_t)1 << 20)

enum {
    KEEP_ALL = 1 << QN_SEED_KEEP_ALL,
    SEGMENTS = 1 << QN_SEED_SEGMENTS,
    SELECTIVE = 1 << QN_SEED_SELECTIVE,
    CUTS = 1 << QN_SEED_CUTS,
    DYNAMIC = 1 << QN_SEED_DYNAMIC,
    ALL_SEEDS = KEEP_ALL | SEGMENTS | SELECTIVE | CUTS | DYNAMIC
};

static double seconds_of(const qn_graph *graph, const qn_plan_params *params, unsigned without)
{
    struct qn_facts facts = test_facts();
    struct qn_arena arena = {0};
    const struct qn_lowering how = {
        .arena = &arena, .facts = &facts, .params = params, .without_seeds = without};
    struct qn_persist persist;
    struct qn_frontier frontier = {.count = 0};
    test_persist(&how, graph, &persist);
    assert_int_equal(qn_search(&how, &persist, &frontier), QN_OK);
    const int found = qn_frontier_find(&frontier, params->budget);
    const double seconds = found < 0 ? 1e9 : frontier.points[found].seconds;
    qn_arena_free(&arena);
    return seconds;
}

static void assert_wins(const qn_graph *graph, const qn_plan_params *params, unsigned seed)
{
    double best = seconds_of(graph, params, 0);
    assert_true(best < 1e9);
    assert_true(seconds_of(graph, params, seed) > best);
    assert_true(seconds_of(graph, params, ALL_SEEDS & ~seed) == best);
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

static void keep_all_wins_with_room(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {256}, .micro_batch = 256};
    assert_wins(graph, &params, KEEP_ALL);
    qn_graph_destroy(&graph);
}

static qn_graph *transformer(void)
{
    const qn_model_data text = {.channels = 1, .height = 1, .width = 128, .classes = 500};
    const qn_model_option options[] = {
        {"layers", "4"}, {"heads", "4"}, {"width", "64"}, {"fused", "0"}};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    assert_int_equal(qn_model_build(graph, "gpt", &text, options, 4), QN_OK);
    return graph;
}

static void check_transformer(double share, unsigned seed)
{
    qn_graph *graph = transformer();
    qn_plan_params params = {.budget = 800 * MIB, .batch = {8}, .micro_batch = 8};
    qn_plan *all = test_plan(graph, &params);
    params.budget = (int64_t)(share * (double)all->info.peak_bytes);
    assert_wins(all->graphs[0], &params, seed);
    qn_plan_destroy(&all);
    qn_graph_destroy(&graph);
}

/* Scores and their softmax in each of the layers: some are made again, and what they are made of is
 * kept. */
static void cuts_win_on_attention(void **state)
{
    (void)state;
    check_transformer(0.67, CUTS);
}

/* Whole layers, each when its time comes. */
static void segments_win_with_few_bytes(void **state)
{
    (void)state;
    check_transformer(0.265, SEGMENTS);
}

/* Each value is made again as often as its bytes are worth, from the nearest one that is there. */
static void dynamic_programming_wins_on_a_chain(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(36, 32);
    qn_plan_params params = {.budget = 800 * MIB, .batch = {16384}, .micro_batch = 16384};
    qn_plan *all = test_plan(graph, &params);
    params.budget = all->info.peak_bytes / 5;
    assert_wins(all->graphs[0], &params, DYNAMIC);
    qn_plan_destroy(&all);
    qn_graph_destroy(&graph);
}

/* Sums of residual blocks are cheap, but made again without a boundary they take the whole network.
 */
static void selective_wins_on_residual_blocks(void **state)
{
    (void)state;
    const qn_model_option depth = {"depth", "34"};
    qn_graph *graph = test_model("resnet", &depth, 1);
    qn_plan_params params = {.budget = 1600 * MIB, .batch = {512}, .micro_batch = 512};
    qn_plan *all = test_plan(graph, &params);
    params.budget = all->info.peak_bytes * 2 / 3;
    assert_wins(all->graphs[0], &params, SELECTIVE);
    qn_plan_destroy(&all);
    qn_graph_destroy(&graph);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
