/* SPDX-License-Identifier: MIT */
#include "trained.h"
#include "file.h"
#include "newest.h"

int trained_open(struct trained *t, struct session *s, const struct arguments *a,
                 const char *command)
{
    const char *named = a->value[OPTION_WEIGHTS];
    const bool folder = file_is_folder(a->operand);
    t->weights = named ? named : a->operand;
    if (!folder && !named)
        return failure_set(s->failure, CODE_USAGE,
                           "%s: --weights: missing; a recipe needs it, and %s is no folder of a "
                           "checkpoint",
                           command, a->operand);
    if (folder && named)
        return failure_set(s->failure, CODE_USAGE, "%s: --weights: %s has its own", command,
                           a->operand);
    if (file_is_folder(t->weights))
        TRY_LIBRARY(s->failure, NULL, newest_open(&t->checkpoint, t->weights, s->failure));
    if (t->checkpoint)
        t->info = qn_checkpoint_describe(t->checkpoint);
    return folder ? session_note(s, t->info, a) : session_recipe(s, a->operand, a);
}

int trained_load(const struct trained *t, struct session *s, const struct arguments *a)
{
    const qn_plan_params params = settings_plan(&s->settings);
    TRY(session_graph(s));
    TRY(session_fits(s));
    TRY(session_device(s, a));
    TRY(session_plan(s, qn_device_facts(s->device), &params));
    TRY(session_trainer(s));
    TRY_LIBRARY(s->failure, NULL, newest_load(s->trainer, t->weights, s->failure));
    return CODE_DONE;
}

void trained_close(struct trained *trained)
{
    qn_checkpoint_close(&trained->checkpoint);
    *trained = (struct trained){0};
}
