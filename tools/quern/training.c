/* SPDX-License-Identifier: MIT */
#include "training.h"
#include "batches.h"
#include "dual.h"
#include "judge.h"
#include "line.h"
#include "members.h"
#include "note.h"
#include "pictures.h"
#include "profile.h"
#include "ranks.h"
#include "signals.h"
#include "value.h"
#include "waiting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double SECONDS_OF_A_MINUTE = 60;

/* Whether the present state is to be saved, and as the best one. */
enum saving { SAVES_NOT, SAVES, SAVES_BEST };

struct loop {
    const struct training *training;
    struct session *session;
    const struct train_settings *recipe;
    qn_lr_schedule schedule;
    struct batches batches;
    struct progress progress;
    qn_loader *loader;
    int64_t samples_per_epoch;
    int64_t first;            /* update with which this run began */
    int64_t update, position; /* done; the last metrics may still be under way */
    int64_t recorded;         /* samples of all updates whose metrics arrived */
    int64_t overflows;        /* updates without effect: their gradient was not finite */
    double mark;              /* end of the last step, or of what came after it */
    double spent;             /* seconds since the last metrics arrived, or training began */
    int64_t saved;            /* update of the newest checkpoint; below 0: none */
    double saved_at;          /* when that was */
    bool replanned;           /* the plans of members changed, and nobody was told yet */
    struct judge judge;
    struct turn turn;             /* with the other ranks, before the present update */
    enum saving wanted;           /* in the next turn */
    bool has_best;                /* the folder has a best checkpoint */
    struct evaluation evaluation; /* the newest */
};

int training_check_out(const char *out, struct failure *failure)
{
    char last[4096];
    struct stat status;
    if (!out)
        return CODE_DONE;
    if (!*out)
        return failure_set(failure, CODE_USAGE, "--out: needs the name of a folder");
    if (snprintf(last, sizeof last, "%s/last", out) >= (int)sizeof last)
        return failure_set(failure, CODE_USAGE, "--out: the path is too long");
    if (lstat(last, &status) == 0)
        return failure_set(failure, CODE_USAGE,
                           "--out: %s: holds a training already; go on with quern resume %s, or "
                           "name another folder",
                           out, out);
    return CODE_DONE;
}

int training_lock(struct training *training, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    TRY_LIBRARY(failure, NULL, qn_checkpoint_lock(training->out, &training->lock, &log));
    return training->saved ? CODE_DONE : training_check_out(training->out, failure);
}

int training_begin(struct training *training, const struct arguments *a, bool resumed,
                   int64_t updates)
{
    struct session *s = training->session;
    struct metrics *metrics = &training->metrics;
    if (training->out && training->lock < 0)
        TRY(training_lock(training, s->failure));
    TRY(metrics_open(metrics, a->value[OPTION_METRICS], resumed, s->failure));
    TRY(tensorboard_open(&training->board, a->value[OPTION_TENSORBOARD], updates, s->failure));
    TRY(metrics_keep(metrics, training->out, training->saved, s->failure));
    if (resumed)
        TRY(metrics_changes(metrics, a, s->failure));
    TRY(metrics_plan(metrics, s));
    return metrics_environment(metrics, s);
}

void training_close(struct training *training)
{
    metrics_close(&training->metrics);
    tensorboard_close(&training->board);
    if (training->lock >= 0)
        close(training->lock);
    training->lock = -1;
}

void training_announce(const struct session *s)
{
    char size[SIZE_TEXT_BYTES];
    line_print(stdout, "recipe: %s", s->recipe.name);
    if (s->members) {
        members_print(s);
        fflush(stdout);
        return;
    }
    char *plan = qn_plan_text(s->plan);
    line_print(stdout, "device: %s", qn_device_facts(s->device)->name);
    printf("budget: %s (%s)\n", size_text(qn_plan_facts(s->plan)->budget_bytes, size),
           session_budget_origin(s));
    printf("%s", plan ? plan : "");
    free(plan);
    fflush(stdout);
}

/* --- one update --- */

static double lap(struct loop *l)
{
    double before = l->mark;
    l->mark = clock_now();
    return l->mark - before;
}

/* Passes on the metrics of an update that has just finished. Nothing has after the first step,
 * which only enqueued. */
static int record(struct loop *l, const qn_metrics *metrics)
{
    l->spent += lap(l);
    if (!metrics->valid)
        return CODE_DONE;
    const double seconds = l->spent;
    l->spent = 0;
    l->recorded += metrics->samples;
    l->overflows += metrics->skipped && !isfinite(metrics->grad_norm);
    progress_update(&l->progress, metrics, l->recorded, seconds);
    const struct norms norms = norms_of(l->session->trainer, l->recipe);
    const int local = dual_local_loss(l->session);
    const struct figures figures = {.norms = &norms,
                                    .seconds = seconds,
                                    .noise_scale = l->batches.scale[metrics->update % 2],
                                    .local_loss = local < 0 ? NAN : metrics->losses[local]};
    TRY(tensorboard_update(&l->training->board, metrics, &norms, seconds, l->session->failure));
    return metrics_update(&l->training->metrics, metrics, &figures, l->session->failure);
}

/* Runs the update to the end, step by step; rank 0 writes the trace of all members. */
static int trace(struct loop *l, const qn_cycle *cycle, qn_metrics *previous)
{
    struct failure *failure = l->session->failure;
    cJSON *profiles;
    TRY(profile_update(l->session, cycle, previous, &profiles));
    if (!profiles)
        return CODE_DONE;
    int code = profile_write(profiles, l->training->profile, failure);
    if (!code)
        code = metrics_profile(&l->training->metrics, l->update, profiles, failure);
    cJSON_Delete(profiles);
    return code;
}

static bool trace_is_due(const struct loop *l)
{
    const int64_t last = l->schedule.total - 1, wanted = l->first + PROFILE_UPDATE;
    return l->training->profile && l->update == (wanted < last ? wanted : last);
}

static int step(struct loop *l)
{
    struct failure *failure = l->session->failure;
    qn_batch batch;
    qn_metrics previous = {0};
    int64_t samples = batches_next(&l->batches, l->update);
    TRY_LIBRARY(failure, NULL, qn_loader_next(l->loader, samples, &batch));
    const qn_cycle cycle = {.samples = samples,
                            .lr = qn_schedule_lr(&l->schedule, l->update) * l->turn.lr_scale,
                            .fetch = qn_batch_fetch,
                            .user = &batch,
                            .choose = qn_batch_choose,
                            .measure_noise = batches_adapt(&l->batches)};
    if (l->session->contrastive)
        TRY_LIBRARY(failure, NULL,
                    qn_contrastive_begin(l->session->contrastive, l->session->trainer));
    if (l->turn.traces)
        TRY(trace(l, &cycle, &previous));
    else
        TRY(members_step(l->session, &cycle, &previous));
    l->update++;
    l->position += samples;
    batches_learn(&l->batches, &previous);
    return record(l, &previous);
}

/* Waits until the device is idle. */
static int settle(struct loop *l)
{
    qn_metrics last = {0};
    TRY(members_finish(l->session, &last));
    batches_keep(&l->batches, &last);
    return record(l, &last);
}

/* --- another budget --- */

/* Moves the training onto a plan for this budget, if there is one. */
static int take_budget(struct loop *l, struct session *s, int64_t bytes)
{
    struct waiting waiting;
    session_warn_budget(s, bytes, qn_device_facts(s->device));
    failure_clear(s->failure);
    waiting_begin(&waiting, s->quiet ? NULL : "planning ...");
    const qn_status status = qn_trainer_set_budget(s->trainer, bytes);
    waiting_end(&waiting);
    if (status == QN_ERR_BUDGET || status == QN_ERR_MEMORY) {
        say("warning: %s: %s; the old plan goes on", s->budget_file.path, s->failure->logged);
        return CODE_DONE;
    }
    if (status != QN_OK)
        return failure_library(s->failure, status, s->budget_file.path);
    const qn_plan_info *plan = qn_plan_facts(session_running(s));
    char size[SIZE_TEXT_BYTES];
    progress_say(&l->progress,
                 "budget: %s: micro-batch %" PRId64 ", %d of %d steps recomputed, plan %016" PRIx64,
                 size_text(bytes, size), plan->micro_batch, plan->recomputed_steps, plan->steps,
                 plan->hash);
    l->replanned = true;
    return CODE_DONE;
}

static int follow_budget(struct loop *l, struct session *s)
{
    struct budget_file *file = &s->budget_file;
    int64_t bytes = 0;
    if (!budget_file_changed(file, &bytes))
        return CODE_DONE;
    if (!*file->why)
        return take_budget(l, s, bytes);
    say("warning: %s: %s; the old plan goes on", file->path, file->why);
    return CODE_DONE;
}

static int follow_budgets(struct loop *l)
{
    struct session *one;
    for (int m = 0; (one = members_session(l->session, m)); m++)
        TRY(follow_budget(l, one));
    return CODE_DONE;
}

/* Members of any rank have other plans. */
static int tell_plans(struct loop *l)
{
    l->replanned = false;
    TRY(members_tell(l->session));
    const struct members_bytes sum = members_bytes(l->session);
    l->progress.bytes = sum.peak;
    l->progress.budget = sum.budget;
    TRY(metrics_plan(&l->training->metrics, l->session));
    return pictures_keep(l->session, l->training->out);
}

/* --- between updates --- */

static bool is_epoch_end(const struct loop *l)
{
    int64_t before = l->position - l->batches.now;
    return l->position / l->samples_per_epoch != before / l->samples_per_epoch;
}

static bool evaluation_is_due(const struct loop *l)
{
    const struct interval *every = &l->recipe->eval_every;
    if (!l->session->data.evaluated)
        return false;
    if (l->update == l->schedule.total)
        return true;
    if (!every->count)
        return false;
    return every->unit == EVERY_EPOCHS
               ? is_epoch_end(l) && l->position / l->samples_per_epoch % every->count == 0
               : l->update % every->count == 0;
}

static bool saving_is_due(const struct loop *l)
{
    const struct interval *every = &l->recipe->save_every;
    if (l->update == l->schedule.total || is_epoch_end(l))
        return true;
    if (!every->count)
        return false;
    if (every->unit == EVERY_UPDATES)
        return l->update % every->count == 0;
    const double unit = every->unit == EVERY_MINUTES ? SECONDS_OF_A_MINUTE : 1;
    return clock_now() - l->saved_at >= unit * (double)every->count;
}

static int measure(struct loop *l)
{
    lap(l);
    TRY(members_show_averages(l->session, true));
    TRY(evaluate(l->session, &l->evaluation, NULL));
    TRY(members_show_averages(l->session, false));
    const struct moment moment = {
        .update = l->update,
        .epoch = (double)l->position / (double)l->samples_per_epoch,
        .seconds = lap(l),
    };
    progress_evaluation(&l->progress, &moment, &l->evaluation);
    TRY(tensorboard_evaluation(&l->training->board, &moment, &l->evaluation, l->session->failure));
    return metrics_evaluation(&l->training->metrics, &moment, &l->evaluation, l->session->failure);
}

/* The folder that was meant by a dataset's name alone. */
static int keep_folder(struct session *s)
{
    const struct data_settings *data = &s->settings.data;
    const char *named = getenv("QN_DATA_DIR");
    if (data->path || data->images || !named || !*named)
        return CODE_DONE;
    char *path = realpath(named, NULL);
    int code = path ? recipe_put(&s->recipe, "data", "path", path, "QN_DATA_DIR", s->failure)
                    : failure_set(s->failure, CODE_FAILED, "%s: %s", named, strerror(errno));
    free(path);
    return code;
}

/* A tokenizer that was made of the text stays with what was learned, and is not made again. */
static int keep_tokenizer(struct session *s, const char *out)
{
    char path[PATH_MAX + 32], tokens[24];
    const struct text *text = data_text(&s->data);
    if (!text->made)
        return CODE_DONE;
    if (!realpath(out, path))
        return failure_set(s->failure, CODE_FAILED, "%s: %s", out, strerror(errno));
    strcat(path, "/tokenizer.json");
    TRY(text_save(text, path, s->failure));
    snprintf(tokens, sizeof tokens, "%d", s->data.model.tokens);
    recipe_remove(&s->recipe, "data", "vocabulary");
    TRY(recipe_put(&s->recipe, "data", "tokens", tokens, "", s->failure));
    return recipe_put(&s->recipe, "data", "tokenizer", path, "", s->failure);
}

/* What the model must know of the data is there without it. */
static int keep_description(struct session *s)
{
    const qn_model_data *model = &s->data.model;
    const enum data_kind kind = s->settings.data.kind;
    const bool rows = model->features > 0;
    char shape[64], classes[24], targets[24], tokens[24];
    snprintf(shape, sizeof shape, "%d,%d,%d", model->channels, model->height, model->width);
    snprintf(classes, sizeof classes, "%d", model->classes);
    snprintf(targets, sizeof targets, "%d", model->targets);
    snprintf(tokens, sizeof tokens, "%d", model->tokens);
    if (s->contrastive)
        return CODE_DONE;
    if (kind == DATA_IDX || kind == DATA_IMAGES || (kind == DATA_NPY && !rows))
        TRY(recipe_put(&s->recipe, "data", "shape", shape, "", s->failure));
    if (kind == DATA_NPY && model->targets)
        TRY(recipe_put(&s->recipe, "resume", "targets", targets, "", s->failure));
    if (model->real)
        TRY(recipe_put(&s->recipe, "resume", "real", "yes", "", s->failure));
    if (kind == DATA_TOKENS)
        TRY(recipe_put(&s->recipe, "data", "tokens", tokens, "", s->failure));
    return model->classes ? recipe_put(&s->recipe, "data", "classes", classes, "", s->failure)
                          : CODE_DONE;
}

/* What was chosen by the budget stays when that changes. */
static int keep_mode(struct session *s)
{
    return s->settings.contrastive.mode == CONTRASTIVE_GRADCACHE
               ? recipe_put(&s->recipe, "contrastive", "mode", "gradcache", "", s->failure)
               : CODE_DONE;
}

/* Puts into the recipe what tells the data of this training from others. */
static int keep_data(struct session *s, const char *out)
{
    char digest[DATA_DIGEST_BYTES];
    data_digest(s->data.train, digest);
    TRY(recipe_put(&s->recipe, "resume", "samples", digest, "", s->failure));
    TRY(keep_description(s));
    TRY(keep_mode(s));
    TRY(keep_tokenizer(s, out));
    return keep_folder(s);
}

/* The recipe as it stands in a checkpoint. */
static char *note(struct loop *l)
{
    struct recipe *recipe = &l->session->recipe;
    char adaptive[BATCHES_TEXT_BYTES];
    if (judge_keep(&l->judge, recipe, l->session->failure))
        return NULL;
    if (batches_adapt(&l->batches) &&
        recipe_put(recipe, "resume", "adaptive", batches_text(&l->batches, adaptive), "",
                   l->session->failure))
        return NULL;
    return note_text(recipe, qn_dataset_column(l->session->data.train, "labels"),
                     &l->session->data.features);
}

static int save_first(struct loop *l)
{
    char *text = note(l);
    if (!text)
        return failure_set(l->session->failure, CODE_FAILED, "%s: out of memory", l->training->out);
    const bool best = l->wanted == SAVES_BEST;
    const qn_save_params params = {
        .position = l->position, .best = best, .keep = (int)l->recipe->keep, .note = text};
    const int code = members_save(l->session, l->training->out, &params);
    free(text);
    if (code)
        return code;
    l->saved = l->update;
    l->saved_at = clock_now();
    l->has_best |= best;
    l->wanted = SAVES_NOT;
    lap(l);
    return CODE_DONE;
}

/* Rank 0 writes, and asks the others for what their members have alone. */
static int save(struct loop *l)
{
    return ranks_first() ? save_first(l) : members_save(l->session, "", NULL);
}

/* Figures of drift. */
static int look_at_banks(struct loop *l)
{
    struct session *s = l->session;
    qn_drift drift;
    TRY(settle(l));
    TRY(dual_drift(s, &drift));
    return metrics_drift(&l->training->metrics, l->update, &drift, s->failure);
}

/* Evaluates if it is time, and sees whether it is time to save. */
static int look_after(struct loop *l)
{
    bool evaluating = evaluation_is_due(l), better = false;
    bool saving = l->training->out && (evaluating || saving_is_due(l));
    if (dual_drift_is_due(l->session, l->update))
        TRY(look_at_banks(l));
    if (evaluating || saving)
        TRY(settle(l));
    if (evaluating) {
        TRY(measure(l));
        better = judge_take(&l->judge, &l->evaluation, &l->progress);
    }
    const bool best = better || (evaluating && !l->has_best);
    l->wanted = !saving ? SAVES_NOT : best ? SAVES_BEST : SAVES;
    return CODE_DONE;
}

/* --- the whole --- */

static void range(void *user, int64_t samples, int64_t *first, int64_t *count)
{
    members_range(user, samples, first, count);
}

static int open_loader(struct loop *l)
{
    const qn_plan_params plan = settings_plan(&l->session->settings);
    const qn_loader_params params = {.log = failure_log(l->session->failure),
                                     .seed = (uint64_t)l->session->settings.train.seed,
                                     .position = l->position,
                                     .max_samples = plan.batch[0],
                                     .range = range,
                                     .user = l->session};
    TRY_LIBRARY(l->session->failure, NULL,
                qn_loader_open(&l->loader, l->session->data.train, &params));
    return CODE_DONE;
}

/* What is to be said at the end. */
static void report(struct loop *l, bool whole)
{
    const char *out = l->training->out;
    progress_end(&l->progress);
    if (l->overflows)
        say("warning: %" PRId64 " updates changed nothing: their gradient was not finite",
            l->overflows);
    if (qn_improvement_ends(&l->judge.improvement))
        progress_say(&l->progress,
                     "ended early, after update %" PRId64 ": %" PRId64
                     " evaluations without a better one",
                     l->update, l->judge.improvement.waited);
    else if (!whole)
        progress_say(&l->progress, "stopped by a signal after update %" PRId64 "%s%s", l->update,
                     out ? "; go on with quern resume " : "", out ? out : "");
    members_report(l->session);
}

static bool is_over(const struct loop *l)
{
    return l->update >= l->schedule.total || qn_improvement_ends(&l->judge.improvement);
}

static enum ending ending(const struct loop *l)
{
    return !is_over(l)                     ? ENDING_INTERRUPTED
           : l->update < l->schedule.total ? ENDING_EARLY
                                           : ENDING_WHOLE;
}

/* What all ranks do next: whether they save, whether there is another update, and at what rate. */
static int take_turn(struct loop *l)
{
    l->turn = (struct turn){.over = is_over(l),
                            .saves = l->wanted != SAVES_NOT,
                            .lr_scale = qn_improvement_scale(&l->judge.improvement),
                            .replanned = l->replanned,
                            .traces = trace_is_due(l)};
    TRY(ranks_turn(&l->turn, l->session->failure));
    if (l->turn.saves)
        TRY(save(l));
    return l->turn.replanned ? tell_plans(l) : CODE_DONE;
}

static int begin_update(struct loop *l)
{
    if (!is_over(l) && !signals_received())
        TRY(follow_budgets(l));
    return take_turn(l);
}

static bool goes_on(const struct loop *l)
{
    return !l->turn.signal && !l->turn.over;
}

static int run(struct loop *l)
{
    TRY(open_loader(l));
    if (l->training->out)
        TRY(keep_data(l->session, l->training->out));
    if (l->training->out && l->saved < 0)
        l->wanted = SAVES;
    lap(l);
    TRY(begin_update(l));
    while (goes_on(l)) {
        TRY(step(l));
        TRY(look_after(l));
        TRY(begin_update(l));
    }
    TRY(settle(l));
    if (l->training->out && l->saved != l->update)
        l->wanted = SAVES;
    const bool whole = l->turn.over;
    TRY(take_turn(l));
    if (whole && l->session->data.evaluated && !l->evaluation.samples)
        TRY(measure(l));
    TRY(take_turn(l));
    TRY(members_tell(l->session));
    report(l, whole);
    TRY(metrics_summary(&l->training->metrics, l->session, &l->evaluation, ending(l)));
    return whole ? CODE_DONE : signals_code(l->session->failure);
}

int training_run(struct training *training)
{
    struct session *s = training->session;
    TRY(members_tell(s));
    TRY(pictures_keep(s, training->out));
    const struct members_bytes bytes = members_bytes(s);
    int64_t samples = qn_dataset_describe(s->data.train)->count;
    struct loop loop = {
        .training = training,
        .session = s,
        .recipe = &s->settings.train,
        .schedule = s->settings.train.schedule,
        .samples_per_epoch = samples,
        .first = qn_trainer_updates(s->trainer),
        .update = qn_trainer_updates(s->trainer),
        .position = training->position,
        .recorded = training->position,
        .saved = training->saved ? qn_trainer_updates(s->trainer) : -1,
        .saved_at = clock_now(),
        .judge = judge_open(s),
        .has_best = training->saved && s->settings.train.improvement.seen,
    };
    loop.batches = batches_open(loop.recipe);
    loop.schedule.total = settings_total(&s->settings.train, samples);
    loop.progress = (struct progress){.quiet = s->quiet,
                                      .terminal = isatty(STDOUT_FILENO) == 1,
                                      .total = loop.schedule.total,
                                      .samples_per_epoch = samples,
                                      .bytes = bytes.allocated,
                                      .budget = bytes.budget};
    int code = run(&loop);
    progress_end(&loop.progress);
    qn_loader_close(&loop.loader);
    return code;
}
