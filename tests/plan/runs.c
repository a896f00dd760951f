/* SPDX-License-Identifier: MIT
 *
 * Programs that cannot be: each is refused with the run or cell and the reason, before any search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <string.h>

enum { WIDTH = 6, ROWS = 8 };

static char line[256];

static void keep_line(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    strncpy(line, text, sizeof line - 1);
}

static qn_graph *new_graph(void)
{
    const qn_graph_params params = {.log = {.fn = keep_line}};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    return graph;
}

static qn_tensor layer(qn_graph *graph, qn_tensor x, const char *name, int64_t out)
{
    const int64_t in = qn_shape_of(graph, x).dim[1];
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, in}, NULL),
                     (qn_tensor){0});
}

/* Graphs that the programs below are made of. */
static struct graphs {
    qn_graph *tower;  /* x -> output "z" */
    qn_graph *wider;  /* the same weight in another shape */
    qn_graph *loss;   /* z -> loss */
    qn_graph *bank;   /* x -> output "bank", and what the cell "bank" holds -> loss */
    qn_graph *early;  /* reads the cell "bank" before its own row is made */
    qn_graph *norm;   /* x -> batch norm -> output "z" */
    qn_graph *half;   /* tower in f16 */
    qn_graph *narrow; /* bank in f16 with one number a row */
    qn_graph *alike;  /* x -> rows as long as the batch -> output "z" */
    qn_graph *twice;  /* x -> outputs "z" and "w", of one tensor */
    qn_graph *both;   /* z and w -> loss */
    qn_graph *other;  /* x -> output "w" */
    qn_graph *score;  /* x -> batch norm -> loss */
    qn_graph *reader; /* z -> output "y" */
    qn_graph *pairs;  /* every sample beside every other -> loss */
} g;

static qn_tensor x_of(qn_graph *graph)
{
    return qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
}

static void make_bank(qn_graph *graph, bool early)
{
    qn_tensor x = x_of(graph);
    qn_tensor bank = qn_cell_input(graph, "bank", QN_F32, 2, (int64_t[]){ROWS, WIDTH});
    const qn_batch_matmul_params turned = {.transpose_b = true};
    qn_tensor alike = early ? qn_batch_matmul(graph, x, bank, &turned) : (qn_tensor){0};
    qn_tensor z = layer(graph, x, "w", WIDTH);
    qn_output(graph, z, "bank");
    alike = early ? alike : qn_batch_matmul(graph, z, bank, &turned);
    qn_output(graph, alike, "alike");
    qn_loss(graph, qn_mean(graph, alike, 1), "loss", NULL);
}

static void make_more_graphs(void)
{
    const qn_batch_matmul_params turned = {.transpose_b = true};
    const qn_graph_params couples = {.log = {.fn = keep_line}, .couples = true};
    qn_graph **made[] = {&g.twice, &g.both, &g.other, &g.score, &g.reader};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        *made[i] = new_graph();
    assert_int_equal(qn_graph_create(&g.alike, &couples), QN_OK);
    qn_tensor z = layer(g.alike, x_of(g.alike), "w", WIDTH);
    qn_output(g.alike, qn_batch_matmul(g.alike, z, z, &turned), "z");
    z = layer(g.twice, x_of(g.twice), "w", WIDTH);
    qn_output(g.twice, z, "z");
    qn_output(g.twice, z, "w");
    z = qn_input(g.both, "z", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor w = qn_input(g.both, "w", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_loss(g.both, qn_mean(g.both, qn_multiply(g.both, z, w), 1), "loss", NULL);
    qn_output(g.other, layer(g.other, x_of(g.other), "v", WIDTH), "w");
    z = qn_input(g.reader, "z", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_output(g.reader, layer(g.reader, z, "u", WIDTH), "y");
    z = qn_batch_norm(g.score, layer(g.score, x_of(g.score), "w", WIDTH), (qn_tensor){0},
                      (qn_tensor){0}, NULL);
    qn_name(g.score, z, "norm");
    qn_output(g.score, z, "y");
    qn_loss(g.score, qn_mean(g.score, z, 1), "loss", NULL);
}

static int make_graphs(void **state)
{
    (void)state;
    const qn_graph_params half = {.log = {.fn = keep_line}, .storage = QN_F16};
    g = (struct graphs){new_graph(), new_graph(), new_graph(),
                        new_graph(), new_graph(), new_graph()};
    qn_output(g.tower, layer(g.tower, x_of(g.tower), "w", WIDTH), "z");
    qn_output(g.wider, layer(g.wider, x_of(g.wider), "w", 2 * WIDTH), "z");
    qn_tensor z = qn_input(g.loss, "z", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_loss(g.loss, qn_mean(g.loss, z, 1), "loss", NULL);
    make_bank(g.bank, false);
    make_bank(g.early, true);
    z = qn_batch_norm(g.norm, layer(g.norm, x_of(g.norm), "w", WIDTH), (qn_tensor){0},
                      (qn_tensor){0}, NULL);
    qn_name(g.norm, z, "norm");
    qn_output(g.norm, z, "z");
    const qn_graph_params couples = {.log = {.fn = keep_line}, .couples = true};
    assert_int_equal(qn_graph_create(&g.pairs, &couples), QN_OK);
    z = x_of(g.pairs);
    z = qn_batch_matmul(g.pairs, z, z, &(qn_batch_matmul_params){.transpose_b = true});
    qn_loss(g.pairs, qn_mean(g.pairs, z, 1), "loss", NULL);
    assert_int_equal(qn_graph_create(&g.half, &half), QN_OK);
    qn_output(g.half, layer(g.half, x_of(g.half), "w", WIDTH), "z");
    assert_int_equal(qn_graph_create(&g.narrow, &half), QN_OK);
    z = layer(g.narrow, x_of(g.narrow), "w", 1);
    qn_tensor bank = qn_cell_input(g.narrow, "bank", QN_F16, 2, (int64_t[]){ROWS, 1});
    qn_output(g.narrow, z, "bank");
    z = qn_batch_matmul(g.narrow, z, bank, &(qn_batch_matmul_params){.transpose_b = true});
    qn_loss(g.narrow, qn_mean(g.narrow, z, 1), "loss", NULL);
    make_more_graphs();
    return 0;
}

static int free_graphs(void **state)
{
    (void)state;
    qn_graph **all[] = {&g.tower, &g.wider, &g.loss,   &g.bank,  &g.early,
                        &g.norm,  &g.half,  &g.alike,  &g.twice, &g.both,
                        &g.other, &g.score, &g.reader, &g.pairs, &g.narrow};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        qn_graph_destroy(all[i]);
    return 0;
}

static qn_status try_at(const qn_run_list *list, int64_t micro_batch)
{
    const qn_facts facts = {.cpu = true};
    const qn_plan_params params = {.budget = 1 << 20, .batch = {16}, .micro_batch = micro_batch};
    qn_plan *plan;
    *line = 0;
    const qn_status status = qn_plan_create_runs(&plan, list, &facts, &params, NULL);
    qn_plan_destroy(&plan);
    return status;
}

static qn_status try(const qn_run_list *list)
{
    return try_at(list, 4);
}

#define FORWARD(graph_)                                                                            \
    {                                                                                              \
        .name = "forward", .graph = (graph_), .what = QN_RUN_FORWARD                               \
    }
#define BACKWARD(graph_)                                                                           \
    {                                                                                              \
        .name = "backward", .graph = (graph_), .what = QN_RUN_BACKWARD                             \
    }
#define LOSS                                                                                       \
    {                                                                                              \
        .name = "loss", .graph = g.loss, .whole = true                                             \
    }
#define TRAIN(graph_)                                                                              \
    {                                                                                              \
        .name = "train", .graph = (graph_)                                                         \
    }
#define EVALUATE(graph_)                                                                           \
    {                                                                                              \
        .name = "evaluate", .graph = (graph_), .what = QN_RUN_EVALUATE                             \
    }

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const qn_cell z = {.name = "z", .gradient = true}, plain_z = {.name = "z"},
                  ring = {.name = "bank", .kind = QN_CELL_RING, .rows = ROWS},
                  cache = {.name = "bank", .kind = QN_CELL_APPEND, .rows = ROWS};
    const struct {
        const char *why; /* part of the line */
        qn_run runs[3];
        qn_cell cells[2];
    } bad[] = {
        {"'z': no run reads it", {FORWARD(g.tower)}, {z}},
        {"'z': no run writes it", {LOSS}, {z}},
        {"'z': is read before all", {LOSS, FORWARD(g.tower), BACKWARD(g.tower)}, {z}},
        {"no backward run after", {FORWARD(g.tower), LOSS}, {z}},
        {"no cell has the gradient", {FORWARD(g.tower), LOSS, BACKWARD(g.tower)}, {plain_z}},
        {"sees less than the whole", {FORWARD(g.tower), TRAIN(g.loss), BACKWARD(g.tower)}, {z}},
        {"no cell takes an output", {FORWARD(g.tower), LOSS}, {{0}}},
        {"would count twice", {FORWARD(g.norm), LOSS, BACKWARD(g.norm)}, {z}},
        {"differ in their rows", {FORWARD(g.tower), LOSS, BACKWARD(g.wider)}, {z}},
        {"one storage type", {FORWARD(g.tower), LOSS, BACKWARD(g.half)}, {z}},
        {"no loss", {TRAIN(g.tower)}, {{0}}},
        {"trains nothing", {FORWARD(g.bank)}, {ring}},
        {"no part of a cycle",
         {{.name = "e", .graph = g.tower, .what = QN_RUN_EVALUATE, .whole = 1}},
         {{0}}},
        {"alternative to no run", {{.graph = g.bank, .alternative = true}}, {ring}},
        {"two runs have this name", {TRAIN(g.bank), TRAIN(g.bank)}, {ring}},
        {"'bank': an input of a graph, but no cell", {TRAIN(g.bank)}, {{0}}},
        {"'bank': the name is empty or already", {TRAIN(g.bank)}, {ring, cache}},
        {"would read what it appends", {TRAIN(g.bank)}, {cache}},
        {"another shape", {TRAIN(g.bank)}, {{.name = "bank", .kind = QN_CELL_RING, .rows = 9}}},
        {"have rows", {TRAIN(g.bank)}, {{.name = "bank", .kind = QN_CELL_RING}}},
        {"only cells of samples", {TRAIN(g.bank)}, {{"bank", QN_CELL_RING, ROWS, 0, true}}},
        {"only rings start later", {FORWARD(g.tower), LOSS}, {{.name = "z", .start = 3}}},
        {"only rings start later",
         {TRAIN(g.bank)},
         {{.name = "bank", .kind = QN_CELL_RING, .rows = ROWS, .start = -1}}},
        {"no multiple of 4 bytes",
         {TRAIN(g.narrow)},
         {{.name = "bank", .kind = QN_CELL_RING, .rows = ROWS, .start = 1}}},
        {"before what it appends is made", {EVALUATE(g.early)}, {cache}},
        {"two runs have this name",
         {{.name = "run 1", .graph = g.bank}, {.graph = g.bank}},
         {ring}},
        {"the batch in it",
         {{.graph = g.alike, .what = QN_RUN_FORWARD, .whole = true}},
         {{.name = "z", .kind = QN_CELL_APPEND, .rows = 64}}},
        {"would give its gradient",
         {FORWARD(g.tower),
          {.graph = g.reader, .what = QN_RUN_FORWARD, .whole = true},
          BACKWARD(g.tower)},
         {z, {.name = "y", .kind = QN_CELL_APPEND, .rows = 64}}},
        {"not by its alternative 'other'",
         {FORWARD(g.tower),
          {.name = "other", .graph = g.other, .what = QN_RUN_FORWARD, .alternative = true},
          {.graph = g.both, .whole = true}},
         {plain_z, {.name = "w"}}},
        {"gradient of the same tensor",
         {FORWARD(g.twice), {.graph = g.both, .whole = true}, BACKWARD(g.twice)},
         {z, {.name = "w", .gradient = true}}},
        {"would count twice", {FORWARD(g.norm), TRAIN(g.score), LOSS}, {plain_z}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_run_list list = {.runs = bad[i].runs, .cells = bad[i].cells};
        while (list.n_runs < 3 && bad[i].runs[list.n_runs].graph)
            list.n_runs++;
        while (list.n_cells < 2 && bad[i].cells[list.n_cells].name)
            list.n_cells++;
        const qn_status status = try(&list);
        print_message("  %s\n", line);
        assert_true(status == QN_ERR_ARGUMENT || status == QN_ERR_SHAPE);
        assert_non_null(strstr(line, bad[i].why));
    }
}

/* Samples that see each other: in parts of the cycle only where the caller says how large. */
static void a_coupled_micro_batch_is_given(void **state)
{
    (void)state;
    const qn_run run = TRAIN(g.pairs);
    assert_int_equal(try_at(&(qn_run_list){.runs = &run, .n_runs = 1}, 0), QN_ERR_ARGUMENT);
    assert_non_null(strstr(line, "see each other"));
    assert_int_equal(try_at(&(qn_run_list){.runs = &run, .n_runs = 1}, 4), QN_OK);
}

static void what_can_be_is_planned(void **state)
{
    (void)state;
    const qn_run passes[] = {FORWARD(g.tower), LOSS, BACKWARD(g.tower)}, ring_run = TRAIN(g.bank),
                 cache_run = EVALUATE(g.bank);
    const qn_cell z = {.name = "z", .gradient = true},
                  ring = {.name = "bank", .kind = QN_CELL_RING, .rows = ROWS},
                  cache = {.name = "bank", .kind = QN_CELL_APPEND, .rows = ROWS};
    assert_int_equal(try(&(qn_run_list){passes, 3, &z, 1}), QN_OK);
    assert_int_equal(try(&(qn_run_list){&ring_run, 1, &ring, 1}), QN_OK);
    assert_int_equal(try(&(qn_run_list){&cache_run, 1, &cache, 1}), QN_OK);
}

/* Micro-steps no larger than the ring; a micro-step that is asked for is refused. */
static void a_ring_bounds_the_micro_batch(void **state)
{
    (void)state;
    const qn_facts facts = {.cpu = true};
    const qn_run run = TRAIN(g.bank);
    const qn_cell ring = {.name = "bank", .kind = QN_CELL_RING, .rows = ROWS};
    const qn_run_list list = {&run, 1, &ring, 1};
    qn_plan_params params = {.budget = 1 << 20, .batch = {2 * ROWS}};
    qn_plan *plan;
    assert_int_equal(qn_plan_create_runs(&plan, &list, &facts, &params, NULL), QN_OK);
    assert_true(qn_plan_facts(plan)->micro_batch <= ROWS);
    qn_plan_destroy(&plan);
    params.micro_batch = ROWS + 1;
    assert_int_equal(qn_plan_create_runs(&plan, &list, &facts, &params, NULL), QN_ERR_SHAPE);
    assert_non_null(strstr(line, "cell 'bank': has 8 rows"));
}

/* What one alternative reads stays while the other runs, which may come before it again. */
static void alternatives_keep_the_gradients_of_both(void **state)
{
    (void)state;
    const qn_run runs[] = {
        {.name = "z", .graph = g.tower, .what = QN_RUN_FORWARD},
        {.name = "w", .graph = g.other, .what = QN_RUN_FORWARD},
        {.name = "loss", .graph = g.both, .whole = true},
        {.name = "back z", .graph = g.tower, .what = QN_RUN_BACKWARD},
        {.name = "back w", .graph = g.other, .what = QN_RUN_BACKWARD, .alternative = true}};
    const qn_cell cells[] = {{.name = "z", .gradient = true}, {.name = "w", .gradient = true}};
    const qn_facts facts = {.cpu = true};
    const qn_plan_params params = {.budget = 1 << 20, .batch = {16}, .micro_batch = 4};
    qn_plan *plan;
    assert_int_equal(
        qn_plan_create_runs(&plan, &(qn_run_list){runs, 5, cells, 2}, &facts, &params, NULL),
        QN_OK);
    for (int c = 0; c < 2; c++) {
        const int value = plan->persist.runs.cell[c].gradient;
        const struct qn_storage *at = &plan->program.storages[plan->program.persistent[value]];
        for (int p = 0; p < plan->program.n_phases; p++) {
            const struct qn_phase_run *phase = &plan->program.phases[p];
            if (phase->problem->run < 3)
                continue;
            assert_true(at->start <= phase->start);
            assert_true(at->end >= phase->start + phase->n_steps - 1);
        }
    }
    test_invariants(plan);
    qn_plan_destroy(&plan);
}

/* Running averages are in the first graph, whichever kind of run that has, and another gathers. */
static void averages_of_another_graph_are_committed(void **state)
{
    (void)state;
    const qn_run runs[] = {EVALUATE(g.norm), TRAIN(g.score)};
    const qn_facts facts = {.cpu = true};
    const qn_plan_params params = {.budget = 1 << 20, .batch = {16}};
    qn_plan *plan;
    assert_int_equal(qn_plan_create_runs(&plan, &(qn_run_list){.runs = runs, .n_runs = 2}, &facts,
                                         &params, NULL),
                     QN_OK);
    const struct qn_phase_run *update = &plan->program.phases[plan->program.update];
    int commits = 0;
    for (int i = 0; i < update->n_steps; i++)
        commits += strcmp(update->problem->tasks[update->steps[i].task].name, "norm") == 0;
    assert_int_equal(commits, 1);
    qn_plan_destroy(&plan);
}

/* A run after the backward pass would read parameters that are updated already. */
static void early_updates_come_last(void **state)
{
    (void)state;
    enum { LAYERS = 6, WIDE = 64 };
    qn_graph *graph = new_graph();
    qn_tensor bank = qn_cell_input(graph, "bank", QN_F32, 2, (int64_t[]){ROWS, WIDE});
    qn_tensor z = x_of(graph);
    for (int i = 0; i < LAYERS; i++)
        z = qn_tanh(graph, layer(graph, z, (const char[2]){(char)('a' + i), 0}, WIDE));
    qn_output(graph, z, "bank");
    z = qn_batch_matmul(graph, z, bank, &(qn_batch_matmul_params){.transpose_b = true});
    qn_loss(graph, qn_mean(graph, z, 1), "loss", NULL);
    const qn_cell cell = {.name = "bank", .kind = QN_CELL_RING, .rows = ROWS};
    const qn_run train = TRAIN(graph), fill = FORWARD(graph);
    const qn_run after[] = {train, fill}, before[] = {fill, train};
    const qn_facts facts = {.cpu = true};
    const qn_plan_params params = {.budget = 1 << 20, .batch = {4}, .early_updates = true};
    const qn_run *orders[] = {after, before};
    for (int i = 0; i < 2; i++) {
        qn_plan *plan;
        qn_plan_point points[64];
        bool early = false;
        assert_int_equal(qn_plan_create_runs(&plan, &(qn_run_list){orders[i], 2, &cell, 1}, &facts,
                                             &params, NULL),
                         QN_OK);
        const int count = qn_plan_frontier(plan, points, 64);
        for (int p = 0; p < count && p < 64; p++)
            early |= points[p].early_updates;
        print_message("  %d points, early: %d\n", count, early);
        assert_int_equal(early, i);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    const qn_run run = TRAIN(g.bank);
    assert_int_equal(try(&(qn_run_list){.n_runs = 1}), QN_ERR_ARGUMENT);
    assert_int_equal(try(&(qn_run_list){.runs = &run}), QN_ERR_ARGUMENT);
    assert_int_equal(try(&(qn_run_list){.runs = &run, .n_runs = QN_MAX_RUNS + 1}), QN_ERR_ARGUMENT);
    assert_int_equal(try(&(qn_run_list){.runs = &run, .n_runs = 1, .n_cells = 1}), QN_ERR_ARGUMENT);
    assert_int_equal(try(&(qn_run_list){.runs = &run, .n_runs = 1, .n_cells = -1}),
                     QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_coupled_micro_batch_is_given),
        cmocka_unit_test(what_can_be_is_planned),
        cmocka_unit_test(a_ring_bounds_the_micro_batch),
        cmocka_unit_test(alternatives_keep_the_gradients_of_both),
        cmocka_unit_test(averages_of_another_graph_are_committed),
        cmocka_unit_test(early_updates_come_last),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests_name("runs", tests, make_graphs, free_graphs);
}
