/* SPDX-License-Identifier: MIT
 *
 * Plans from the cache folder: the same as those searched for, and never worse than no file.
 */
#include "support/folder.h"

#include "base/text.h"
#include "op/blas.h"
#include "plan/stored.h"
#include "support.h"

#include <string.h>

#define MIB ((int64_t)1 << 20)

static char folder[FOLDER_BYTES];
static qn_graph *graph;
static qn_plan_params params = {
    .budget = 64 * MIB, .batch = {60, 100}, .effort = QN_EFFORT_INSTANT, .cache_dir = folder};

static int setup(void **state)
{
    (void)state;
    make_folder(folder);
    graph = test_model("cnn", NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_folder(folder);
    qn_graph_destroy(&graph);
    return 0;
}

static bool was_searched_for(const qn_plan *plan)
{
    return plan->frontier.placed > 0;
}

static void assert_same(const qn_plan *a, const qn_plan *b)
{
    char *texts[] = {qn_plan_json(a), qn_plan_json(b)};
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    assert_true(a->info.hash == b->info.hash);
    assert_int_equal(a->frontier.count, b->frontier.count);
    for (int i = 0; i < a->frontier.count; i++) {
        assert_int_equal(a->frontier.points[i].bytes, b->frontier.points[i].bytes);
        assert_true(a->frontier.points[i].seconds == b->frontier.points[i].seconds);
    }
}

static void the_same_for_every_budget(void **state)
{
    (void)state;
    qn_plan *first = test_plan(graph, &params);
    assert_true(was_searched_for(first));
    assert_true(first->frontier.count > 4);
    for (int i = 0; i < first->frontier.count; i++) {
        qn_plan_params asked = params;
        asked.budget = first->frontier.points[i].bytes;
        qn_plan *stored = test_plan(graph, &asked);
        asked.cache_dir = "";
        qn_plan *searched = test_plan(graph, &asked);
        assert_false(was_searched_for(stored));
        assert_true(was_searched_for(searched));
        assert_same(stored, searched);
        test_invariants(stored);
        qn_plan_destroy(&stored);
        qn_plan_destroy(&searched);
    }
    qn_plan_destroy(&first);
}

static qn_plan_params parked_params(void)
{
    qn_plan_params asked = params;
    asked.park = true;
    asked.recompute = QN_RECOMPUTE_NONE;
    qn_plan *plan = test_plan(graph, &asked);
    asked.budget = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    return asked;
}

static void the_same_where_values_are_parked(void **state)
{
    (void)state;
    qn_plan_params asked = parked_params();
    qn_plan *stored = test_plan(graph, &asked);
    asked.cache_dir = "";
    qn_plan *searched = test_plan(graph, &asked);
    assert_false(was_searched_for(stored));
    assert_true(stored->info.parked_bytes > 0);
    assert_same(stored, searched);
    test_interpret(stored);
    qn_plan_destroy(&stored);
    qn_plan_destroy(&searched);
}

/* --- other questions --- */

static bool finds(const qn_graph *model, const qn_plan_params *asked)
{
    qn_plan *plan = test_plan(model, asked);
    const bool found = !was_searched_for(plan);
    qn_plan_destroy(&plan);
    return found;
}

static void other_questions_are_searched_for(void **state)
{
    (void)state;
    qn_plan_params others[] = {params, params, params, params, params, params, params};
    others[0].batch[1] = 99;
    others[1].micro_batch = 16;
    others[2].recompute = QN_RECOMPUTE_NONE;
    others[3].effort = QN_EFFORT_DEFAULT;
    others[4].optimizer.name = "adamw";
    others[5].variants = "linear=any";
    others[6].park = true;
    finds(graph, &params);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(finds(graph, &others[i]));
        assert_true(finds(graph, &others[i]));
    }
    qn_graph *model = test_model("mlp", NULL, 0);
    assert_false(finds(model, &params));
    qn_graph_destroy(&model);
    assert_true(finds(graph, &params));
}

/* In the fewest bytes products are small and need none of it. */
static qn_plan *plan_small(const qn_graph *model, const struct qn_facts *facts, bool stored)
{
    qn_plan *plan;
    int64_t least;
    qn_plan_params asked = {.budget = 1,
                            .batch = {64},
                            .effort = QN_EFFORT_INSTANT,
                            .variants = "linear=clblast",
                            .cache_dir = ""};
    assert_int_equal(qn_plan_create(&plan, model, facts, &asked, &least), QN_ERR_BUDGET);
    asked.budget = least;
    asked.cache_dir = stored ? folder : "";
    assert_int_equal(qn_plan_create(&plan, model, facts, &asked, NULL), QN_OK);
    assert_int_equal(plan->program.blas_temp, QN_BLAS_LEAST);
    return plan;
}

static void other_devices_of_one_name_are_searched_for(void **state)
{
    (void)state;
    static const int sides[] = {1024, 64, 32};
    qn_graph *model = test_chain(4, 128);
    for (int i = 0; i < 3; i++) {
        struct qn_facts facts = test_facts();
        facts.blas = true;
        facts.blas_side = sides[i];
        qn_plan *stored = plan_small(model, &facts, true);
        qn_plan *searched = plan_small(model, &facts, false);
        assert_same(stored, searched);
        qn_plan_destroy(&stored);
        qn_plan_destroy(&searched);
    }
    qn_graph_destroy(&model);
}

static void nothing_is_stored_without_a_folder(void **state)
{
    (void)state;
    params.cache_dir = "";
    assert_false(finds(graph, &params));
    assert_false(finds(graph, &params));
    params.cache_dir = folder;
}

/* --- files that are not right --- */

static void flip(const char *path, double where)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long at = (long)(where * (double)(ftell(file) - 1));
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 4, file), byte ^ 4);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_noticed(void **state)
{
    (void)state;
    char path[2 * FOLDER_BYTES];
    for (double where = 0; where <= 1; where += 0.125) {
        finds(graph, &params);
        only_file(folder, path);
        flip(path, where);
        assert_false(finds(graph, &params));
        assert_true(finds(graph, &params));
    }
}

/* Frontiers that are whole and yet wrong, as another build might have written them. */
static void move_first(struct qn_point *point, struct qn_steps *steps)
{
    (void)point;
    const int first = steps->task[0];
    memmove(steps->task, steps->task + 1, (size_t)(steps->count - 1) * sizeof *steps->task);
    steps->task[steps->count - 1] = first;
}

static void leave_out_last(struct qn_point *point, struct qn_steps *steps)
{
    (void)point;
    steps->count--;
}

static void run_last_twice(struct qn_point *point, struct qn_steps *steps)
{
    (void)point;
    steps->task[0] = steps->task[steps->count - 1];
}

static void number_too_large(struct qn_point *point, struct qn_steps *steps)
{
    (void)point;
    steps->task[steps->count - 1] = 1 << 20;
}

static void number_below_0(struct qn_point *point, struct qn_steps *steps)
{
    (void)point;
    steps->task[0] = -1;
}

static void wrong_bytes(struct qn_point *point, struct qn_steps *steps)
{
    (void)steps;
    point->bytes -= 64;
}

static void micro_batch_too_large(struct qn_point *point, struct qn_steps *steps)
{
    (void)steps;
    point->micro_batch = 1 << 20;
}

static void micro_batch_of_0(struct qn_point *point, struct qn_steps *steps)
{
    (void)steps;
    point->micro_batch = 0;
}

static void early_updates(struct qn_point *point, struct qn_steps *steps)
{
    (void)steps;
    point->early = true;
}

static void parked(struct qn_point *point, struct qn_steps *steps)
{
    (void)steps;
    point->park = true;
}

/* The first run of a task of this kind comes before all others. */
static void begin_with(const qn_plan *plan, struct qn_steps *steps, enum qn_task_kind kind)
{
    const struct qn_task *tasks = plan->program.phases[0].problem->tasks;
    int at = 0;
    while (tasks[steps->task[at]].kind != kind)
        at++;
    const int task = steps->task[at];
    memmove(steps->task + 1, steps->task, (size_t)at * sizeof *steps->task);
    steps->task[0] = task;
}

/* Of its micro-steps, to be spoilt. */
static struct qn_steps *steps_of(const struct qn_point *point)
{
    return &((struct qn_candidate *)qn_choices_pick(point->choices, 0, point->choice))->steps;
}

static void neither_store_nor_fetch_comes_too_early(void **state)
{
    (void)state;
    static const enum qn_task_kind kinds[] = {QN_TASK_STORE, QN_TASK_FETCH};
    const qn_plan_params asked = parked_params();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        qn_plan *plan = test_plan(graph, &asked);
        struct qn_point *point =
            &plan->frontier.points[qn_frontier_find(&plan->frontier, asked.budget)];
        begin_with(plan, steps_of(point), kinds[i]);
        qn_stored_save(plan);
        qn_plan_destroy(&plan);
        assert_false(finds(graph, &asked));
        assert_true(finds(graph, &asked));
    }
}

static void wrong_frontiers_are_not_taken(void **state)
{
    (void)state;
    static void (*const wrongs[])(struct qn_point *, struct qn_steps *) = {
        move_first,  leave_out_last,        run_last_twice,   number_too_large, number_below_0,
        wrong_bytes, micro_batch_too_large, micro_batch_of_0, early_updates,    parked,
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        qn_plan *plan = test_plan(graph, &params);
        struct qn_point *point =
            &plan->frontier.points[qn_frontier_find(&plan->frontier, params.budget)];
        wrongs[i](point, steps_of(point));
        qn_stored_save(plan);
        qn_plan_destroy(&plan);
        assert_false(finds(graph, &params));
        assert_true(finds(graph, &params));
    }
}

/* --- lists --- */

static bool writes(const struct qn_task *task, int value)
{
    for (int i = 0; i < task->n_writes; i++)
        if (task->writes[i].value == value)
            return true;
    return false;
}

static bool touches(const struct qn_task *task, const struct qn_task *other)
{
    bool found = false;
    for (int i = 0; i < task->n_writes; i++)
        found |= writes(other, task->writes[i].value);
    for (int i = 0; i < task->n_reads; i++)
        found |= writes(other, task->reads[i].value);
    return found;
}

static bool can_run(const struct qn_problem *problem, const struct qn_steps *steps)
{
    const qn_status status = qn_steps_check(problem, steps);
    assert_true(status == QN_OK || status == QN_ERR_FORMAT);
    return status == QN_OK;
}

/* Two neighbours of the list may change places if neither writes what the other uses. */
static void check_neighbours(const struct qn_problem *problem, struct qn_steps *steps)
{
    int bound = 0;
    for (int i = 0; i + 1 < steps->count; i++) {
        int *pair = steps->task + i, first = pair[0];
        const struct qn_task *tasks[] = {&problem->tasks[pair[0]], &problem->tasks[pair[1]]};
        const bool free = !touches(tasks[0], tasks[1]) && !touches(tasks[1], tasks[0]);
        pair[0] = pair[1];
        pair[1] = first;
        assert_int_equal(can_run(problem, steps), free);
        pair[1] = pair[0];
        assert_false(can_run(problem, steps));
        pair[0] = first;
        bound += !free;
    }
    assert_true(bound > 20 && bound < steps->count - 1);
}

static void check_recomputation(const struct qn_problem *problem, struct qn_arena *arena)
{
    struct qn_steps steps;
    bool *drop = qn_arena_new(arena, bool, (size_t)problem->n_tasks);
    for (int t = 0; t < problem->n_forward; t++)
        drop[t] = t % 3 > 0;
    assert_true(qn_steps_make(problem, &(struct qn_policy){.drop = drop}, arena, &steps));
    assert_true(steps.recomputed > 0);
    assert_true(can_run(problem, &steps));
}

static void only_lists_that_can_run_are_lists(void **state)
{
    (void)state;
    struct qn_facts facts = test_facts();
    struct qn_arena arena = {0};
    const struct qn_lowering how = {.arena = &arena, .facts = &facts, .params = &params};
    const qn_model_option depth = {"depth", "18"};
    qn_graph *model = test_model("resnet", &depth, 1);
    struct qn_persist persist;
    struct qn_problem problem;
    struct qn_steps steps;
    test_persist(&how, model, &persist);
    assert_int_equal(qn_lower_run(&how, &persist, 0, 16, &problem), QN_OK);
    assert_true(qn_steps_make(&problem, &(struct qn_policy){.drop = NULL}, &arena, &steps));
    assert_true(can_run(&problem, &steps));
    check_neighbours(&problem, &steps);
    check_recomputation(&problem, &arena);
    const int last = steps.task[steps.count - 1];
    steps.task[steps.count++] = last;
    assert_false(can_run(&problem, &steps));
    steps.count -= 2;
    assert_false(can_run(&problem, &steps));
    qn_arena_free(&arena);
    qn_graph_destroy(&model);
}

/* Gives the smallest budget, which is more. */
static int64_t refuse(int64_t budget)
{
    qn_plan *plan;
    qn_plan_params less = params;
    struct qn_facts facts = test_facts();
    int64_t smallest;
    less.budget = budget;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &less, &smallest), QN_ERR_BUDGET);
    assert_null(plan);
    return smallest;
}

static void a_budget_below_all_is_refused(void **state)
{
    (void)state;
    qn_plan *plan = test_plan(graph, &params);
    const int64_t smallest = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    assert_int_equal(refuse(smallest - 1), smallest);
}

/* What was stored without the smallest point refuses what a search would find. */
static void a_refusal_is_not_searched_for_again(void **state)
{
    (void)state;
    qn_plan *plan = test_plan(graph, &params);
    const int64_t first = plan->frontier.points[0].bytes, second = plan->frontier.points[1].bytes;
    plan->frontier.points++;
    plan->frontier.count--;
    qn_stored_save(plan);
    qn_plan_destroy(&plan);
    assert_int_equal(refuse(first), second);
}

static void a_wrong_refusal_is_searched_for(void **state)
{
    (void)state;
    qn_plan *plan = test_plan(graph, &params);
    const int64_t smallest = plan->frontier.points[0].bytes;
    plan->frontier.points[0].bytes += 512;
    qn_stored_save(plan);
    qn_plan_destroy(&plan);
    assert_int_equal(refuse(smallest - 1), smallest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_for_every_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_where_values_are_parked, setup, teardown),
        cmocka_unit_test_setup_teardown(other_questions_are_searched_for, setup, teardown),
        cmocka_unit_test_setup_teardown(other_devices_of_one_name_are_searched_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_is_stored_without_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_frontiers_are_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(neither_store_nor_fetch_comes_too_early, setup, teardown),
        cmocka_unit_test(only_lists_that_can_run_are_lists),
        cmocka_unit_test_setup_teardown(a_budget_below_all_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_is_not_searched_for_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_refusal_is_searched_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
