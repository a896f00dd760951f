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

/* Slices of the gradient are begun in the last repetition of all that adds to it. */
static qn_status run_phase(const struct passing *p, int phase, struct qn_feed *feed)
{
    const struct qn_run_set *runs = &p->trainer->plan->runs;
    const bool last = feed->first + feed->count == p->plan->batch &&
                      runs->run[p->first].pass == last_backward(runs);
    feed->reduce = last ? p->cycle->reduce : NULL;
    return qn_trainer_run_phase(p->trainer, phase, feed);
}

/* The micro-step of `count` samples from feed->first on, by the run that is chosen for it. */
static qn_status run_micro_step(const struct passing *p, struct qn_feed *feed)
{
    const bool rest = feed->count < p->trainer->plan->info.micro_batch;
    int run;
    QN_TRY(qn_trainer_choose(p->trainer, p->cycle, p->first, feed->first, feed->count, &run));
    const struct qn_run_phases *phases = &p->plan->runs[run];
    QN_TRY(run_phase(p, rest ? phases->rest : feed->first ? phases->later : phases->first, feed));
    feed->first += feed->count;
    return QN_OK;
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
    return p->cycle->measure_noise && p->plan->micro_steps + (p->plan->remainder > 0) > 1 &&
           runs->n_cells == 0 && is_only_pass(runs, p->first);
}

static qn_status run_pass(const struct passing *p)
{
    struct qn_feed feed = {.fetch = p->cycle->fetch,
                           .user = p->cycle->user,
                           .count = p->plan->batch,
                           .base = p->cycle->first};
    if (p->trainer->plan->runs.run[p->first].whole)
        return run_phase(p, p->plan->runs[p->first].first, &feed);
    feed.count = p->trainer->plan->info.micro_batch;
    for (int64_t i = 0; i < p->plan->micro_steps; i++) {
        QN_TRY(run_micro_step(p, &feed));
        if (i == 0 && measures_noise(p))
            QN_TRY(qn_noise_ask(p->trainer, p->record));
    }
    feed.count = p->plan->remainder;
    return p->plan->remainder ? run_micro_step(p, &feed) : QN_OK;
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
