/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "tuning.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

/* A search that took other kernels may lead to another plan, with kernels of its own. */
enum { ROUNDS = 4 };

static int search(struct session *s, double seconds, bool all)
{
    const qn_plan_params params = settings_plan(&s->settings);
    int timed = 1, total = 0;
    for (int round = 0; round < ROUNDS && timed; round++) {
        qn_plan_destroy(&s->plan);
        TRY(tuning_plan(s, &params, TUNE_STORED));
        TRY(tuning_search(s, seconds, all, &timed));
        total += timed;
    }
    printf("%d kernels timed; the outcome is used from now on\n", total);
    return CODE_DONE;
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
    return search(s, seconds, true);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
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
    "It takes a minute or several; quern train itself takes a few seconds for the likely ones\n"
    "(--tune quick). Kernels decide the last bits of a training: a resumed one keeps those that "
    "it\n"
    "began with.",
    true,
    run,
    {OPTION_BUDGET, OPTION_BATCH, OPTION_MICRO_BATCH, OPTION_RECOMPUTE, OPTION_EFFORT,
     OPTION_STORAGE, OPTION_DEVICE, OPTION_SECONDS, OPTION_SET, OPTION_COUNT},
};
