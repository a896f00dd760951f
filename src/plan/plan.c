/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include "base/log.h"
#include "base/text.h"
#include "plan/search/improve.h"
#include "plan/search/search.h"
#include "plan/cost/seconds.h"
#include "plan/stored.h"
#include "plan/cost/tuning.h"
#include "plan/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *qn_tag_name(qn_tag tag)
{
    static const char *const names[] = {
#define ENTRY(name, text) text,
        QN_TAG_MAP(ENTRY)
#undef ENTRY
    };
    return (int)tag >= 0 && tag < QN_TAG_COUNT ? names[tag] : "none";
}

void qn_plan_destroy(qn_plan **plan)
{
    if (!plan || !*plan)
        return;
    for (int g = 0; g < (*plan)->n_graphs; g++)
        qn_graph_destroy(&(*plan)->graphs[g]);
    qn_arena_free(&(*plan)->arena);
    free(*plan);
    *plan = NULL;
}

const qn_plan_info *qn_plan_facts(const qn_plan *plan)
{
    return plan ? &plan->info : NULL;
}

int qn_plan_frontier(const qn_plan *plan, qn_plan_point *points, int room)
{
    const int count = plan ? plan->frontier.count : 0;
    for (int i = 0; i < count && i < room; i++) {
        const struct qn_point *point = &plan->frontier.points[i];
        points[i] = (qn_plan_point){.bytes = point->bytes,
                                    .seconds = point->seconds,
                                    .micro_batch = point->micro_batch,
                                    .recomputed_steps = point->recomputed,
                                    .early_updates = point->early,
                                    .parked_bytes = point->parked};
    }
    return count;
}

const qn_plan_params *qn_plan_settings(const qn_plan *plan)
{
    return plan ? &plan->params : NULL;
}

const char *qn_plan_norm_group(const qn_plan *plan, int index)
{
    return plan && index >= 0 && index < plan->persist.groups.count
               ? plan->persist.groups.name[index]
               : NULL;
}

/* --- making --- */

static bool copy_texts(struct qn_plan *plan)
{
    const char **texts[] = {&plan->params.chosen,         &plan->params.variants,
                            &plan->params.tuning,         &plan->params.cache_dir,
                            &plan->params.optimizer.name, &plan->params.norm_groups};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i] && !(*texts[i] = qn_arena_strdup(&plan->arena, *texts[i])))
            return false;
    return true;
}

static qn_status refuse(const struct qn_plan *plan)
{
    const struct qn_point *smallest = plan->frontier.points;
    char budget[32], least[32];
    if (!plan->frontier.count)
        return qn_fail(&plan->log, QN_ERR_BUDGET,
                       "plan: more than %d buffers of the largest allocation, %" PRId64 " bytes",
                       QN_MAX_POOLS, plan->facts.max_alloc_bytes);
    return qn_fail(&plan->log, QN_ERR_BUDGET,
                   "no plan fits %s (%" PRId64 " bytes): the smallest budget is %" PRId64
                   " bytes (%s), at micro-batch %" PRId64 ", most of it alive at '%s'",
                   qn_size_text(plan->params.budget, budget, sizeof budget), plan->params.budget,
                   smallest->bytes, qn_size_text(smallest->bytes, least, sizeof least),
                   smallest->micro_batch, smallest->largest_step);
}

static void sum_tags(struct qn_plan *plan)
{
    for (int i = 0; i < plan->program.n_storages; i++) {
        const struct qn_storage *storage = &plan->program.storages[i];
        if (storage->start <= plan->program.peak_at && storage->end >= plan->program.peak_at)
            plan->info.bytes_by_tag[storage->tag] += storage->bytes;
    }
    plan->info.bytes_by_tag[QN_TAG_SCRATCH] += plan->program.blas_temp;
}

/* --- seconds of one update of the largest batch, by kind of task --- */

typedef bool task_kind(const struct qn_task *task);

static bool is_parking(const struct qn_task *task)
{
    return qn_task_parks(task);
}

static bool is_measured(const struct qn_task *task)
{
    return task->measured;
}

static bool is_computing(const struct qn_task *task)
{
    return task->kind == QN_TASK_GROUP || qn_task_parks(task);
}

static double phase_seconds(const struct qn_program *program, int phase, task_kind *counts)
{
    double seconds = 0;
    for (int i = 0; phase >= 0 && i < program->phases[phase].n_steps; i++) {
        const struct qn_phase_run *run = &program->phases[phase];
        const struct qn_task *task = &run->problem->tasks[run->steps[i].task];
        seconds += counts(task) ? task->seconds : 0;
    }
    return seconds;
}

static double update_seconds(const struct qn_program *program, task_kind *counts)
{
    const struct qn_cycle_plan *cycle = &program->cycles[0];
    double seconds = phase_seconds(program, program->update, counts) +
                     phase_seconds(program, program->norms, counts);
    for (int r = 0; r < QN_MAX_RUNS; r++)
        seconds +=
            phase_seconds(program, cycle->runs[r].first, counts) +
            (double)cycle->runs[r].laters * phase_seconds(program, cycle->runs[r].later, counts) +
            phase_seconds(program, cycle->runs[r].rest, counts) +
            phase_seconds(program, cycle->runs[r].kept, counts);
    return seconds;
}

/* From the first backward step on, recomputed ones included. */
static double phase_backward_seconds(const struct qn_phase_run *phase)
{
    double seconds = 0;
    bool backward = false;
    for (int i = 0; i < phase->n_steps; i++) {
        const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
        backward |= task->backward;
        seconds += backward ? task->seconds : 0;
    }
    return seconds;
}

/* The phase with which a run of a cycle ends; runs of kind QN_RUN_BACKWARD end with the first
 * micro-step. */
static int last_phase(const struct qn_run_phases *run, qn_run_what what)
{
    if (what == QN_RUN_BACKWARD)
        return run->first >= 0 ? run->first : run->rest >= 0 ? run->rest : run->kept;
    return run->rest >= 0 ? run->rest : run->later >= 0 ? run->later : run->first;
}

/* Of the last micro-step of the cycle; of alternatives the last one listed. */
static double backward_seconds(const struct qn_program *program, const struct qn_run_set *runs)
{
    double seconds = 0;
    for (int r = 0; r < runs->n_runs; r++) {
        const int last = last_phase(&program->cycles[0].runs[r], runs->run[r].what);
        const double own = last >= 0 ? phase_backward_seconds(&program->phases[last]) : 0;
        seconds = own > 0 ? own : seconds;
    }
    return seconds;
}

static int64_t trained_parameters(const struct qn_persist *persist)
{
    int64_t numbers = 0;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].trainable)
            numbers += qn_operand_count(&persist->parameters[p].node->leaf);
    return numbers;
}

static double measured_share(const struct qn_program *program)
{
    const double all = update_seconds(program, is_computing);
    return all > 0 ? update_seconds(program, is_measured) / all : 0;
}

/* Micro-steps of cycle 0 whose forward pass runs again, of which alternatives take one each. */
static int64_t micro_steps_again(const struct qn_program *program, const struct qn_run_set *runs)
{
    int64_t count = 0;
    for (int r = 0; r < runs->n_runs; r++) {
        const struct qn_run_phases *phases = &program->cycles[0].runs[r];
        const bool alternative = r && runs->run[r].pass == runs->run[r - 1].pass;
        if (runs->run[r].what == QN_RUN_BACKWARD && !alternative)
            count += (phases->first >= 0) + phases->laters + (phases->rest >= 0);
    }
    return count;
}

/* Adds up what the whole runs of a cycle read of cells of samples. */
static void count_rows(struct qn_plan *plan)
{
    for (int r = 0; r < plan->runs.n_runs; r++) {
        const struct qn_graph *graph = plan->graphs[plan->runs.run[r].graph];
        for (int n = 0; plan->runs.run[r].whole && n < graph->n_nodes; n++) {
            const struct qn_cell_of *cell = qn_cell_of_samples(&plan->runs, &graph->nodes[n]);
            plan->info.row_cells += cell != NULL;
            plan->info.row_bytes += cell ? qn_cell_sample_bytes(cell) : 0;
        }
    }
}

/* Of the norms of a shard and the update, where there are any. */
static double closing_seconds(const struct qn_program *program)
{
    const double norms = program->norms >= 0 ? program->phases[program->norms].seconds : 0;
    return norms + (program->update >= 0 ? program->phases[program->update].seconds : 0);
}

/* Fills in plan->info for point `chosen` of the frontier. */
static void fill_info(struct qn_plan *plan, int chosen, double keep_all)
{
    const struct qn_cycle_plan *cycle = &plan->program.cycles[0];
    const struct qn_phase_run *micro = qn_program_main(&plan->program);
    const struct qn_frontier *all = &plan->frontier;
    plan->info = (struct qn_plan_info){
        .budget_bytes = plan->params.budget,
        .peak_bytes = plan->placement.total + plan->program.blas_temp,
        .live_bytes = plan->program.live_peak + plan->program.blas_temp,
        .micro_batch = all->points[chosen].micro_batch,
        .micro_steps = cycle->micro_steps,
        .remainder = cycle->remainder,
        .recomputed_steps = micro->recomputed,
        .steps = micro->n_steps,
        .seconds = cycle->seconds,
        .keep_all_seconds = keep_all,
        .backward_seconds = backward_seconds(&plan->program, &plan->runs),
        .update_seconds = closing_seconds(&plan->program),
        .smallest_budget = all->points[0].bytes,
        .next_budget = chosen + 1 < all->count ? all->points[chosen + 1].bytes : 0,
        .early_updates = all->points[chosen].early,
        .parked_bytes = plan->program.host_bytes,
        .trained_parameters = trained_parameters(&plan->persist),
        .frozen_tensors = plan->persist.frozen.tensors,
        .frozen_parameters = plan->persist.frozen.parameters,
        .frozen_bytes = plan->persist.frozen.bytes,
        .micro_steps_again = micro_steps_again(&plan->program, &plan->runs),
        .parked_seconds = update_seconds(&plan->program, is_parking),
        .measured_share = measured_share(&plan->program),
        .pools = plan->placement.n_pools,
        .optimizer = plan->persist.optimizer->name,
    };
    count_rows(plan);
    plan->info.hash = qn_plan_hash(plan);
    sum_tags(plan);
}

/* The ways to train, in the order in which they are searched: updates after the cycle or early; all
 * values on the device or some parked. The ways with `park` include plans that park nothing, but
 * among so many more plans the search would not find all of them. */
static const struct strategy {
    bool early, park;
} strategies[] = {{false, false}, {true, false}, {false, true}, {true, true}};

struct way {
    struct qn_lowering how;
    struct qn_persist persist;
    struct qn_lists *lists; /* by run */
};
enum { MOST_WAYS = sizeof strategies / sizeof *strategies };

static bool trains_last(const struct qn_run_set *runs)
{
    bool trains = false;
    for (int r = 0; r < runs->n_runs; r++)
        trains = runs->run[r].pass < 0 ? trains : qn_run_trains(&runs->run[r]);
    return trains;
}

/* Early updates need: the gradient of a parameter is complete after one repetition of one run; no
 * later run reads parameters; the loss scale does not depend on all gradients. */
static bool may_update_early(const struct qn_plan *plan)
{
    const struct qn_plan_params *params = &plan->params;
    return params->early_updates && plan->graphs[0]->storage != QN_F16 && !plan->runs.zeroed &&
           trains_last(&plan->runs) &&
           (!params->micro_batch || params->micro_batch >= qn_largest_batch(params));
}

/* Fills in the ways that this plan may take; *count is their number. */
static qn_status open_ways(struct qn_plan *plan, const struct qn_tuning *tuning, struct way *ways,
                           int *count)
{
    struct qn_lowering how = {.arena = &plan->arena,
                              .facts = &plan->facts,
                              .params = &plan->params,
                              .log = &plan->log,
                              .tuning = tuning,
                              .kept = qn_tuning_kept(tuning, qn_plan_training(plan))};
    *count = 0;
    if (!qn_seconds_calibrate(tuning, &plan->facts, &plan->arena, &how.calibration) ||
        !qn_seconds_must_gain(tuning, &plan->arena, &how.must_gain))
        return qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (const struct strategy *s = strategies; s < strategies + MOST_WAYS; s++) {
        if ((s->early && !may_update_early(plan)) || (s->park && !plan->params.park))
            continue;
        struct way *way = &ways[(*count)++];
        way->how = how;
        way->how.early = s->early;
        way->how.park = s->park;
        QN_TRY(qn_persist_make(&way->how, (const qn_graph *const *)plan->graphs, plan->n_graphs,
                               &plan->runs, &way->persist));
    }
    return QN_OK;
}

/* The way by which a point trains; NULL: it is not among `ways`. */
static const struct way *way_of(const struct way *ways, int count, const struct qn_point *point)
{
    for (int i = 0; i < count; i++)
        if (ways[i].how.early == point->early && ways[i].how.park == point->park)
            return &ways[i];
    return NULL;
}

static qn_status search(struct qn_plan *plan, struct way *ways, int count)
{
    plan->frontier = (struct qn_frontier){.count = 0};
    for (int i = 0; i < count; i++) {
        struct way *way = &ways[i];
        const int runs = way->persist.runs.n_runs;
        way->lists = qn_arena_new(&plan->arena, struct qn_lists, (size_t)runs);
        if (!way->lists)
            return qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
        for (int r = 0; r < runs; r++)
            QN_TRY(qn_lists_find(&way->how, &way->persist, r, &way->lists[r]));
        way->how.lists = way->lists;
        QN_TRY(qn_search(&way->how, &way->persist, &plan->frontier));
    }
    qn_stored_save(plan);
    return QN_OK;
}

/* Builds point `chosen` of the frontier: persist, program, placement and info of the plan. */
static qn_status build(struct qn_plan *plan, const struct way *way, int chosen,
                       const struct qn_log *log)
{
    const struct qn_point *point = &plan->frontier.points[chosen];
    struct qn_lowering how = way->how;
    double keep_all;
    how.log = log;
    plan->persist = way->persist;
    QN_TRY(
        qn_search_build(&how, &plan->persist, point, &plan->program, &plan->placement, &keep_all));
    fill_info(plan, chosen, keep_all);
    return QN_OK;
}

/* Builds a point of the stored frontier: the fastest within the budget, else the smallest. False: a
 * search is needed, as nothing is stored or the point is not what its bytes and steps say. */
static bool build_stored(struct qn_plan *plan, const struct way *ways, int count)
{
    static const struct qn_log silent;
    if (!qn_stored_load(plan, &plan->frontier) || !plan->frontier.count)
        return false;
    const int fitting = qn_frontier_find(&plan->frontier, plan->params.budget);
    const int point = fitting < 0 ? 0 : fitting;
    const struct way *way = way_of(ways, count, &plan->frontier.points[point]);
    return way && build(plan, way, point, &silent) == QN_OK &&
           plan->info.peak_bytes == plan->frontier.points[point].bytes;
}

static qn_status search_and_build(struct qn_plan *plan, const struct qn_tuning *tuning,
                                  int64_t *smallest)
{
    struct way ways[MOST_WAYS];
    int count;
    QN_TRY(open_ways(plan, tuning, ways, &count));
    const bool stored = build_stored(plan, ways, count);
    if (!stored)
        QN_TRY(search(plan, ways, count));
    if (smallest)
        *smallest = plan->frontier.count ? plan->frontier.points[0].bytes : 0;
    const int chosen = qn_frontier_find(&plan->frontier, plan->params.budget);
    if (chosen < 0)
        return refuse(plan);
    return stored ? QN_OK
                  : build(plan, way_of(ways, count, &plan->frontier.points[chosen]), chosen,
                          &plan->log);
}

static qn_status make(struct qn_plan *plan, int64_t *smallest)
{
    struct qn_tuning tuning = {0};
    const char *text = plan->params.tuning;
    if (text && *text)
        QN_TRY(qn_tuning_parse(&tuning, text, &plan->log));
    qn_status status = search_and_build(plan, &tuning, smallest);
    qn_tuning_free(&tuning);
    return status;
}

/* Fills in a plan that has its log, facts and params. */
static qn_status make_from(struct qn_plan *plan, const qn_run_list *list, int64_t *smallest)
{
    if (!copy_texts(plan))
        return qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
    QN_TRY(qn_plan_check(&plan->log, &plan->facts, &plan->params));
    QN_TRY(qn_runs_make(plan, list));
    QN_TRY(qn_plan_check_graphs(plan));
    return make(plan, smallest);
}

static qn_status create(qn_plan **out, const struct qn_log *log, const qn_run_list *list,
                        const qn_facts *facts, const qn_plan_params *params, int64_t *smallest)
{
    struct qn_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return qn_fail(log, QN_ERR_MEMORY, "plan: out of host memory");
    plan->log = *log;
    plan->facts = *facts;
    qn_plan_fill_facts(&plan->facts);
    plan->params = *params;
    if (!plan->params.budget)
        plan->params.budget = plan->facts.global_bytes / 4 * 3;
    const qn_status status = make_from(plan, list, smallest);
    if (status != QN_OK)
        qn_plan_destroy(&plan);
    *out = plan;
    return status;
}

qn_status qn_plan_create_runs(qn_plan **out, const qn_run_list *list, const qn_facts *facts,
                              const qn_plan_params *params, int64_t *smallest)
{
    if (smallest)
        *smallest = 0;
    if (out)
        *out = NULL;
    QN_REQUIRE(NULL, out && list && list->runs && list->n_runs >= 1 && list->runs[0].graph);
    const struct qn_log *log = &list->runs[0].graph->log;
    QN_REQUIRE(log, facts && params);
    return create(out, log, list, facts, params, smallest);
}

qn_status qn_plan_create(qn_plan **out, const qn_graph *graph, const qn_facts *facts,
                         const qn_plan_params *params, int64_t *smallest)
{
    const qn_run runs[] = {{.name = "training", .graph = graph},
                           {.name = "evaluation", .graph = graph, .what = QN_RUN_EVALUATE}};
    const qn_run_list list = {.runs = runs, .n_runs = graph && graph->n_outputs ? 2 : 1};
    if (smallest)
        *smallest = 0;
    if (out)
        *out = NULL;
    QN_REQUIRE(NULL, graph);
    return qn_plan_create_runs(out, &list, facts, params, smallest);
}
