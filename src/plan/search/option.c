/* SPDX-License-Identifier: MIT */
#include "plan/search/option.h"

#include "base/log.h"
#include "base/shape.h"

#include <stdlib.h>

static const struct qn_policy keep_all = {0};

int qn_option_batches(const struct qn_plan_params *params)
{
    int count = 0;
    while (count < QN_MAX_BATCH_SIZES && params->batch[count])
        count++;
    return count;
}

static qn_status out_of_memory(const struct qn_option *o)
{
    return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
}

/* --- lowering --- */

int qn_option_part(const struct qn_option *o, int run, int64_t batch, bool kept)
{
    for (int p = 0; p < o->n_parts; p++)
        if (o->parts[p].run == run && o->parts[p].batch == batch && o->parts[p].kept == kept)
            return p;
    return -1;
}

static qn_status open_part(struct qn_option *o, const struct qn_part *like)
{
    if (!like->batch || qn_option_part(o, like->run, like->batch, like->kept) >= 0)
        return QN_OK;
    struct qn_part *part = &o->parts[o->n_parts++];
    *part = *like;
    return (part->kept ? qn_lower_kept : qn_lower_run)(&o->how, o->persist, part->run, part->batch,
                                                       &part->problem);
}

int64_t qn_option_last(const struct qn_option *o, int64_t batch)
{
    const int64_t size = o->choices->micro_batch;
    return batch % size ? batch % size : size;
}

/* Opens the parts of a run: of a whole run every effective batch, the largest first; else the
 * micro-batch and every remainder; of a backward run with a partner every last micro-step. */
static qn_status open_run(struct qn_option *o, int run)
{
    const struct qn_plan_params *params = o->how.params;
    const struct qn_run_of *of = &o->persist->runs.run[run];
    const int64_t size = o->choices->micro_batch;
    struct qn_part part = {.run = run, .batch = of->whole ? qn_largest_cycle(params) : size};
    QN_TRY(open_part(o, &part));
    for (int i = 0; i < qn_option_batches(params); i++) {
        part.batch = of->whole ? qn_whole_cycle(params, i) : params->batch[i] % size;
        part.remainder = !of->whole;
        QN_TRY(open_part(o, &part));
    }
    part.kept = true;
    for (int i = 0; i < qn_option_batches(params); i++) {
        part.batch = qn_option_last(o, params->batch[i]);
        if (of->what == QN_RUN_BACKWARD && of->partner >= 0)
            QN_TRY(open_part(o, &part));
    }
    return QN_OK;
}

static qn_status open_steps(struct qn_option *o, const struct qn_problem *problem,
                            struct qn_steps *steps)
{
    return qn_steps_make(problem, &keep_all, o->how.arena, steps) ? QN_OK : out_of_memory(o);
}

static qn_status open_runs(struct qn_option *o)
{
    const struct qn_run_set *runs = &o->persist->runs;
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what != QN_RUN_EVALUATE)
            QN_TRY(open_run(o, r));
    if (runs->zeroed) {
        QN_TRY(qn_lower_start(&o->how, o->persist, &o->start));
        QN_TRY(open_steps(o, &o->start, &o->start_steps));
    }
    if (qn_runs_train(runs)) {
        QN_TRY(qn_lower_update(&o->how, o->persist, &o->update));
        QN_TRY(open_steps(o, &o->update, &o->update_steps));
    }
    if (qn_runs_train(runs) && o->persist->shard.members) {
        QN_TRY(qn_lower_norms(&o->how, o->persist, &o->norms));
        QN_TRY(open_steps(o, &o->norms, &o->norms_steps));
    }
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what == QN_RUN_EVALUATE) {
            const int64_t samples = qn_run_samples(&runs->run[r], o->choices->micro_batch);
            QN_TRY(qn_lower_run(&o->how, o->persist, r, samples, &o->evaluation[r]));
            QN_TRY(open_steps(o, &o->evaluation[r], &o->evaluation_steps[r]));
        }
    return QN_OK;
}

qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *o)
{
    *o = (struct qn_option){.how = *how, .persist = persist, .choices = choices};
    o->parts = qn_arena_new(how->arena, struct qn_part, QN_MOST_PARTS);
    return o->parts ? open_runs(o) : out_of_memory(o);
}

/* --- choices --- */

static int downwards(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The peaks of all candidates of parts that are kept, or of those that are neither kept nor
 * remainders, each once, descending. */
static qn_status list_peaks(const struct qn_option *o, const struct qn_choices *choices, bool kept,
                            int64_t **peaks, int *count)
{
    size_t most = 0;
    int all = 0;
    for (int p = 0; p < o->n_parts; p++)
        most += (size_t)choices->parts[p].count;
    *peaks = qn_arena_new(o->how.arena, int64_t, most + 1);
    if (!*peaks)
        return out_of_memory(o);
    for (int p = 0; p < o->n_parts; p++)
        for (int i = 0; i < choices->parts[p].count; i++)
            if (o->parts[p].kept == kept && (kept || !o->parts[p].remainder))
                (*peaks)[all++] = choices->parts[p].items[i].peak;
    qsort(*peaks, (size_t)all, sizeof **peaks, downwards);
    *count = 0;
    for (int i = 0; i < all; i++)
        if (!*count || (*peaks)[i] < (*peaks)[*count - 1])
            (*peaks)[(*count)++] = (*peaks)[i];
    return QN_OK;
}

/* The number of the next kept peak beside one limit: closely at first, and the smallest in any
 * case.
 */
static int next_kept(int begin, int at, int count)
{
    const int stride = at > begin ? at - begin : 1;
    return at + stride < count || at == count - 1 ? at + stride : count - 1;
}

/* Kept micro-steps are no larger than the limit, unless it is the largest: what needs more than all
 * others is worth its bytes only where these have what they want. */
static void add_choices(struct qn_choices *choices, int64_t limit, const int64_t *kept, int n_kept)
{
    int begin = 0;
    while (choices->count && begin < n_kept - 1 && kept[begin] > limit)
        begin++;
    choices->list[choices->count++] = (struct qn_choice){.limit = limit};
    for (int i = begin; i < n_kept; i = next_kept(begin, i, n_kept))
        choices->list[choices->count++] = (struct qn_choice){limit, kept[i]};
}

/* Without any parts, as of programs that only evaluate, there is one choice of nothing. */
static qn_status list_choices(const struct qn_option *o, struct qn_arena *arena,
                              struct qn_choices *choices)
{
    enum { MOST_KEPT = 40 }; /* for a limit: strides double */
    int64_t *limits, *kept;
    int n_limits, n_kept;
    QN_TRY(list_peaks(o, choices, false, &limits, &n_limits));
    QN_TRY(list_peaks(o, choices, true, &kept, &n_kept));
    choices->list =
        qn_arena_new(arena, struct qn_choice, (size_t)n_limits * (n_kept ? MOST_KEPT : 1) + 1);
    choices->count = 0;
    if (!choices->list)
        return out_of_memory(o);
    for (int i = 0; i < n_limits; i++)
        add_choices(choices, limits[i], kept, n_kept);
    choices->count += !n_limits;
    return QN_OK;
}

qn_status qn_option_choose(const struct qn_option *o, struct qn_arena *arena,
                           struct qn_choices *choices)
{
    struct qn_lowering how = o->how;
    how.arena = arena;
    choices->n_parts = o->n_parts;
    choices->parts = qn_arena_new(arena, struct qn_candidates, (size_t)o->n_parts + 1);
    if (!choices->parts)
        return out_of_memory(o);
    for (int p = 0; p < o->n_parts; p++)
        QN_TRY(qn_candidates_make(&how, &o->parts[p].problem, &choices->parts[p]));
    return list_choices(o, arena, choices);
}

const struct qn_candidate *qn_choices_pick(const struct qn_choices *choices, int part, int choice)
{
    const struct qn_candidates *all = &choices->parts[part];
    const struct qn_choice *of = &choices->list[choice];
    if (all->kept && !of->kept)
        return NULL;
    for (int i = 0; i < all->count; i++)
        if (all->items[i].peak <= (all->kept ? of->kept : of->limit))
            return &all->items[i];
    return &all->items[all->count - 1];
}

static qn_status check_steps(const struct qn_option *o, const struct qn_problem *problem,
                             const struct qn_steps *steps)
{
    qn_status status = qn_steps_check(problem, steps);
    if (status == QN_OK && problem->kept && !qn_steps_part(problem, steps))
        status = QN_ERR_FORMAT;
    return status == QN_OK ? QN_OK
                           : qn_fail(o->how.log, status, "plan: %s",
                                     status == QN_ERR_MEMORY ? "out of host memory"
                                                             : "a list of steps that cannot run");
}

qn_status qn_option_check(const struct qn_option *o, int choice)
{
    const struct qn_choices *choices = o->choices;
    if (choices->n_parts != o->n_parts)
        return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: lists of steps for another program");
    for (int p = 0; p < o->n_parts; p++) {
        const bool wanted = !o->parts[p].kept || choices->list[choice].kept;
        if (choices->parts[p].kept != o->parts[p].kept || (wanted && !choices->parts[p].count))
            return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: no list of steps for a part");
        if (wanted)
            QN_TRY(
                check_steps(o, &o->parts[p].problem, &qn_choices_pick(choices, p, choice)->steps));
    }
    return QN_OK;
}
