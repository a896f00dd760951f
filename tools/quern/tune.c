/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "signals.h"
#include "tuning.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

/* A search that took other kernels may lead to another plan, with kernels of its own. */
enum { ROUNDS = 4 };

static int search(struct session *s, const struct tuning_limits *limits, struct tuning_sum *sum)
{
    const qn_plan_params params = settings_plan(&s->settings);
    for (int round = 0; round < ROUNDS && sum->changed; round++) {
        qn_plan_destroy(&s->plan);
        TRY(tuning_plan(s, &params, TUNE_STORED));
        TRY(tuning_search(s, limits, sum));
    }
    return CODE_DONE;
}

/* Also after a signal: what was found until then is kept. */
static int search_and_tell(struct session *s, double seconds)
{
    const struct tuning_limits limits = {.search = seconds, .all = true};
    struct tuning_sum sum = {.changed = true};
    const int code = search(s, &limits, &sum);
    if (code == CODE_DONE || signals_received())
        printf(
            "%d kernels timed: compiled in %.1f s, timed in %.1f s; the outcome is used from now "
            "on\n",
            sum.kernels, sum.compiled, sum.timed);
    return code;
}

static int tune(struct session *s, const struct arguments *a)
{
    double seconds = 0;
    const char *text = a->value[OPTION_SECONDS];
    const char *wrong = text ? value_real(text, &seconds) : NULL;
    if (wrong)
        return failure_set(s->failure, CODE_USAGE, "--seconds: '%s' %s", text, wrong);
    if (seconds < 0)
        return failure_set(s->failure, CODE_USAGE, "--seconds: is below 0");
    TRY(session_recipe(s, a->operand, a));
    TRY(data_look(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    TRY(session_device(s, a));
    return search_and_tell(s, seconds);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    signals_catch();
    int code = tune(session, a);
    session_close(session);
    free(session);
    return code;
}

const struct command command_tune = {
    "tune",
    "RECIPE",
    "finds the fastest kernels for a recipe on a device",
    "Times every kernel variant that can run, at the sizes of the recipe, among those that "
    "compute\n"
    "the right numbers on this device, and keeps the outcome in the cache folder for quern train.\n"
    "It takes a minute or several; SIGINT ends it, and what was found is kept. quern train itself\n"
    "takes some seconds for the likely ones\n"
    "(--tune quick). Kernels decide the last bits of a training: a resumed one keeps those that "
    "it\n"
    "began with.",
    true,
    run,
    {OPTION_DATA, OPTION_BUDGET, OPTION_BATCH, OPTION_MICRO_BATCH, OPTION_RECOMPUTE, OPTION_EFFORT,
     OPTION_STORAGE, OPTION_DEVICE, OPTION_SECONDS, OPTION_SET, OPTION_COUNT},
};
