/* SPDX-License-Identifier: MIT */
#include "tuning.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds of quick tuning; other kernels may make the planner choose another micro-batch, whose
 * kernels are then timed too: so many times at most. */
static const double quick_seconds = 12;
enum { ROUNDS = 3 };

/* --- what is seen of it --- */

struct view {
    bool terminal;
    double start, shown;
};

static void show(void *user, const qn_tune_progress *progress)
{
    struct view *view = user;
    const double now = clock_now();
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

/* --- searching --- */

/* Only who named a folder is told that it keeps nothing. */
static int keep(struct session *s, char *found)
{
    const char *folder = getenv("QN_CACHE_DIR");
    free(s->tuning);
    s->tuning = found;
    failure_clear(s->failure);
    if (qn_tuning_save(s->device, found) != QN_OK && folder && *folder)
        say("warning: %s", s->failure->logged);
    failure_clear(s->failure);
    return CODE_DONE;
}

int tuning_search(struct session *s, double seconds, bool all, int *timed)
{
    struct view view = {.terminal = isatty(STDERR_FILENO) == 1, .start = clock_now()};
    const qn_tune_params params = {
        .known = s->tuning, .seconds = seconds, .all = all, .fn = show, .user = &view};
    char *found = NULL;
    failure_clear(s->failure);
    qn_status status = qn_tune(s->device, s->plan, &params, &found, timed);
    end_view(&view);
    if (status != QN_OK)
        return failure_library(s->failure, status, "tuning");
    return *timed ? keep(s, found) : (free(found), CODE_DONE);
}

static int plan_with(struct session *s, const qn_plan_params *params)
{
    qn_plan_params tuned = *params;
    tuned.tuning = s->tuning;
    qn_plan_destroy(&s->plan);
    return session_plan(s, qn_device_facts(s->device), &tuned);
}

int tuning_plan(struct session *s, const qn_plan_params *params, enum tune_mode mode)
{
    const double start = clock_now();
    int timed = 1, all = 0;
    if (!s->tuning && mode != TUNE_OFF)
        TRY_LIBRARY(s->failure, NULL, qn_tuning_load(s->device, &s->tuning));
    TRY(plan_with(s, params));
    for (int round = 0; mode == TUNE_QUICK && round < ROUNDS && timed; round++) {
        double left = quick_seconds - (clock_now() - start);
        TRY(tuning_search(s, left > 0 ? left : 1e-3, false, &timed));
        all += timed;
        if (timed)
            TRY(plan_with(s, params));
    }
    if (all && !s->quiet)
        printf("tuned %d kernels in %.1f s\n", all, clock_now() - start);
    return CODE_DONE;
}
