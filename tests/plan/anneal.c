/* SPDX-License-Identifier: MIT
 *
 * The simulator for search says what the other one says, after every move; annealing finds lists
 * that run, and fewer seconds for the same bytes than the seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/search/anneal.h"
#include "plan/program/program.h"
#include "plan/search/seeds.h"
#include "plan/search/timeline.h"
#include "support.h"

#include <math.h>

/* A network lowered for one micro-step. */
struct lowered {
    struct qn_arena arena;
    struct qn_facts facts;
    qn_plan_params params;
    struct qn_lowering how;
    struct qn_persist persist;
    struct qn_problem problem;
    struct qn_candidates seeds;
};

static void lower(struct lowered *l, const qn_graph *graph, bool park)
{
    *l = (struct lowered){.facts = test_facts(), .params = {.batch = {16}}};
    l->how = (struct qn_lowering){
        .arena = &l->arena, .facts = &l->facts, .params = &l->params, .park = park};
    test_persist(&l->how, graph, &l->persist);
    assert_int_equal(qn_lower_run(&l->how, &l->persist, 0, 16, &l->problem), QN_OK);
    assert_int_equal(qn_candidates_make(&l->how, &l->problem, &l->seeds), QN_OK);
}

/* What the exact simulator says; -1: the list reads what is not there. */
static int64_t peak_of(struct lowered *l, const struct qn_steps *steps)
{
    struct qn_arena arena = {0};
    struct qn_lowering how = l->how;
    struct qn_program program = {.n_phases = 0};
    how.arena = &arena;
    qn_program_add(&program, &arena, "micro-step", QN_MICRO_PHASE, &l->problem, true, steps);
    const qn_status status = qn_program_simulate(&program, &l->persist, true, &how);
    const int64_t peak = status == QN_OK ? program.live_peak : -1;
    qn_arena_free(&arena);
    return peak;
}

static void check_timeline(struct lowered *l, const struct qn_timeline *timeline)
{
    struct qn_arena arena = {0};
    struct qn_steps steps;
    assert_true(qn_timeline_steps(timeline, &arena, &steps));
    assert_int_equal(qn_timeline_peak(timeline), peak_of(l, &steps));
    qn_arena_free(&arena);
}

/* Of the forward tasks, the stores and the fetches one. */
static int draw_task(const struct qn_problem *problem, uint64_t seed, uint64_t move)
{
    const int backward = qn_tasks_required(problem) - problem->n_forward;
    const int task = (int)(qn_random_bits(seed, 1, move) % (uint64_t)(problem->n_tasks - backward));
    return task < problem->n_forward ? task : task + backward;
}

/* One random change, if it may be. */
static bool change(struct qn_timeline *t, uint64_t seed, uint64_t move)
{
    const int task = draw_task(t->problem, seed, move);
    const int place = (int)(qn_random_bits(seed, 2, move) % (uint64_t)t->places);
    if (!t->problem->tasks[task].repeatable && !qn_task_parks(&t->problem->tasks[task]))
        return false;
    if (t->task[place] < 0 && qn_timeline_may_add(t, task, place)) {
        qn_timeline_add(t, task, place);
        return true;
    }
    if (t->task[place] != task || !qn_timeline_may_remove(t, task, place))
        return false;
    qn_timeline_remove(t, task, place);
    return true;
}

static void both_simulators_agree(void **state)
{
    (void)state;
    const char *const models[] = {"cnn", "mlp"};
    for (int m = 0; m < 4; m++) {
        struct lowered l;
        struct qn_timeline timeline;
        qn_graph *graph = test_model(models[m % 2], NULL, 0);
        int changes = 0;
        lower(&l, graph, m >= 2);
        assert_true(qn_timeline_open(&timeline, &l.problem, l.facts.alignment,
                                     &l.seeds.items[0].steps, &l.arena));
        check_timeline(&l, &timeline);
        for (uint64_t move = 0; move < 20000; move++)
            if (change(&timeline, 3, move) && ++changes % 10 == 0)
                check_timeline(&l, &timeline);
        assert_true(changes > 300);
        qn_arena_free(&l.arena);
        qn_graph_destroy(&graph);
    }
}

static void find_better(bool park)
{
    struct lowered l;
    qn_graph *graph = test_model("cnn", NULL, 0);
    lower(&l, graph, park);
    const struct qn_candidates *seeds = &l.seeds;
    int better = 0;
    for (int i = 1; i < seeds->count; i++) {
        struct qn_steps steps;
        int64_t peak;
        const struct qn_anneal_params params = {seeds->items[i].peak, 30000, 1};
        assert_true(
            qn_anneal(&l.problem, &seeds->items[i].steps, &params, &l.arena, &steps, &peak));
        assert_int_equal(peak, peak_of(&l, &steps));
        assert_true(peak <= params.target && steps.seconds <= seeds->items[i].steps.seconds);
        better += steps.seconds < seeds->items[i].steps.seconds;
    }
    print_message("  %d of %d seeds became faster\n", better, seeds->count - 1);
    assert_true(better > 0);
    qn_arena_free(&l.arena);
    qn_graph_destroy(&graph);
}

static void finds_better_lists_than_the_seeds(void **state)
{
    (void)state;
    find_better(false);
    find_better(true);
}

static void repeats(void **state)
{
    (void)state;
    struct lowered l;
    qn_graph *graph = test_model("cnn", NULL, 0);
    lower(&l, graph, true);
    struct qn_steps a, b;
    int64_t peak_a, peak_b;
    const struct qn_anneal_params params = {l.seeds.items[0].peak / 2, 20000, 7};
    assert_true(qn_anneal(&l.problem, &l.seeds.items[0].steps, &params, &l.arena, &a, &peak_a));
    assert_true(qn_anneal(&l.problem, &l.seeds.items[0].steps, &params, &l.arena, &b, &peak_b));
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.task, b.task, (size_t)a.count * sizeof *a.task);
    assert_int_equal(peak_a, peak_b);
    qn_arena_free(&l.arena);
    qn_graph_destroy(&graph);
}

/* No objective is less than another then. */
static void gives_a_list_that_runs_whatever_steps_take(void **state)
{
    (void)state;
    static const double all[] = {INFINITY, NAN, 1e308, 0};
    struct lowered l;
    qn_graph *graph = test_model("cnn", NULL, 0);
    lower(&l, graph, true);
    for (int i = 0; i < 4; i++) {
        struct qn_steps steps;
        int64_t peak;
        const struct qn_anneal_params params = {l.seeds.items[0].peak / 2, 5000, 1};
        for (int t = 0; t < l.problem.n_tasks; t++)
            l.problem.tasks[t].seconds = all[i];
        assert_true(
            qn_anneal(&l.problem, &l.seeds.items[0].steps, &params, &l.arena, &steps, &peak));
        assert_int_equal(peak, peak_of(&l, &steps));
        assert_true(peak > 0);
    }
    qn_arena_free(&l.arena);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_simulators_agree),
        cmocka_unit_test(finds_better_lists_than_the_seeds),
        cmocka_unit_test(repeats),
        cmocka_unit_test(gives_a_list_that_runs_whatever_steps_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
