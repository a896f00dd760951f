/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "judge.h"
#include "members.h"
#include "ranks.h"
#include "ranks_checkpoint.h"
#include "ranks_compare.h"
#include "signals.h"
#include "training.h"
#include "tuning.h"
#include "value.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX + 32];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &status) == 0;
}

/* The folder of the training: DIR, or the one above it if DIR is a checkpoint. Empty: the
 * checkpoint lies in no such folder. */
static int find_source(const char *dir, char source[PATH_MAX], struct failure *failure)
{
    if (!realpath(dir, source))
        return failure_set(failure, CODE_FAILED, "%s: %s", dir, strerror(errno));
    if (!has(source, "checksums.txt"))
        return CODE_DONE;
    *strrchr(source, '/') = 0;
    if (!has(source, "last"))
        *source = 0;
    return CODE_DONE;
}

/* Where the training goes on to save. `source` is borrowed. */
static int choose_out(struct training *training, const struct arguments *a, const char *source,
                      struct failure *failure)
{
    char real[PATH_MAX];
    const char *out = a->value[OPTION_OUT];
    training->out = out ? out : source;
    training->saved = !out || (realpath(out, real) && strcmp(real, source) == 0);
    if (!out && !*source)
        return failure_set(failure, CODE_USAGE,
                           "%s: lies in no folder of a training; say with --out where to save",
                           a->operand);
    return training->saved ? CODE_DONE : training_check_out(out, failure);
}

/* The checkpoint's plan, made again. */
static qn_status plan_again(struct session *s, const qn_checkpoint *checkpoint)
{
    struct session_runs runs;
    session_runs(s, &runs);
    failure_clear(s->failure);
    return runs.list.n_runs ? qn_checkpoint_plan_runs(checkpoint, &runs.list, s->device, &s->plan)
                            : qn_checkpoint_plan(checkpoint, s->graph, s->device, &s->plan);
}

/* Whether groups of gradients are asked for that the checkpoint's plan does not have. */
static bool wants_norms(const qn_checkpoint *checkpoint, const struct arguments *a)
{
    const char *had = qn_checkpoint_describe(checkpoint)->plan.norm_groups;
    return a->value[OPTION_GRAD_NORMS] && !(had && *had);
}

/* The checkpoint's plan; or a new one, of the same micro-batch so that no number changes. */
static int make_plan(struct session *s, const qn_checkpoint *checkpoint, const struct arguments *a)
{
    const bool budget = a->value[OPTION_BUDGET] || a->value[OPTION_BUDGET_FILE];
    if (!a->value[OPTION_REPLAN] && !budget && !wants_norms(checkpoint, a)) {
        const qn_status status = plan_again(s, checkpoint);
        return status == QN_ERR_FORMAT
                   ? failure_set(s->failure, CODE_FAILED, "%s; --replan makes a new one",
                                 s->failure->logged)
               : status ? failure_library(s->failure, status, NULL)
                        : CODE_DONE;
    }
    qn_plan_params params = qn_checkpoint_describe(checkpoint)->plan;
    if (budget)
        params.budget = s->settings.memory.budget;
    params.norm_groups = s->settings.train.norm_groups;
    return session_plan(s, qn_device_facts(s->device), &params);
}

/* Whether it was a member that saved, with a plan for its share of the batch. */
static bool was_member(const struct session *s, const qn_checkpoint *checkpoint)
{
    const qn_plan_params whole = settings_plan(&s->settings);
    const qn_plan_params *had = &qn_checkpoint_describe(checkpoint)->plan;
    return memcmp(had->batch, whole.batch, sizeof whole.batch) != 0;
}

/* Whether a member's plan in the checkpoint is for what the member is to do now. */
static bool is_for(const qn_plan_params *had, const qn_plan_params *now)
{
    return had->budget == now->budget && had->recompute == now->recompute &&
           (!now->micro_batch || had->micro_batch == now->micro_batch) &&
           had->members == now->members && had->member == now->member &&
           memcmp(had->batch, now->batch, sizeof now->batch) == 0 &&
           memcmp(had->whole, now->whole, sizeof now->whole) == 0;
}

/* Of the same number of members each has the plan that it had, where its device, its share and what
 * is asked of it are the same; else one is made as in a new training, without timing. */
static int plan_member(struct session *s, const qn_checkpoint *had, const struct arguments *a,
                       enum tune_mode known)
{
    qn_plan_params now;
    TRY(members_plan_params(s, &now));
    if (had && !a->value[OPTION_REPLAN] && !wants_norms(had, a) &&
        is_for(&qn_checkpoint_describe(had)->plan, &now)) {
        const qn_status status = plan_again(s, had);
        if (status != QN_ERR_FORMAT)
            return status ? failure_library(s->failure, status, NULL) : CODE_DONE;
        failure_clear(s->failure);
    }
    return tuning_plan(s, &now, known);
}

static int plan_members(struct session *s, const qn_checkpoint *checkpoint,
                        const struct arguments *a, enum tune_mode known)
{
    const int all = s->members->all;
    const bool same =
        qn_checkpoint_member(checkpoint, all - 1) && !qn_checkpoint_member(checkpoint, all);
    struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++) {
        const int number = members_number(one);
        const int code =
            plan_member(one, same ? qn_checkpoint_member(checkpoint, number) : NULL, a, known);
        s->smallest_budget = one->smallest_budget;
        TRY(code);
    }
    return CODE_DONE;
}

static int plan_all(struct session *s, const qn_checkpoint *checkpoint, const struct arguments *a)
{
    const enum tune_mode known =
        s->settings.memory.tune == TUNE_QUICK ? TUNE_STORED : s->settings.memory.tune;
    if (s->members) {
        TRY(ranks_agree(plan_members(s, checkpoint, a, known), s->failure));
        return members_settle(s, known);
    }
    return was_member(s, checkpoint) ? members_plan(s, known) : make_plan(s, checkpoint, a);
}

/* The order of the samples means nothing among others. */
static int check_samples(const struct session *s, const char *dir)
{
    char digest[DATA_DIGEST_BYTES];
    data_digest(s->data.train, digest);
    return !s->settings.samples || strcmp(s->settings.samples, digest) == 0
               ? CODE_DONE
               : failure_set(s->failure, CODE_FAILED,
                             "%s: data: not the samples this training began with", dir);
}

/* What may change in a training that goes on: nothing that its samples, its plan or what it saved
 * depend on. */
static int check_changes(const struct arguments *a, struct failure *failure)
{
    static const char *const keys[] = {"train.lr",
                                       "train.schedule",
                                       "train.warmup",
                                       "train.step_every",
                                       "train.step_factor",
                                       "train.lr_end",
                                       "train.steps",
                                       "train.epochs",
                                       "train.save_every",
                                       "train.eval_every",
                                       "train.keep",
                                       "train.patience",
                                       "train.plateau_patience",
                                       "train.plateau_factor",
                                       NULL};
    static const char *const options[] = {"--set", "--micro-batch", "--recompute", NULL};
    int index;
    for (int i = 0; i < a->n_overrides; i++)
        if (!value_word(a->overrides[i].option, options, &index) &&
            value_word(a->overrides[i].name, keys, &index))
            return failure_set(failure, CODE_USAGE,
                               "%s %s: is settled when a training begins; learning rate, schedule, "
                               "end, saving, evaluation and patience may change",
                               a->overrides[i].option, a->overrides[i].name);
    return CODE_DONE;
}

/* All that needs neither a device nor other ranks. */
static int prepare(struct session *s, const qn_checkpoint *checkpoint, const struct arguments *a)
{
    TRY(check_changes(a, s->failure));
    TRY(session_note(s, qn_checkpoint_describe(checkpoint), a));
    s->data.text.quiet = s->quiet;
    TRY(data_open(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(check_samples(s, a->operand));
    TRY(session_graph(s));
    TRY(session_fits(s));
    TRY(judge_check(s));
    return members_read(s, a);
}

static int go_on(struct session *s, struct training *training, const qn_checkpoint *checkpoint,
                 const struct arguments *a)
{
    const qn_checkpoint_info *info = qn_checkpoint_describe(checkpoint);
    TRY(ranks_agree(prepare(s, checkpoint, a), s->failure));
    TRY(ranks_compare(s));
    TRY(ranks_agree(members_join(s), s->failure));
    TRY(ranks_agree(members_devices(s, a), s->failure));
    TRY(ranks_agree(plan_all(s, checkpoint, a), s->failure));
    TRY(members_tell(s));
    TRY(ranks_agree(training_begin(training, a, true, info->update), s->failure));
    if (!s->quiet)
        training_announce(s);
    TRY(ranks_agree(members_trainers(s), s->failure));
    TRY(ranks_agree(members_restore(s, checkpoint), s->failure));
    TRY(ranks_compare_weights(s));
    training->position = info->position;
    return training_run(training);
}

static int open_path(struct session *s, const char *path, qn_checkpoint **checkpoint)
{
    const qn_log log = failure_log(s->failure);
    TRY_LIBRARY(s->failure, NULL, qn_checkpoint_open(checkpoint, path, &log));
    return CODE_DONE;
}

/* The checkpoint, on rank 0. */
static int find(struct session *s, struct training *training, const struct arguments *a,
                char source[PATH_MAX], qn_checkpoint **checkpoint)
{
    if (!ranks_first())
        return CODE_DONE;
    TRY(find_source(a->operand, source, s->failure));
    TRY(choose_out(training, a, source, s->failure));
    if (training->saved)
        TRY(training_lock(training, s->failure));
    return open_path(s, a->operand, checkpoint);
}

/* The same on the others. */
static int receive(struct session *s, struct ranks_checkpoint *copy, qn_checkpoint **checkpoint)
{
    if (ranks_count() == 1)
        return CODE_DONE;
    const char *path = *checkpoint ? qn_checkpoint_describe(*checkpoint)->path : NULL;
    TRY(ranks_checkpoint_open(copy, path, s->failure));
    return ranks_agree(*checkpoint ? CODE_DONE : open_path(s, copy->path, checkpoint), s->failure);
}

static int resume(struct session *s, const struct arguments *a)
{
    struct training training = {.session = s, .lock = -1, .profile = a->value[OPTION_PROFILE]};
    struct ranks_checkpoint copy = {.copied = false};
    qn_checkpoint *checkpoint = NULL;
    char source[PATH_MAX];
    int code = ranks_agree(find(s, &training, a, source, &checkpoint), s->failure);
    if (!code)
        code = receive(s, &copy, &checkpoint);
    if (!code)
        code = go_on(s, &training, checkpoint, a);
    session_close(s);
    qn_checkpoint_close(&checkpoint);
    ranks_checkpoint_close(&copy);
    training_close(&training);
    return code;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    session->quiet = a->value[OPTION_QUIET] != NULL;
    signals_catch();
    int code = resume(session, a);
    free(session);
    return code;
}

const struct command command_resume = {
    "resume",
    "DIR",
    "goes on with a training that was saved",
    "Goes on from the newest checkpoint of DIR (or from DIR, if it is a checkpoint) as if the\n"
    "training had never been stopped: the same plan, the same order of samples, the same bits.\n"
    "The recipe lies in the checkpoint. --steps and --epochs move its end, which also moves the\n"
    "learning rate where the schedule depends on it. --set changes what neither samples nor the\n"
    "plan depend on: learning rate, schedule, end, saving, evaluation, patience. --replan,\n"
    "--budget and --log-grad-norms make a new plan of the same micro-batch. --data says where the\n"
    "same data lie now. Figures are appended to the file of --metrics.",
    false,
    run,
    {OPTION_STEPS,       OPTION_EPOCHS,      OPTION_SET,     OPTION_DATA,   OPTION_DEVICE,
     OPTION_SHARE,       OPTION_SHARD,       OPTION_TIMEOUT, OPTION_BUDGET, OPTION_MICRO_BATCH,
     OPTION_RECOMPUTE,   OPTION_BUDGET_FILE, OPTION_REPLAN,  OPTION_OUT,    OPTION_METRICS,
     OPTION_TENSORBOARD, OPTION_GRAD_NORMS,  OPTION_PROFILE, OPTION_QUIET,  OPTION_COUNT},
};
