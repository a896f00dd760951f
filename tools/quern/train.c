/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "judge.h"
#include "members.h"
#include "ranks.h"
#include "ranks_compare.h"
#include "signals.h"
#include "training.h"
#include "tuning.h"

#include <stdlib.h>

static int plan_and_probe(struct session *s)
{
    const enum tune_mode mode = s->settings.memory.tune;
    struct session *one;
    TRY(members_plan(s, mode));
    TRY(members_settle(s, mode));
    for (int m = 0; (one = members_session(s, m)); m++) {
        qn_plan_params params;
        TRY(members_plan_params(one, &params));
        TRY(tuning_probe(one, &params, mode));
    }
    return CODE_DONE;
}

/* Where no plan fits, the figures say so; on rank 0 if it was there. */
static int make_plan(struct session *s, struct metrics *metrics, const char *path)
{
    const int code = plan_and_probe(s);
    if (code != CODE_NO_PLAN || !*s->failure->text)
        return code;
    TRY(metrics_open(metrics, path, false, s->failure));
    metrics_refusal(metrics, s);
    return code;
}

/* All that needs neither a device nor other ranks. */
static int prepare(struct session *s, const struct training *training, const struct arguments *a)
{
    TRY(training_check_out(training->out, s->failure));
    TRY(session_recipe(s, a->operand, a));
    TRY(pretrained_check(&s->pretrained, s->failure));
    s->data.text.quiet = s->quiet;
    TRY(data_open(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    TRY(session_fits(s));
    TRY(judge_check(s));
    return members_read(s, a);
}

static int train(struct session *s, struct training *training, const struct arguments *a)
{
    TRY(ranks_agree(prepare(s, training, a), s->failure));
    TRY(ranks_compare(s));
    TRY(ranks_agree(members_join(s), s->failure));
    TRY(ranks_agree(members_devices(s, a), s->failure));
    TRY(ranks_agree(make_plan(s, &training->metrics, a->value[OPTION_METRICS]), s->failure));
    TRY(members_tell(s));
    if (!s->quiet)
        training_announce(s);
    TRY(ranks_agree(members_trainers(s), s->failure));
    TRY(ranks_agree(members_weights(s), s->failure));
    TRY(ranks_compare_weights(s));
    TRY(ranks_agree(training_begin(training, a, false, 0), s->failure));
    return training_run(training);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    session->quiet = a->value[OPTION_QUIET] != NULL;
    struct training training = {.session = session,
                                .out = a->value[OPTION_OUT],
                                .profile = a->value[OPTION_PROFILE],
                                .lock = -1};
    signals_catch();
    int code = train(session, &training, a);
    training_close(&training);
    session_close(session);
    free(session);
    return code;
}

const struct command command_train = {
    "train",
    "RECIPE",
    "trains a model inside a number of bytes of device memory",
    "Trains the model of a recipe: the name of one that ships, or an INI file. First a plan is\n"
    "made whose memory fits the budget (--budget, else the recipe's, else three quarters of the\n"
    "device's memory). SIGINT and SIGTERM end the training after the update under way; with --out\n"
    "it is saved first, for `quern resume`. --budget-file names a file with a size in it, which "
    "the\n"
    "plan follows. Several --device train together, each with the budget and micro-batch that "
    "stand\n"
    "behind it, as do the processes of mpirun -n N quern train RECIPE. --metrics writes lines of\n"
    "JSON: plan, updates, evaluations, last a summary; --out keeps them too, for `quern report`.",
    true,
    run,
    {OPTION_DATA,      OPTION_BUDGET,  OPTION_BUDGET_FILE, OPTION_BATCH,      OPTION_MICRO_BATCH,
     OPTION_RECOMPUTE, OPTION_EFFORT,  OPTION_STEPS,       OPTION_EPOCHS,     OPTION_SEED,
     OPTION_DEVICE,    OPTION_SHARE,   OPTION_SHARD,       OPTION_TIMEOUT,    OPTION_STORAGE,
     OPTION_OUT,       OPTION_METRICS, OPTION_TENSORBOARD, OPTION_GRAD_NORMS, OPTION_PROFILE,
     OPTION_SET,       OPTION_TUNE,    OPTION_QUIET,       OPTION_COUNT},
};
