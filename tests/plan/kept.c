/* SPDX-License-Identifier: MIT
 *
 * Programs of a forward run, a loss over the whole cycle and a backward run: what the last
 * micro-step makes is kept in between where it fits. Beside each stands the same program with two
 * graphs that are alike, in which nothing can be kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "base/log.h"
#include "base/random.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 48, CODE = 8, LAYERS = 5, MOST_POINTS = 800, ROOMY = 1 << 26 };

/* Random ones; more by the first argument. */
static int programs = 10;

/* Two towers may be two pairs of runs. */
struct program {
    qn_graph *forward[2], *backward[2], *loss;
    qn_run runs[6];
    qn_cell cells[2];
    qn_run_list list;
};

static qn_graph *make_tower(int number, int layers)
{
    const char input[] = {'x', (char)('0' + number), 0}, output[] = {'z', (char)('0' + number), 0};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, input, QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    for (int i = 0; i <= layers; i++) {
        const char name[] = {'w', (char)('0' + number), (char)('a' + i), 0};
        const int64_t out = i < layers ? WIDTH : CODE;
        qn_tensor w = qn_parameter(graph, name, 2, (int64_t[]){out, WIDTH}, NULL);
        x = qn_linear(graph, x, w, (qn_tensor){0});
        x = i < layers ? qn_dropout(graph, qn_gelu(graph, x, QN_GELU_EXACT), 0.1) : x;
    }
    qn_output(graph, x, output);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static uint64_t draws;

static int64_t draw(int64_t below)
{
    return (int64_t)(qn_random_bits(13, 0, draws++) % (uint64_t)below);
}

/* Layers of several widths, some with what an earlier one gave added, and at times an output whose
 * gradient nobody wants. */
static qn_graph *draw_tower(bool still)
{
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x0", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH}), before = x;
    int64_t width = WIDTH;
    const int layers = (int)draw(7);
    for (int i = 0; i <= layers; i++) {
        const char name[] = {'w', (char)('a' + i), 0};
        const int64_t out = i == layers ? CODE : draw(2) ? WIDTH : 8 + draw(100);
        qn_tensor w = qn_parameter(graph, name, 2, (int64_t[]){out, width}, NULL);
        x = qn_linear(graph, x, w, (qn_tensor){0});
        x = draw(2) ? qn_tanh(graph, x) : qn_gelu(graph, x, QN_GELU_EXACT);
        x = draw(3) ? x : qn_dropout(graph, x, 0.1);
        x = i < layers && out == WIDTH && draw(2) ? qn_add(graph, x, before) : x;
        before = out == WIDTH ? x : before;
        width = out;
    }
    qn_output(graph, x, "z0");
    if (still)
        qn_output(graph, qn_tanh(graph, qn_gelu(graph, x, QN_GELU_EXACT)), "still");
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static qn_graph *make_loss(int towers, bool still)
{
    const qn_graph_params couples = {.couples = true};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &couples), QN_OK);
    qn_tensor z = qn_input(graph, "z0", QN_F32, 2, (int64_t[]){QN_BATCH, CODE}), other = z;
    if (towers > 1)
        other = qn_input(graph, "z1", QN_F32, 2, (int64_t[]){QN_BATCH, CODE});
    if (still)
        z = qn_add(graph, z, qn_input(graph, "still", QN_F32, 2, (int64_t[]){QN_BATCH, CODE}));
    const qn_batch_matmul_params turned = {.transpose_b = true};
    qn_tensor alike = qn_batch_matmul(graph, z, other, &turned);
    qn_tensor index = qn_input(graph, "index", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_loss(graph, qn_softmax_cross_entropy(graph, alike, index, NULL), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* `apart`: forward and backward runs have graphs of their own. */
static void make(struct program *p, int towers, int layers, bool apart)
{
    static const char *const names[] = {"encode 0", "encode 1", "backward 0", "backward 1"};
    *p = (struct program){.loss = make_loss(towers, false),
                          .list = {.runs = p->runs, .cells = p->cells}};
    for (int i = 0; i < towers; i++) {
        p->forward[i] = p->backward[i] = make_tower(i, layers);
        if (apart)
            p->backward[i] = make_tower(i, layers);
        p->runs[p->list.n_runs++] =
            (qn_run){.name = names[i], .graph = p->forward[i], .what = QN_RUN_FORWARD};
        p->cells[p->list.n_cells++] = (qn_cell){.name = i ? "z1" : "z0", .gradient = true};
    }
    p->runs[p->list.n_runs++] = (qn_run){.name = "loss", .graph = p->loss, .whole = true};
    for (int i = 0; i < towers; i++)
        p->runs[p->list.n_runs++] =
            (qn_run){.name = names[2 + i], .graph = p->backward[i], .what = QN_RUN_BACKWARD};
}

static void destroy(struct program *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->backward[i] != p->forward[i])
            qn_graph_destroy(&p->backward[i]);
        qn_graph_destroy(&p->forward[i]);
    }
    qn_graph_destroy(&p->loss);
}

static qn_plan *plan_of(const struct program *p, const qn_plan_params *params)
{
    const struct qn_facts facts = test_facts();
    qn_plan *plan;
    const qn_status status = qn_plan_create_runs(&plan, &p->list, &facts, params, NULL);
    if (status != QN_OK)
        print_message("  %s\n", qn_last_error());
    assert_int_equal(status, QN_OK);
    return plan;
}

static qn_plan_params params_of(int64_t batch, int64_t micro_batch)
{
    return (qn_plan_params){
        .budget = ROOMY, .batch = {batch}, .micro_batch = micro_batch, .effort = QN_EFFORT_INSTANT};
}

static int frontier_of(const struct program *p, const qn_plan_params *params,
                       qn_plan_point points[MOST_POINTS])
{
    qn_plan *plan = plan_of(p, params);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    assert_in_range(count, 1, MOST_POINTS);
    qn_plan_destroy(&plan);
    return count;
}

static const struct qn_phase_run *phase_called(const qn_plan *plan, const char *name)
{
    for (int p = 0; p < plan->program.n_phases; p++)
        if (strcmp(plan->program.phases[p].name, name) == 0)
            return &plan->program.phases[p];
    return NULL;
}

/* Seconds of one forward pass of the last micro-step of the largest batch. */
static double forward_seconds(const qn_plan *plan)
{
    double seconds = 0;
    for (int r = 0; r < plan->runs.n_runs; r++) {
        const struct qn_run_phases *phases = &plan->program.cycles[0].runs[r];
        if (plan->runs.run[r].what == QN_RUN_FORWARD)
            seconds += plan->program.phases[phases->kept].seconds;
    }
    return seconds;
}

/* --- what is gained, and what it costs --- */

/* With room, one forward pass less; the smallest budget is no larger; and at every budget the plan
 * is as fast as the one that keeps nothing, or faster. */
static void compare(int towers, int64_t batch, int64_t micro_batch)
{
    static qn_plan_point kept[MOST_POINTS], apart[MOST_POINTS];
    const qn_plan_params params = params_of(batch, micro_batch);
    struct program one, two;
    make(&one, towers, LAYERS, false);
    make(&two, towers, LAYERS, true);
    const int n_kept = frontier_of(&one, &params, kept),
              n_apart = frontier_of(&two, &params, apart);
    print_message("  %d tower(s), %" PRId64 " by %" PRId64 ": %" PRId64 " to %" PRId64
                  " bytes in %d points, else %" PRId64 " to %" PRId64 " in %d\n",
                  towers, batch, micro_batch, kept[0].bytes, kept[n_kept - 1].bytes, n_kept,
                  apart[0].bytes, apart[n_apart - 1].bytes, n_apart);
    assert_true(kept[0].bytes <= apart[0].bytes);
    for (int i = 0, k = 0; i < n_apart; i++) {
        while (k + 1 < n_kept && kept[k + 1].bytes <= apart[i].bytes)
            k++;
        assert_true(kept[k].bytes <= apart[i].bytes &&
                    kept[k].seconds <= apart[i].seconds * 1.0001);
    }
    qn_plan *plan = plan_of(&one, &params), *other = plan_of(&two, &params);
    /* The backward run does not make its outputs again. */
    const double gain = other->info.seconds - plan->info.seconds;
    print_message("    %.3g s less, a forward pass takes %.3g s\n", gain, forward_seconds(plan));
    assert_true(gain > 0.5 * forward_seconds(plan) && gain <= 1.001 * forward_seconds(plan));
    const int64_t steps = (batch + micro_batch - 1) / micro_batch;
    assert_int_equal(plan->info.micro_steps_again, towers * (steps - 1));
    assert_int_equal(other->info.micro_steps_again, towers * steps);
    assert_true(plan->info.hash != other->info.hash);
    qn_plan_destroy(&plan);
    qn_plan_destroy(&other);
    destroy(&one);
    destroy(&two);
}

static void one_forward_pass_less_where_it_fits(void **state)
{
    (void)state;
    compare(1, 64, 16);
    compare(1, 64, 64); /* nothing runs twice */
    compare(1, 70, 16); /* the remainder is kept */
    compare(1, 17, 16);
    compare(2, 64, 16);
    compare(2, 40, 17);
}

/* --- every budget --- */

/* Of all plans, from the smallest to the fastest, also of such with several effective batches: no
 * two arrays that live together overlap, on poisoned memory every step reads what it means, and a
 * larger budget is no slower. Gives how many of them keep a micro-step. */
static int try_all(const struct program *p, qn_plan_params params)
{
    static qn_plan_point points[MOST_POINTS];
    char folder[FOLDER_BYTES];
    make_folder(folder);
    params.cache_dir = folder; /* one search for all budgets */
    const int count = frontier_of(p, &params, points);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        params.budget = points[i].bytes;
        qn_plan *plan = plan_of(p, &params);
        assert_int_equal(plan->info.peak_bytes, points[i].bytes);
        assert_int_equal(plan->frontier.placed, 0);
        test_invariants(plan);
        test_interpret(plan);
        kept += plan->program.cycles[0].runs[0].kept >= 0;
        qn_plan_destroy(&plan);
    }
    remove_folder(folder);
    return kept;
}

static void every_budget_has_a_sound_plan(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 2; towers++) {
        struct program p;
        make(&p, towers, LAYERS, false);
        qn_plan_params all[] = {params_of(64, 16), params_of(21, 16), params_of(16, 16),
                                params_of(60, 0),  params_of(48, 16), params_of(40, 16)};
        memcpy(all[1].batch, (int64_t[]){70, 16, 33, 5}, 4 * sizeof(int64_t));
        all[4].park = true;
        all[4].batch[1] = 32;
        all[5].effort = QN_EFFORT_DEFAULT;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            const int kept = try_all(&p, all[i]);
            print_message("  %d tower(s), %zu: %d plans keep a micro-step\n", towers, i, kept);
            assert_true(kept > 1);
        }
        destroy(&p);
    }
}

static void draw_program(struct program *p)
{
    const bool still = draw(2);
    *p = (struct program){.list = {.runs = p->runs, .cells = p->cells}};
    p->forward[0] = p->backward[0] = draw_tower(still);
    p->loss = make_loss(1, still);
    p->cells[p->list.n_cells++] = (qn_cell){.name = "z0", .gradient = true};
    if (still)
        p->cells[p->list.n_cells++] = (qn_cell){.name = "still"};
    p->list.n_runs = 3;
    p->runs[0] = (qn_run){.name = "encode", .graph = p->forward[0], .what = QN_RUN_FORWARD};
    p->runs[1] = (qn_run){.name = "loss", .graph = p->loss, .whole = true};
    p->runs[2] = (qn_run){.name = "backward", .graph = p->forward[0], .what = QN_RUN_BACKWARD};
}

static qn_plan_params draw_params(void)
{
    static const qn_recompute_mode modes[] = {QN_RECOMPUTE_AUTO, QN_RECOMPUTE_AUTO,
                                              QN_RECOMPUTE_NONE, QN_RECOMPUTE_ALL};
    qn_plan_params params = params_of(1 + draw(70), draw(3) ? 1 + draw(30) : 0);
    for (int i = 1, more = (int)draw(4); i <= more; i++)
        params.batch[i] = 1 + draw(70);
    params.recompute = modes[draw(4)];
    params.park = draw(3) == 0;
    return params;
}

static void random_programs_have_sound_plans(void **state)
{
    (void)state;
    int kept = 0;
    for (int i = 0; i < programs; i++) {
        struct program p;
        draw_program(&p);
        kept += try_all(&p, draw_params());
        destroy(&p);
    }
    print_message("  %d plans of %d programs keep a micro-step\n", kept, programs);
    assert_true(kept > programs);
}

static void stored_plans_are_those_searched_for(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    struct program p;
    qn_plan_params params = params_of(70, 16);
    make(&p, 2, LAYERS, false);
    make_folder(folder);
    for (int i = 0; i < 2; i++) {
        qn_plan *plans[3]; /* the first is stored */
        for (int k = 0; k < 3; k++) {
            params.cache_dir = k < 2 ? folder : "";
            plans[k] = plan_of(&p, &params);
        }
        assert_int_equal(plans[1]->frontier.placed, 0);
        assert_true(plans[1]->info.hash == plans[2]->info.hash);
        assert_int_equal(plans[1]->info.micro_steps_again, i ? 10 : 8);
        params.budget = plans[0]->info.smallest_budget;
        for (int k = 0; k < 3; k++)
            qn_plan_destroy(&plans[k]);
    }
    remove_folder(folder);
    destroy(&p);
}

/* Between keeping nothing and keeping all there are plans that make some of it again. */
static void part_of_it_may_be_kept(void **state)
{
    (void)state;
    static qn_plan_point points[MOST_POINTS];
    qn_plan_params params = params_of(64, 16);
    char folder[FOLDER_BYTES];
    struct program p;
    make_folder(folder);
    params.cache_dir = folder;
    make(&p, 1, LAYERS, false);
    const int count = frontier_of(&p, &params, points);
    int parts = 0;
    for (int i = 0; i < count; i++) {
        params.budget = points[i].bytes;
        qn_plan *plan = plan_of(&p, &params);
        const struct qn_phase_run *back = phase_called(plan, "backward 0, last micro-step");
        parts += back && back->recomputed > 0 && plan->info.recomputed_steps == 0;
        qn_plan_destroy(&plan);
    }
    print_message("  %d plans keep a part, and all of other micro-steps\n", parts);
    assert_true(parts > 0);
    remove_folder(folder);
    destroy(&p);
}

/* --- what is the same --- */

/* The variant of a task is that of its node, group and batch, in whichever phase it runs: bits do
 * not depend on what is kept. */
static void kernels_are_the_same_in_all_phases(void **state)
{
    (void)state;
    const qn_plan_params params = params_of(48, 16);
    struct program p;
    int compared = 0;
    make(&p, 1, LAYERS, false);
    qn_plan *plan = plan_of(&p, &params);
    const struct qn_problem *kept = phase_called(plan, "backward 0, last micro-step")->problem;
    const struct qn_problem *others[] = {phase_called(plan, "encode 0")->problem,
                                         phase_called(plan, "backward 0")->problem};
    for (int o = 0; o < 2; o++)
        for (int a = 0; a < kept->n_tasks; a++)
            for (int b = 0; b < others[o]->n_tasks; b++) {
                const struct qn_task *x = &kept->tasks[a], *y = &others[o]->tasks[b];
                if (x->node != y->node || x->group != y->group || x->backward != y->backward)
                    continue;
                assert_int_equal(x->variant, y->variant);
                assert_int_equal(x->setting, y->setting);
                compared++;
            }
    assert_true(compared > 6 * LAYERS);
    qn_plan_destroy(&plan);
    destroy(&p);
}

/* What every effective batch begins with, how often, and what is shown. */
static void phases_are_counted(void **state)
{
    (void)state;
    qn_plan_params params = params_of(64, 16);
    params.batch[1] = 16;
    params.batch[2] = 40;
    static const struct {
        bool first, rest;
        int64_t laters;
    } want[] = {{true, false, 2}, {false, false, 0}, {true, false, 1}};
    struct program p;
    make(&p, 1, LAYERS, false);
    qn_plan *plan = plan_of(&p, &params);
    for (int c = 0; c < 3; c++)
        for (int r = 0; r < 3; r += 2) {
            const struct qn_run_phases *phases = &plan->program.cycles[c].runs[r];
            const struct qn_phase_run *kept = &plan->program.phases[phases->kept];
            assert_int_equal(phases->first >= 0, want[c].first);
            assert_int_equal(phases->rest >= 0, want[c].rest);
            assert_int_equal(phases->laters, want[c].laters);
            assert_int_equal(kept->problem->batch, c == 2 ? 8 : 16);
            assert_false(kept->repeats);
            assert_true(r ? kept->before >= 0 : kept->next == plan->program.cycles[c].runs[2].kept);
        }
    qn_plan_destroy(&plan);
    destroy(&p);
}

/* --- where nothing can be kept --- */

static void not_where_a_ring_is_read(void **state)
{
    (void)state;
    enum { ROWS = 64 };
    struct program p;
    make(&p, 1, 1, true);
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x0", QN_F32, 2, (int64_t[]){QN_BATCH, CODE});
    qn_tensor ring = qn_cell_input(graph, "ring", QN_F32, 2, (int64_t[]){ROWS, CODE});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){CODE, ROWS}, NULL);
    const qn_batch_matmul_params turned = {.transpose_b = true};
    x = qn_tanh(graph, x);
    qn_output(graph, x, "ring");
    x = qn_linear(graph, qn_batch_matmul(graph, x, ring, &turned), w, (qn_tensor){0});
    qn_output(graph, x, "z0");
    p.runs[0].graph = p.runs[2].graph = graph;
    p.cells[p.list.n_cells++] = (qn_cell){.name = "ring", .kind = QN_CELL_RING, .rows = ROWS};
    const qn_plan_params params = params_of(32, 16);
    qn_plan *plan = plan_of(&p, &params);
    assert_int_equal(plan->info.micro_steps_again, 2);
    assert_int_equal(plan->program.cycles[0].runs[2].kept, -1);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
    destroy(&p);
}

/* A list whose backward tasks begin before all forward ones have run, as a file may have it. */
static void other_runs_come_behind_the_forward_pass(void **state)
{
    (void)state;
    const qn_plan_params params = params_of(32, 16);
    struct program p;
    make(&p, 1, 2, false);
    qn_plan *plan = plan_of(&p, &params);
    const struct qn_phase_run *encode = phase_called(plan, "encode 0, last micro-step");
    const struct qn_phase_run *back = phase_called(plan, "backward 0, last micro-step");
    const struct qn_problem *problem = back->problem;
    int list[256];
    struct qn_steps steps = {.task = list};
    assert_true(encode->n_steps == problem->n_forward);
    for (int i = 0; i < encode->n_steps; i++)
        list[steps.count++] = encode->steps[i].task;
    for (int i = 0; i < back->n_steps; i++)
        list[steps.count++] = back->steps[i].task;
    assert_int_equal(qn_steps_check(problem, &steps), QN_OK);
    assert_true(qn_steps_part(problem, &steps));
    const int last = problem->n_forward - 1, store = list[last];
    list[last] = list[last + 1]; /* loads a gradient that the loss has not given */
    list[last + 1] = store;
    assert_int_equal(qn_steps_check(problem, &steps), QN_OK);
    assert_false(qn_steps_part(problem, &steps));
    qn_plan_destroy(&plan);
    destroy(&p);
}

/* --- what members of a group go by --- */

/* Gradients are complete with the first micro-step, which is a whole one, or the only one. */
static void backward_runs_end_with_the_first_micro_step(void **state)
{
    (void)state;
    static const int64_t batch[] = {32, 40, 16};
    double seconds[6];
    for (int i = 0; i < 6; i++) {
        const qn_plan_params params = params_of(batch[i % 3], 16);
        struct program p;
        make(&p, 1, LAYERS, i >= 3);
        qn_plan *plan = plan_of(&p, &params);
        seconds[i] = plan->info.backward_seconds;
        print_message("  %" PRId64 " samples by 16: %.3g s\n", batch[i % 3], seconds[i]);
        assert_true(seconds[0] > 0 && fabs(seconds[i] / seconds[0] - 1) < 1e-9);
        qn_plan_destroy(&plan);
        destroy(&p);
    }
}

static void rows_of_whole_runs_are_counted(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 2; towers++) {
        const qn_plan_params params = params_of(32, 16);
        struct program p;
        make(&p, towers, 1, false);
        qn_plan *plan = plan_of(&p, &params);
        assert_int_equal(plan->info.row_cells, towers);
        assert_int_equal(plan->info.row_bytes, towers * CODE * (int)sizeof(float));
        qn_plan_destroy(&plan);
        destroy(&p);
    }
}

/* --- what is shown --- */

static void assert_shows(char *text, const char *part)
{
    assert_non_null(text);
    if (!strstr(text, part))
        print_message("%s", text);
    assert_non_null(strstr(text, part));
    qn_free(text);
}

static void plans_say_what_is_kept(void **state)
{
    (void)state;
    qn_plan_params params = params_of(64, 16);
    struct program p;
    char *text;
    make(&p, 1, LAYERS, false);
    qn_plan *plan = plan_of(&p, &params);
    assert_shows(qn_plan_text(plan),
                 "\nforward again: 3 of 4 micro-steps; what the last one makes is kept\n");
    assert_shows(qn_plan_json(plan), "\"micro_steps_again\": 3,");
    assert_shows(qn_plan_memory_json(plan), " of backward 0, last micro-step, ");
    assert_int_equal(qn_plan_explain(plan, "linear_2", &text), QN_OK);
    assert_shows(text, "    kept since step 1 of encode 0, last micro-step, linear_2: forward\n");
    params.budget = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    plan = plan_of(&p, &params);
    assert_shows(qn_plan_text(plan), "\nforward again: 4 of 4 micro-steps\n");
    qn_plan_destroy(&plan);
    destroy(&p);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        programs = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_forward_pass_less_where_it_fits),
        cmocka_unit_test(every_budget_has_a_sound_plan),
        cmocka_unit_test(random_programs_have_sound_plans),
        cmocka_unit_test(stored_plans_are_those_searched_for),
        cmocka_unit_test(part_of_it_may_be_kept),
        cmocka_unit_test(kernels_are_the_same_in_all_phases),
        cmocka_unit_test(phases_are_counted),
        cmocka_unit_test(not_where_a_ring_is_read),
        cmocka_unit_test(other_runs_come_behind_the_forward_pass),
        cmocka_unit_test(backward_runs_end_with_the_first_micro_step),
        cmocka_unit_test(rows_of_whole_runs_are_counted),
        cmocka_unit_test(plans_say_what_is_kept),
    };
    return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
