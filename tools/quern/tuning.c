/* SPDX-License-Identifier: MIT */
#include "tuning.h"
#include "members.h"
#include "progress.h"
#include "signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Quick tuning: seconds of searching among variants, and of timing what the plan runs at most,
 * which other micro-batches may need too; the share of the predicted time that has to be measured;
 * how many times plan and tuning alternate at most. */
static const double search_seconds = 8, measure_seconds = 20, enough = 0.95;
enum { ROUNDS = 8 };

/* --- what is seen of it --- */

struct view {
    bool terminal;
    double start, shown;
    double compiled, timed; /* seconds */
};

static void show(void *user, const qn_tune_progress *progress)
{
    struct view *view = user;
    const double now = clock_now();
    view->compiled = progress->compile_seconds;
    view->timed = progress->timing_seconds;
    if (!view->terminal || now - view->shown < 0.1)
        return;
    view->shown = now;
    fprintf(stderr, "\rtuning: %d of %d kernels, %.0f s, %-40.40s", progress->done, progress->total,
            now - view->start, progress->task);
}

static void end_view(const struct view *view)
{
    if (view->shown > 0)
        fprintf(stderr, "\r%78s\r", "");
}

static bool is_stopped(void *user)
{
    (void)user;
    return signals_received() != 0;
}

/* --- searching --- */

static void replace(struct session *s, char *found)
{
    free(s->tuning);
    s->tuning = found;
}

/* Only who named a folder is told that it keeps nothing. */
static int keep(struct session *s, char *found)
{
    const char *folder = getenv("QN_CACHE_DIR");
    replace(s, found);
    failure_clear(s->failure);
    if (qn_tuning_save(s->device, found) != QN_OK && folder && *folder)
        say("warning: %s", s->failure->logged);
    failure_clear(s->failure);
    return CODE_DONE;
}

int tuning_search(struct session *s, const struct tuning_limits *limits, struct tuning_sum *sum)
{
    struct view view = {.terminal = isatty(STDERR_FILENO) == 1, .start = clock_now()};
    const qn_tune_params params = {.known = s->tuning,
                                   .seconds = limits->search,
                                   .measuring = limits->measure,
                                   .all = limits->all,
                                   .fn = show,
                                   .stop = is_stopped,
                                   .user = &view};
    char *found = NULL;
    qn_tune_result result;
    failure_clear(s->failure);
    qn_status status = qn_tune(s->device, s->plan, &params, &found, &result);
    end_view(&view);
    if (status != QN_OK)
        return failure_library(s->failure, status, "tuning");
    sum->kernels += result.timed;
    sum->changed = result.changed;
    sum->compiled += view.compiled;
    sum->timed += view.timed;
    TRY(sum->changed ? keep(s, found) : (free(found), CODE_DONE));
    return signals_code(s->failure);
}

static int plan_with(struct session *s, const qn_plan_params *params)
{
    qn_plan_params tuned = *params;
    tuned.tuning = s->tuning;
    qn_plan_destroy(&s->plan);
    return session_plan(s, qn_device_facts(s->device), &tuned);
}

static void tell(const struct session *s, const struct tuning_sum *sum)
{
    const qn_plan_info *plan = qn_plan_facts(s->plan);
    if (!sum->kernels || s->quiet)
        return;
    printf("tuned %d kernels: compiled in %.1f s, timed in %.1f s\n", sum->kernels, sum->compiled,
           sum->timed);
    if (plan && plan->measured_share < enough)
        printf("%.0f %% of the predicted time is measured; the next run goes on\n",
               100 * plan->measured_share);
}

/* Of what is left of a limit; a little below none. */
static double rest(double limit, double spent)
{
    return limit > spent ? limit - spent : -1;
}

/* A plan whose steps are measured stays as it is, so that the next run has the same. */
static int alternate(struct session *s, const qn_plan_params *params, struct tuning_sum *sum)
{
    for (int round = 0; round < ROUNDS && sum->changed; round++) {
        const struct tuning_limits limits = {.search = rest(search_seconds, sum->timed),
                                             .measure = rest(measure_seconds, sum->timed)};
        if (qn_plan_facts(s->plan)->measured_share >= enough || limits.measure < 0)
            return CODE_DONE;
        TRY(tuning_search(s, &limits, sum));
        if (sum->changed)
            TRY(plan_with(s, params));
    }
    return CODE_DONE;
}

int tuning_probe(struct session *s, const qn_plan_params *params, enum tune_mode mode)
{
    char name[MEMBERS_NAME_BYTES];
    for (;;) {
        char *found = NULL;
        int refused;
        TRY_LIBRARY(s->failure, members_name(s, name),
                    qn_tune_probe(s->device, s->plan, s->tuning, &found, &refused));
        if (!refused)
            return free(found), CODE_DONE;
        if (mode != TUNE_OFF)
            TRY(keep(s, found));
        else
            replace(s, found);
        TRY(plan_with(s, params));
    }
}

int tuning_plan(struct session *s, const qn_plan_params *params, enum tune_mode mode)
{
    struct tuning_sum sum = {.changed = true};
    if (!s->tuning && mode != TUNE_OFF)
        TRY_LIBRARY(s->failure, NULL, qn_tuning_load(s->device, &s->tuning));
    TRY(plan_with(s, params));
    const int code = mode == TUNE_QUICK ? alternate(s, params, &sum) : CODE_DONE;
    tell(s, &sum);
    return code;
}
