/* SPDX-License-Identifier: MIT
 *
 * Moves of the local search in a second of processor time, on networks that need six tenths of the
 * bytes that keeping everything takes.
 *
 * Usage: measure_moves
 */
#include "networks.h"

#include "plan/search/anneal.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOVES = 1000000 };

static qn_plan *keep_all(const struct network *network)
{
    qn_plan *plan = NULL;
    qn_facts facts;
    const qn_plan_params params = {.budget = INT64_C(1) << 40,
                                   .batch = {network->batch},
                                   .micro_batch = network->batch,
                                   .recompute = QN_RECOMPUTE_NONE};
    qn_graph *graph = network_graph(network);
    qn_facts_default(&facts, true);
    facts.max_alloc_bytes = INT64_C(8) << 30;
    facts.global_bytes = INT64_C(256) << 30;
    if (qn_plan_create(&plan, graph, &facts, &params, NULL) != QN_OK)
        abort();
    qn_graph_destroy(&graph);
    return plan;
}

static struct qn_steps steps_of(const struct qn_phase_run *phase, struct qn_arena *arena)
{
    struct qn_steps steps = {.task = qn_arena_new(arena, int, (size_t)phase->n_steps),
                             .seconds = phase->seconds};
    for (int i = 0; steps.task && i < phase->n_steps; i++)
        steps.task[steps.count++] = phase->steps[i].task;
    return steps;
}

static void measure(const struct network *network)
{
    qn_plan *plan = keep_all(network);
    const struct qn_phase_run *phase = &plan->program.phases[0];
    struct qn_arena arena = {0};
    const struct qn_steps from = steps_of(phase, &arena);
    const struct qn_anneal_params params = {plan->program.live_peak * 6 / 10, MOVES, 1, false};
    struct qn_steps found;
    int64_t peak;
    const clock_t begin = clock();
    if (!from.task || !qn_anneal(phase->problem, &from, &params, &arena, &found, &peak))
        abort();
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("%-24s %4d tasks  %.2f million moves a second\n", network->title,
           phase->problem->n_tasks, MOVES / seconds * 1e-6);
    qn_arena_free(&arena);
    qn_plan_destroy(&plan);
}

int main(void)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        measure(&networks[i]);
    return 0;
}
