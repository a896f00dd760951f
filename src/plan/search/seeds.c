/* SPDX-License-Identifier: MIT
 *
 * Five seeds. Keep-all recomputes nothing. Segments cuts the forward pass where a single value
 * crosses and keeps those values only, by a sweep over segment sizes (Chen et al., "Training deep
 * nets with sublinear memory cost", 2016: greedy by size, swept), and by how long what is made
 * again is held. Selective keeps the boundaries of segments and, between them, what gives the
 * fewest bytes per second of recompute: chains of cheap tasks through a whole network, as residual
 * sums are, are then never made again from its beginning. Cuts (cut.c) know no segments: they free
 * bytes at one moment for the fewest seconds. Dynamic programming is dynamic.c. Parked gives up
 * more and more of the values of some of all these to host memory.
 */
#include "base/log.h"
#include "plan/search/cut.h"
#include "plan/search/dynamic.h"
#include "plan/search/improve.h"
#include "plan/search/park.h"
#include "plan/program/program.h"
#include "plan/search/seeds.h"

#include <stdlib.h>
#include <string.h>

/* Sizes of a sweep; fewer where there are more tasks than that: each is simulated. */
enum { SWEEP = 32, FULL_SWEEP = 1000, LEAST_SWEEP = 8, LEVELS = 8, PARKED = 8 };
static const double EARLY = 0.2; /* of cuts */
static const int windows[] = {0, 12, 8, 6, 4, 3, 2, 1};
enum {
    N_WINDOWS = sizeof windows / sizeof *windows,
    MOST = SWEEP * (N_WINDOWS + LEVELS + N_WINDOWS * QN_MOST_MOMENTS) + QN_MOST_DYNAMIC +
           QN_MOST_LISTS + (SWEEP + 1) * (PARKED + 1) + 2
};

static qn_status out_of_memory(const struct qn_lowering *how)
{
    return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
}

/* Live bytes of a step list: the exact simulator on this phase alone. */
static qn_status steps_peak(const struct qn_lowering *how, const struct qn_problem *problem,
                            const struct qn_steps *steps, int64_t *peak)
{
    struct qn_arena arena = {0};
    struct qn_lowering scratch = *how;
    scratch.arena = &arena;
    struct qn_program program = {0};
    int phase =
        qn_program_add(&program, &arena, "micro-step", QN_MICRO_PHASE, problem, true, steps);
    qn_status status = phase < 0 ? out_of_memory(how)
                                 : qn_program_simulate(&program, problem->persist, true, &scratch);
    *peak = program.live_peak;
    qn_arena_free(&arena);
    return status;
}

struct seeding {
    const struct qn_lowering *how;
    const struct qn_problem *problem;
    struct qn_candidates *out;
    bool *drop;
    int sweep;
    struct qn_boundaries boundaries;
};

static qn_status add_candidate(struct seeding *s, enum qn_seed seed, int window)
{
    struct qn_candidate *candidate = &s->out->items[s->out->count];
    const struct qn_policy policy = {s->drop, window};
    candidate->seed = seed;
    if (!qn_steps_make(s->problem, &policy, s->how->arena, &candidate->steps))
        return out_of_memory(s->how);
    bool repeats =
        candidate->steps.recomputed > 0 || seed == QN_SEED_KEEP_ALL || seed == QN_SEED_CHOSEN;
    if (!candidate->steps.count || !repeats)
        return QN_OK;
    QN_TRY(steps_peak(s->how, s->problem, &candidate->steps, &candidate->peak));
    s->out->count++;
    return QN_OK;
}

static void drop_nothing(struct seeding *s)
{
    memset(s->drop, 0, (size_t)s->problem->n_tasks * sizeof *s->drop);
}

static qn_status seed_keep_all(struct seeding *s)
{
    drop_nothing(s);
    return add_candidate(s, QN_SEED_KEEP_ALL, 0);
}

/* --- segments --- */

/* Keeps the makers of boundaries: whenever the saved bytes since the last boundary pass `most`, the
 * next cut is one; and what does not pay. What follows the last boundary is kept too: the backward
 * pass starts there. */
static void drop_segments(struct seeding *s, int64_t most, double bytes_per_second)
{
    int64_t since = 0;
    int last_boundary = 0;
    drop_nothing(s);
    for (int t = 0; t < s->problem->n_forward; t++) {
        const struct qn_task *task = &s->problem->tasks[t];
        bool boundary = s->boundaries.crosses[t] >= 0 && since + s->boundaries.saved[t] > most;
        s->drop[t] = task->repeatable && !boundary &&
                     qn_pays(task, s->boundaries.saved[t], bytes_per_second);
        since = boundary ? 0 : since + s->boundaries.saved[t];
        if (boundary)
            last_boundary = t;
    }
    for (int t = last_boundary; t < s->problem->n_forward; t++)
        s->drop[t] = false;
}

static qn_status seed_segments(struct seeding *s)
{
    for (int i = 0; i < s->sweep; i++) {
        drop_segments(s, s->boundaries.total / s->sweep * i, 0);
        for (int w = 0; w < N_WINDOWS; w++)
            QN_TRY(add_candidate(s, QN_SEED_SEGMENTS, windows[w]));
    }
    return QN_OK;
}

/* --- selective --- */

static int compare_downwards(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* Bytes for a second of each task that may run again and frees something, downwards. */
static qn_status find_rates(const struct seeding *s, double **rates, int *count)
{
    *rates = qn_arena_new(s->how->arena, double, (size_t)s->problem->n_forward + 1);
    *count = 0;
    if (!*rates)
        return out_of_memory(s->how);
    for (int t = 0; t < s->problem->n_forward; t++) {
        const struct qn_task *task = &s->problem->tasks[t];
        if (qn_task_repeats(task) && s->boundaries.saved[t] > 0)
            (*rates)[(*count)++] = (double)s->boundaries.saved[t] / task->seconds;
    }
    qsort(*rates, (size_t)*count, sizeof **rates, compare_downwards);
    return QN_OK;
}

static qn_status seed_selective(struct seeding *s)
{
    double *rates;
    int count;
    QN_TRY(find_rates(s, &rates, &count));
    for (int level = 1; count && level < LEVELS; level++)
        for (int i = 0; i < s->sweep; i++) {
            drop_segments(s, s->boundaries.total / s->sweep * i, rates[count * level / LEVELS]);
            QN_TRY(add_candidate(s, QN_SEED_SELECTIVE, 0));
        }
    return QN_OK;
}

/* --- cuts --- */

static qn_status add_cut(struct seeding *s, const struct qn_cut *cut)
{
    memcpy(s->drop, cut->drop, (size_t)s->problem->n_tasks * sizeof *s->drop);
    for (int w = 0; w < N_WINDOWS; w++)
        QN_TRY(add_candidate(s, QN_SEED_CUTS, windows[w]));
    return QN_OK;
}

static qn_status seed_cuts(struct seeding *s)
{
    struct qn_cut cuts[QN_MOST_CUTS];
    int moments[QN_MOST_MOMENTS], n_moments, count;
    if (!qn_moments_find(s->problem, s->how->arena, moments, &n_moments))
        return out_of_memory(s->how);
    for (int m = 0; m < n_moments; m++) {
        if (!qn_cuts_find(s->problem, moments[m], EARLY, s->sweep, s->how->arena, cuts, &count))
            return out_of_memory(s->how);
        for (int i = 0; i < count; i++)
            QN_TRY(add_cut(s, &cuts[i]));
    }
    return QN_OK;
}

/* --- dynamic programming --- */

static qn_status add_list(struct seeding *s, enum qn_seed seed, const struct qn_steps *steps)
{
    struct qn_candidate *candidate = &s->out->items[s->out->count++];
    *candidate = (struct qn_candidate){.seed = seed, .steps = *steps};
    return steps_peak(s->how, s->problem, steps, &candidate->peak);
}

static qn_status keep_all_peak(struct seeding *s, int64_t *peak)
{
    struct qn_steps steps;
    const struct qn_policy keep_all = {0};
    if (!qn_steps_make(s->problem, &keep_all, s->how->arena, &steps))
        return out_of_memory(s->how);
    return steps_peak(s->how, s->problem, &steps, peak);
}

/* Of what every list runs: nothing is parked. */
static qn_status seed_dynamic(struct seeding *s)
{
    struct qn_problem problem = *s->problem;
    struct qn_sections sections;
    struct qn_steps lists[QN_MOST_DYNAMIC];
    int64_t most;
    int count;
    problem.n_tasks = qn_tasks_required(s->problem);
    problem.n_parking = 0;
    QN_TRY(keep_all_peak(s, &most));
    if (!qn_sections_find(&problem, &s->boundaries, s->how->arena, &sections) ||
        !qn_dynamic_lists(&problem, &sections, most, s->how->arena, lists, &count))
        return out_of_memory(s->how);
    for (int i = 0; i < count; i++)
        QN_TRY(add_list(s, QN_SEED_DYNAMIC, &lists[i]));
    return QN_OK;
}

/* --- chosen by the user --- */

static qn_status seed_chosen(struct seeding *s)
{
    drop_nothing(s);
    for (int t = 0; t < s->problem->n_forward; t++) {
        const struct qn_task *task = &s->problem->tasks[t];
        s->drop[t] = qn_task_repeats(task) && s->problem->bound->graph->nodes[task->node].recompute;
    }
    return add_candidate(s, QN_SEED_CHOSEN, 0);
}

/* --- found before --- */

/* The lists were found at another batch size: tasks are the same, what they cost is not. Those of a
 * kept micro-step are others. */
static qn_status seed_lists(struct seeding *s)
{
    const bool found = s->how->lists && !s->problem->kept;
    const struct qn_lists *lists = found ? &s->how->lists[s->problem->run] : NULL;
    for (int i = 0; lists && i < lists->count && lists->n_tasks == s->problem->n_tasks; i++) {
        struct qn_steps steps = lists->items[i];
        steps.seconds = 0;
        for (int k = 0; k < steps.count; k++)
            steps.seconds += s->problem->tasks[steps.task[k]].seconds;
        QN_TRY(add_list(s, QN_SEED_LISTS, &steps));
    }
    return QN_OK;
}

/* --- parked --- */

static qn_status add_parked(struct seeding *s, const struct qn_parking *parking)
{
    struct qn_candidate *candidate = &s->out->items[s->out->count++];
    *candidate = (struct qn_candidate){.seed = QN_SEED_PARKED};
    if (!qn_timeline_steps(&parking->timeline, s->how->arena, &candidate->steps))
        return out_of_memory(s->how);
    return steps_peak(s->how, s->problem, &candidate->steps, &candidate->peak);
}

/* More and more of what the list may give up. */
static qn_status park_all(struct seeding *s, const struct qn_steps *steps, struct qn_arena *arena)
{
    struct qn_parking parking;
    bool often;
    if (!qn_runs_often(s->problem, steps, arena, &often))
        return out_of_memory(s->how);
    if (often)
        return QN_OK;
    if (!qn_parking_open(&parking, s->problem, steps, arena))
        return out_of_memory(s->how);
    const int stride = parking.n_gaps / SWEEP + 1;
    int parked = 0;
    while (qn_parking_step(&parking))
        if (++parked % stride == 0)
            QN_TRY(add_parked(s, &parking));
    return parked % stride ? add_parked(s, &parking) : QN_OK;
}

/* Of the candidates so far keeping all, the smallest, and some between. */
static qn_status seed_parked(struct seeding *s)
{
    const int last = s->out->count - 1;
    for (int k = 0, before = -1; k <= PARKED; k++) {
        const int i = last * k / PARKED;
        struct qn_arena arena = {0};
        const qn_status status = i > before ? park_all(s, &s->out->items[i].steps, &arena) : QN_OK;
        qn_arena_free(&arena);
        QN_TRY(status);
        before = i;
    }
    return QN_OK;
}

/* --- all together --- */

static int compare_candidates(const void *a, const void *b)
{
    const struct qn_candidate *x = a, *y = b;
    if (x->steps.seconds != y->steps.seconds)
        return x->steps.seconds < y->steps.seconds ? -1 : 1;
    if (x->peak != y->peak)
        return x->peak < y->peak ? -1 : 1;
    return x->seed != y->seed ? (int)x->seed - (int)y->seed : x->number - y->number;
}

/* Sorted by time, a candidate stays only if it is smaller than all before it. */
static void keep_frontier(struct qn_candidates *out)
{
    for (int i = 0; i < out->count; i++)
        out->items[i].number = i;
    qsort(out->items, (size_t)out->count, sizeof *out->items, compare_candidates);
    int kept = 0;
    for (int i = 0; i < out->count; i++)
        if (!kept || out->items[i].peak < out->items[kept - 1].peak)
            out->items[kept++] = out->items[i];
    out->count = kept;
}

/* Of mode "all": the smallest, which keeps only boundaries. */
static void keep_smallest(struct qn_candidates *out)
{
    out->items[0] = out->items[out->count - 1];
    out->count = 1;
}

static qn_status copy_candidates(const struct qn_lowering *how, const struct qn_candidates *from,
                                 struct qn_candidates *out)
{
    const size_t count = (size_t)from->count;
    out->count = from->count;
    out->kept = from->kept;
    out->items = qn_arena_copy(how->arena, from->items, count * sizeof *from->items);
    for (int i = 0; out->items && i < out->count; i++) {
        struct qn_steps *steps = &out->items[i].steps;
        steps->task =
            qn_arena_copy(how->arena, steps->task, (size_t)steps->count * sizeof *steps->task);
        if (!steps->task)
            return out_of_memory(how);
    }
    return out->items ? QN_OK : out_of_memory(how);
}

static qn_status make_seeds(struct seeding *s)
{
    static qn_status (*const seeds[])(struct seeding *) = {
        seed_keep_all, seed_segments, seed_selective, seed_cuts,
        seed_dynamic,  seed_chosen,   seed_lists};
    static const unsigned allowed[] = {
        [QN_RECOMPUTE_AUTO] = 1u << QN_SEED_KEEP_ALL | 1u << QN_SEED_SEGMENTS |
                              1u << QN_SEED_SELECTIVE | 1u << QN_SEED_CUTS | 1u << QN_SEED_DYNAMIC |
                              1u << QN_SEED_LISTS,
        [QN_RECOMPUTE_NONE] = 1u << QN_SEED_KEEP_ALL,
        [QN_RECOMPUTE_ALL] = 1u << QN_SEED_SEGMENTS,
        [QN_RECOMPUTE_CHOSEN] = 1u << QN_SEED_CHOSEN,
    };
    const enum qn_recompute_mode mode = s->how->params->recompute;
    unsigned use = allowed[mode];
    if (!qn_boundaries_find(s->problem, s->how->arena, &s->boundaries))
        return out_of_memory(s->how);
    if (mode == QN_RECOMPUTE_AUTO)
        use &= ~s->how->without_seeds;
    if (!qn_run_trains(&s->problem->persist->runs.run[s->problem->run]))
        use = 1u << QN_SEED_KEEP_ALL;
    for (int seed = 0; seed < QN_SEED_COUNT; seed++)
        if (use >> seed & 1u)
            QN_TRY(seeds[seed](s));
    if (!s->out->count) /* nothing can be recomputed, or every seed is left out */
        QN_TRY(seed_keep_all(s));
    keep_frontier(s->out);
    if (mode == QN_RECOMPUTE_ALL)
        keep_smallest(s->out);
    if (!s->problem->n_parking || s->how->without_seeds >> QN_SEED_PARKED & 1u)
        return QN_OK;
    QN_TRY(seed_parked(s));
    keep_frontier(s->out);
    return QN_OK;
}

static int sweep_of(const struct qn_problem *problem)
{
    const int sweep = SWEEP * FULL_SWEEP / (qn_tasks_required(problem) + 1);
    return sweep > SWEEP ? SWEEP : sweep < LEAST_SWEEP ? LEAST_SWEEP : sweep;
}

/* Everything but the result lives in an arena of its own. */
static qn_status make_candidates(const struct qn_lowering *scratch,
                                 const struct qn_problem *problem, struct qn_candidates *all)
{
    struct seeding s = {.how = scratch, .problem = problem, .out = all, .sweep = sweep_of(problem)};
    *all = (struct qn_candidates){.items = qn_arena_new(scratch->arena, struct qn_candidate, MOST),
                                  .kept = problem->kept};
    s.drop = qn_arena_new(scratch->arena, bool, (size_t)problem->n_tasks + 1);
    return all->items && s.drop ? make_seeds(&s) : out_of_memory(scratch);
}

qn_status qn_candidates_make(const struct qn_lowering *how, const struct qn_problem *problem,
                             struct qn_candidates *out)
{
    struct qn_arena arena = {0};
    struct qn_lowering scratch = *how;
    struct qn_candidates all;
    scratch.arena = &arena;
    qn_status status = make_candidates(&scratch, problem, &all);
    if (status == QN_OK)
        status = copy_candidates(how, &all, out);
    qn_arena_free(&arena);
    return status;
}
