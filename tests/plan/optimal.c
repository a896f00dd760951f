/* SPDX-License-Identifier: MIT
 *
 * Plans of small graphs beside the fastest that there can be within the same bytes.
 *
 * Usage: test_plan_optimal [GATED [SEEDS [FIRST SEED [thorough]]]]
 *
 * Of each graph's budgets, from the smallest upwards, the last GATED must be near the optimum, and
 * the others not far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shape.h"
#include "optimum.h"
#include "small.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

enum { MICRO = 16, BUDGETS = 8, MOST_POINTS = 500, FEWEST = 12, MOST_OPERATORS = 20 };

static const double NEAR = 0.03, NOT_FAR = 0.1, ROUNDING = 1e-9;

static int gated = BUDGETS, seeds = 2, first_seed = 1;
static qn_plan_effort effort = QN_EFFORT_DEFAULT;

/* A planned graph. There are two micro-steps: in the second one all that is persistent is there
 * from its beginning, the gradients of parameters too, so that it is the same number of bytes at
 * every step. */
struct planned {
    qn_plan *plan;
    const struct qn_problem *problem;
    qn_plan_point points[MOST_POINTS];
    int count;
    int64_t persistent;
};

static int64_t persistent_bytes(const qn_plan *plan)
{
    int64_t bytes = plan->program.blas_temp;
    for (int v = 0; v < plan->persist.n_values; v++)
        if (plan->persist.values[v].block < 0)
            bytes += qn_round_up(plan->persist.values[v].bytes, plan->facts.alignment);
    return bytes;
}

static int count_operators(const struct qn_problem *problem)
{
    int count = 0, last = -1;
    for (int t = 0; t < problem->n_forward; t++)
        if (problem->tasks[t].kind == QN_TASK_GROUP && problem->tasks[t].node != last) {
            last = problem->tasks[t].node;
            count++;
        }
    return count;
}

static void plan_graph(struct planned *p, const qn_graph *graph)
{
    const qn_plan_params params = {.batch = {2 * MICRO}, .micro_batch = MICRO, .effort = effort};
    p->plan = test_plan(graph, &params);
    p->problem = p->plan->program.phases[0].problem;
    p->count = qn_plan_frontier(p->plan, p->points, MOST_POINTS);
    p->persistent = persistent_bytes(p->plan);
    assert_in_range(p->count, 2, MOST_POINTS);
}

/* Seconds of a micro-step under the plan for this budget. */
static double planned_seconds(const struct planned *p, int64_t budget)
{
    int chosen = p->count - 1;
    while (p->points[chosen].bytes > budget)
        chosen--;
    return (p->points[chosen].seconds - p->plan->program.phases[p->plan->program.update].seconds) /
           2;
}

/* What the exact simulator says of a list: live bytes; -1: it reads what is not there. */
static int64_t simulate(const struct planned *p, const struct qn_steps *steps)
{
    struct qn_arena arena = {0};
    struct qn_lowering how = {
        .arena = &arena, .facts = &p->plan->facts, .params = &p->plan->params};
    struct qn_program program = {.n_phases = 0};
    qn_program_add(&program, &arena, "micro-step", QN_MICRO_PHASE, p->problem, true, steps);
    const qn_status status = qn_program_simulate(&program, &p->plan->persist, true, &how);
    const int64_t peak = status == QN_OK ? program.live_peak : -1;
    qn_arena_free(&arena);
    return peak;
}

/* How far above the optimum the plan for this budget is: a part of it. The optimum has the whole
 * budget for what lives; that a plan must place it as well is the planner's affair. */
static double compare(const struct planned *p, int64_t budget)
{
    struct qn_arena arena = {0};
    const int64_t most = budget - p->persistent;
    const double planned = planned_seconds(p, budget);
    const struct test_optimum best =
        test_find_optimum(p->problem, most, planned * (1 + ROUNDING), &arena);
    assert_int_equal(best.verdict, TEST_FOUND); /* the plan itself is such a list */
    assert_in_range(simulate(p, &best.steps), 0, most);
    const double above = planned / best.steps.seconds - 1;
    qn_arena_free(&arena);
    return above;
}

/* How many of the budgets are too far from the optimum. */
static int compare_budgets(enum test_small_kind kind, uint64_t seed)
{
    static struct planned p;
    int far = 0;
    qn_graph *graph = test_small_graph(kind, seed);
    plan_graph(&p, graph);
    assert_in_range(count_operators(p.problem), FEWEST, MOST_OPERATORS);
    const int64_t least = p.points[0].bytes, most = p.points[p.count - 1].bytes;
    print_message("  %s %d, %% above the optimum:", test_small_name(kind), (int)seed);
    for (int b = 0; b < BUDGETS; b++) {
        const double above = compare(&p, least + (most - least) * b / BUDGETS);
        print_message(" %.1f", 100 * above);
        far += above > (b >= BUDGETS - gated ? NEAR : NOT_FAR);
    }
    print_message("\n");
    qn_plan_destroy(&p.plan);
    qn_graph_destroy(&graph);
    return far;
}

static void plans_are_near_the_optimum(void **state)
{
    (void)state;
    int far = 0;
    for (int kind = 0; kind < TEST_SMALL_COUNT; kind++)
        for (int i = 0; i < seeds; i++)
            far += compare_budgets((enum test_small_kind)kind, (uint64_t)(first_seed + i));
    print_message("  %d of %d are too far\n", far, BUDGETS * seeds * TEST_SMALL_COUNT);
    assert_int_equal(far, 0);
}

/* --- the search itself --- */

enum { MOST_STEPS = 64, MOST_LISTS = 100, MORE = 2 /* runs that are put in */ };

/* Step lists of which none is both slower and larger than another. */
struct lists {
    const struct planned *planned;
    struct {
        int64_t peak;
        double seconds;
    } best[MOST_LISTS];
    int count, tried;
};

static void note_list(struct lists *l, int64_t peak, double seconds)
{
    int kept = 0;
    for (int i = 0; i < l->count; i++)
        if (l->best[i].peak <= peak && l->best[i].seconds <= seconds)
            return;
    for (int i = 0; i < l->count; i++)
        if (l->best[i].peak < peak || l->best[i].seconds < seconds)
            l->best[kept++] = l->best[i];
    assert_true(kept < MOST_LISTS);
    l->best[kept].peak = peak;
    l->best[kept].seconds = seconds;
    l->count = kept + 1;
}

/* Notes the list and all that are made of it by up to `more` further runs of forward tasks, each
 * behind the one before. */
static void try_lists(struct lists *l, const struct qn_steps *steps, int first, int more)
{
    const struct qn_problem *problem = l->planned->problem;
    const int64_t peak = simulate(l->planned, steps);
    if (peak < 0)
        return;
    note_list(l, peak, steps->seconds);
    l->tried++;
    for (int at = first; more && at <= steps->count; at++)
        for (int t = 0; t < problem->n_forward; t++) {
            int task[MOST_STEPS];
            const struct qn_steps longer = {.task = task,
                                            .count = steps->count + 1,
                                            .seconds = steps->seconds + problem->tasks[t].seconds};
            if (!problem->tasks[t].repeatable)
                continue;
            memcpy(task, steps->task, (size_t)at * sizeof *task);
            task[at] = t;
            memcpy(task + at + 1, steps->task + at, (size_t)(steps->count - at) * sizeof *task);
            try_lists(l, &longer, at + 1, more - 1);
        }
}

static void try_all_lists(struct lists *l)
{
    int all[MOST_STEPS];
    const struct qn_problem *problem = l->planned->problem;
    struct qn_steps steps = {.task = all, .count = problem->n_tasks};
    assert_in_range(problem->n_tasks + MORE, 0, MOST_STEPS);
    for (int t = 0; t < problem->n_tasks; t++) {
        all[t] = t;
        steps.seconds += problem->tasks[t].seconds;
    }
    try_lists(l, &steps, 0, MORE);
}

/* No list that was made by trying is better than what the search finds. */
static void the_search_misses_nothing(void **state)
{
    (void)state;
    static struct planned p;
    static struct lists lists;
    qn_graph *graph = test_small_chain(4, 5);
    plan_graph(&p, graph);
    lists.planned = &p;
    try_all_lists(&lists);
    print_message("  %d lists, %d of them best\n", lists.tried, lists.count);
    assert_true(lists.count > 3);
    for (int i = 0; i < lists.count; i++) {
        struct qn_arena arena = {0};
        const struct test_optimum best = test_find_optimum(
            p.problem, lists.best[i].peak, lists.best[i].seconds * (1 + ROUNDING), &arena);
        assert_int_equal(best.verdict, TEST_FOUND);
        assert_in_range(simulate(&p, &best.steps), 0, lists.best[i].peak);
        qn_arena_free(&arena);
    }
    qn_plan_destroy(&p.plan);
    qn_graph_destroy(&graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_misses_nothing),
        cmocka_unit_test(plans_are_near_the_optimum),
    };
    gated = argc > 1 ? atoi(argv[1]) : gated;
    seeds = argc > 2 ? atoi(argv[2]) : seeds;
    first_seed = argc > 3 ? atoi(argv[3]) : first_seed;
    effort = argc > 4 ? QN_EFFORT_THOROUGH : effort;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
