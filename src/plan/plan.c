/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include "base/log.h"
#include "base/text.h"
#include "plan/improve.h"
#include "plan/search.h"
#include "plan/seconds.h"
#include "plan/stored.h"
#include "plan/tuning.h"

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
    qn_graph_destroy(&(*plan)->graph);
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

/* --- making --- */

static bool copy_texts(struct qn_plan *plan)
{
    const char **texts[] = {&plan->params.chosen, &plan->params.variants, &plan->params.tuning,
                            &plan->params.cache_dir};
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

static double parked_seconds(const struct qn_program *program, int phase)
{
    double seconds = 0;
    for (int i = 0; phase >= 0 && i < program->phases[phase].n_steps; i++) {
        const struct qn_phase_run *run = &program->phases[phase];
        const struct qn_task *task = &run->problem->tasks[run->steps[i].task];
        seconds += qn_task_parks(task) ? task->seconds : 0;
    }
    return seconds;
}

/* Of point `chosen` of the frontier. */
static void fill_info(struct qn_plan *plan, int chosen, double keep_all)
{
    static const char *const optimizers[] = {"sgd", "adam", "adamw"};
    const struct qn_cycle_plan *cycle = &plan->program.cycles[0];
    const struct qn_phase_run *micro = &plan->program.phases[0];
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
        .smallest_budget = all->points[0].bytes,
        .next_budget = chosen + 1 < all->count ? all->points[chosen + 1].bytes : 0,
        .early_updates = all->points[chosen].early,
        .parked_bytes = plan->program.host_bytes,
        .parked_seconds =
            parked_seconds(&plan->program, cycle->first) +
            (double)(cycle->micro_steps - 1) * parked_seconds(&plan->program, cycle->later) +
            parked_seconds(&plan->program, cycle->rest),
        .pools = plan->placement.n_pools,
        .optimizer = optimizers[plan->params.optimizer.kind],
    };
    plan->info.hash = qn_plan_hash(plan);
    sum_tags(plan);
}

/* A way to train: with updates after the cycle, or early; with all values on the device, or some
 * parked. What one may do with parking it may do without, but the search would not find all of that
 * again among so much more. */
struct way {
    struct qn_lowering how;
    struct qn_persist persist;
    struct qn_lists lists;
};
enum { MOST_WAYS = 4 };

/* Early updates need the whole gradient of a parameter after one micro-step, and a loss scale that
 * no other gradient decides. */
static bool may_update_early(const struct qn_plan *plan)
{
    const struct qn_plan_params *params = &plan->params;
    return params->early_updates && plan->graph->storage != QN_F16 &&
           (!params->micro_batch || params->micro_batch >= qn_largest_batch(params));
}

/* Gives their number. */
static qn_status open_ways(struct qn_plan *plan, const struct qn_tuning *tuning, struct way *ways,
                           int *count)
{
    struct qn_lowering how = {.arena = &plan->arena,
                              .facts = &plan->facts,
                              .params = &plan->params,
                              .log = &plan->log,
                              .tuning = tuning};
    *count = 0;
    if (!qn_seconds_calibrate(tuning, &plan->facts, &plan->arena, &how.calibration))
        return qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (int park = 0; park <= plan->params.park; park++)
        for (int early = 0; early <= may_update_early(plan); early++) {
            struct way *way = &ways[(*count)++];
            way->how = how;
            way->how.early = early;
            way->how.park = park;
            QN_TRY(qn_persist_make(&way->how, plan->graph, &way->persist));
        }
    return QN_OK;
}

/* The way that a point is of; NULL: none of these. */
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
        QN_TRY(qn_lists_find(&way->how, &way->persist, &way->lists));
        way->how.lists = &way->lists;
        QN_TRY(qn_search(&way->how, &way->persist, &plan->frontier));
    }
    qn_stored_save(plan);
    return QN_OK;
}

/* Of point `chosen` of the frontier. */
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

/* What was stored is taken if it is what it says. */
static bool build_stored(struct qn_plan *plan, const struct way *ways, int count)
{
    static const struct qn_log silent;
    if (!qn_stored_load(plan, &plan->frontier))
        return false;
    const int chosen = qn_frontier_find(&plan->frontier, plan->params.budget);
    const struct way *way =
        chosen >= 0 ? way_of(ways, count, &plan->frontier.points[chosen]) : NULL;
    return way && build(plan, way, chosen, &silent) == QN_OK &&
           plan->info.peak_bytes == plan->frontier.points[chosen].bytes;
}

static qn_status search_and_build(struct qn_plan *plan, const struct qn_tuning *tuning,
                                  int64_t *smallest)
{
    struct way ways[MOST_WAYS];
    int count, chosen;
    QN_TRY(open_ways(plan, tuning, ways, &count));
    const bool stored = build_stored(plan, ways, count);
    if (!stored)
        QN_TRY(search(plan, ways, count));
    if (smallest)
        *smallest = plan->frontier.count ? plan->frontier.points[0].bytes : 0;
    if (stored)
        return QN_OK;
    chosen = qn_frontier_find(&plan->frontier, plan->params.budget);
    return chosen < 0 ? refuse(plan)
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

qn_status qn_plan_create(qn_plan **out, const qn_graph *graph, const qn_facts *facts,
                         const qn_plan_params *params, int64_t *smallest)
{
    if (smallest)
        *smallest = 0;
    if (out)
        *out = NULL;
    if (!out || !graph)
        return QN_ERR_ARGUMENT;
    const struct qn_log *log = &graph->log;
    QN_REQUIRE(log, facts && params);
    struct qn_facts filled = *facts;
    qn_plan_fill_facts(&filled);
    QN_TRY(qn_plan_check(log, graph, &filled, params));
    struct qn_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return qn_fail(log, QN_ERR_MEMORY, "plan: out of host memory");
    plan->log = *log;
    plan->facts = filled;
    plan->params = *params;
    if (!plan->params.budget)
        plan->params.budget = filled.global_bytes / 4 * 3;
    plan->graph = qn_graph_clone(graph);
    qn_status status = plan->graph && qn_graph_fuse(plan->graph) && copy_texts(plan)
                           ? make(plan, smallest)
                           : qn_fail(log, QN_ERR_MEMORY, "plan: out of host memory");
    if (status != QN_OK)
        qn_plan_destroy(&plan);
    *out = plan;
    return status;
}
