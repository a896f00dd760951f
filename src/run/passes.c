/* SPDX-License-Identifier: MIT
 *
 * The runs of a cycle, pass by pass.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <inttypes.h>

int qn_pass_length(const struct qn_run_set *runs, int first)
{
    int next = first + 1;
    while (runs->run[first].pass >= 0 && next < runs->n_runs &&
           runs->run[next].pass == runs->run[first].pass)
        next++;
    return next - first;
}

qn_status qn_trainer_choose(const struct qn_trainer *trainer, const struct qn_cycle *cycle,
                            int first, int64_t sample, int64_t count, int *run)
{
    const int length = qn_pass_length(&trainer->plan->runs, first);
    const int chosen =
        length > 1 && cycle->choose ? cycle->choose(cycle->user, cycle->first + sample, count) : 0;
    *run = first + chosen;
    if (chosen >= 0 && chosen < length)
        return QN_OK;
    return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                   "step: alternative %d was chosen for sample %" PRId64 ", and there are %d",
                   chosen, sample, length);
}

/* The last run that goes backward, or its alternatives: with its last repetition gradients are
 * complete. */
static int last_backward(const struct qn_run_set *runs)
{
    int last = -1;
    for (int r = 0; r < runs->n_runs; r++)
        if (qn_run_trains(&runs->run[r]))
            last = runs->run[r].pass;
    return last;
}

struct passing {
    struct qn_trainer *trainer;
    const struct qn_cycle *cycle;
    const struct qn_cycle_plan *plan;
    struct qn_update_record *record;
    int first; /* run of the pass */
};

static bool goes_backward(const struct passing *p)
{
    return p->trainer->plan->runs.run[p->first].what == QN_RUN_BACKWARD;
}

/* Slices of the gradient are begun in the last repetition (`ends`) of all that adds to it. */
static qn_status run_phase(const struct passing *p, int phase, struct qn_feed *feed, bool ends)
{
    const struct qn_run_set *runs = &p->trainer->plan->runs;
    const bool last = ends && runs->run[p->first].pass == last_backward(runs);
    feed->reduce = last ? p->cycle->reduce : NULL;
    return qn_trainer_run_phase(p->trainer, phase, feed);
}

/* Micro-steps of the cycle, the remainder included. */
static int64_t count_micro_steps(const struct qn_cycle_plan *plan)
{
    return plan->micro_steps + (plan->remainder > 0);
}

/* Micro-step `i` of the cycle, by the run that is chosen for it. */
static qn_status run_micro_step(const struct passing *p, int64_t i, struct qn_feed *feed)
{
    const int64_t size = p->trainer->plan->info.micro_batch;
    const bool rest = i == p->plan->micro_steps, last = i == count_micro_steps(p->plan) - 1;
    const bool ends = goes_backward(p) ? i == 0 : last;
    int run;
    feed->first = i * size;
    feed->count = rest ? p->plan->remainder : size;
    QN_TRY(qn_trainer_choose(p->trainer, p->cycle, p->first, feed->first, feed->count, &run));
    const struct qn_run_phases *phases = &p->plan->runs[run];
    const int phase = last && phases->kept >= 0 ? phases->kept
                      : rest                    ? phases->rest
                      : i                       ? phases->later
                                                : phases->first;
    return run_phase(p, phase, feed, ends);
}

/* Brings the rows of all members into the cells that a whole run reads. */
static qn_status bring_rows(const struct passing *p)
{
    const struct qn_run_set *runs = &p->trainer->plan->runs;
    const struct qn_graph *graph = p->trainer->plan->graphs[runs->run[p->first].graph];
    const struct qn_reduce *reduce = p->cycle->reduce;
    for (int n = 0; reduce && n < graph->n_nodes; n++) {
        const struct qn_cell_of *cell = qn_cell_of_samples(runs, &graph->nodes[n]);
        if (cell)
            QN_TRY(reduce->rows(reduce->user, p->trainer, cell->name));
    }
    return QN_OK;
}

/* A member computes all of it: rows of all samples are there. */
static qn_status run_whole(const struct passing *p)
{
    struct qn_feed feed = {
        .fetch = p->cycle->fetch, .user = p->cycle->user, .count = p->plan->whole};
    QN_TRY(bring_rows(p));
    return run_phase(p, p->plan->runs[p->first].first, &feed, true);
}

static bool is_only_pass(const struct qn_run_set *runs, int first)
{
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].pass >= 0 && runs->run[r].pass != runs->run[first].pass)
            return false;
    return true;
}

/* Whether the pass's first micro-step is one of several, and its own gradient is wanted and alone
 * in the accumulators. */
static bool measures_noise(const struct passing *p)
{
    const struct qn_run_set *runs = &p->trainer->plan->runs;
    return p->cycle->measure_noise && count_micro_steps(p->plan) > 1 && runs->n_cells == 0 &&
           is_only_pass(runs, p->first);
}

/* Backward runs begin with the last micro-step and end with the first, whether the activations of
 * the last are kept or made again: gradients are added up in one order. */
static qn_status run_pass(const struct passing *p)
{
    const int64_t count = count_micro_steps(p->plan);
    struct qn_feed feed = {
        .fetch = p->cycle->fetch, .user = p->cycle->user, .base = p->cycle->first};
    if (p->trainer->plan->runs.run[p->first].whole)
        return run_whole(p);
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(run_micro_step(p, goes_backward(p) ? count - 1 - i : i, &feed));
        if (i == 0 && measures_noise(p))
            QN_TRY(qn_noise_ask(p->trainer, p->record));
    }
    return QN_OK;
}

qn_status qn_trainer_run_passes(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                                const struct qn_cycle_plan *plan, struct qn_update_record *record)
{
    const struct qn_feed none = {.count = 1};
    const struct qn_run_set *runs = &trainer->plan->runs;
    if (trainer->plan->program.start >= 0)
        QN_TRY(qn_trainer_run_phase(trainer, trainer->plan->program.start, &none));
    for (int r = 0; r < runs->n_runs; r += qn_pass_length(runs, r))
        if (runs->run[r].pass >= 0)
            QN_TRY(run_pass(&(struct passing){trainer, cycle, plan, record, r}));
    return QN_OK;
}
