/* SPDX-License-Identifier: MIT
 *
 * Tuning: for each task of a plan the fastest of the variants that compute the right numbers.
 */
#include <quern/tune.h>

#include "base/clock.h"
#include "base/text.h"
#include "check/selftest.h"
#include "cl/device.h"
#include "plan/tuning.h"
#include "tune/rig.h"
#include "tune/store.h"
#include "tune/tasks.h"
#include "tune/transfers.h"
#include "tune/trial.h"

#include <stdlib.h>
#include <string.h>

/* Seconds of timing for each candidate; what a candidate must gain over the default; how much
 * slower than the best it may look before it is given up. */
static const double least_seconds = 0.03, gain = 0.97, hopeless = 1.5;

struct tuner {
    qn_device *device;
    const struct qn_log *log;
    struct qn_tune_params params;
    struct qn_tuning tuning;
    struct qn_tune_tasks tasks;
    double end; /* of the time; 0: there is none */
    int64_t budget;
    int timed;
};

static qn_status out_of_memory(const struct tuner *t)
{
    return qn_fail(t->log, QN_ERR_MEMORY, "tuning: out of host memory");
}

static bool is_over(const struct tuner *t)
{
    return t->end > 0 && qn_clock() > t->end;
}

/* The candidates of one task, and the fastest so far. */
struct contest {
    struct qn_rig rig;
    struct qn_rig_run first, best; /* the first is the default */
    bool any;
    bool alone; /* there is one candidate: it is timed, but need not prove itself */
};

/* Of two that disagree the first may be the one that is wrong. */
static bool first_stands(struct tuner *t, const struct contest *c)
{
    return qn_trial_stands(t->device, &t->tuning, c->rig.task, c->first.variant, c->first.setting);
}

static qn_status enter(struct tuner *t, struct contest *c, int variant, int setting)
{
    struct qn_verdict verdict = {0};
    struct qn_rig_run run = {.variant = variant,
                             .setting = setting,
                             .least = least_seconds,
                             .given_up = hopeless * c->best.seconds};
    QN_TRY(qn_rig_time(&c->rig, &run, &verdict));
    if (verdict.failed && !first_stands(t, c)) {
        qn_rig_forget(&c->rig);
        c->any = false;
        return enter(t, c, variant, setting);
    }
    if (verdict.failed) {
        qn_trial_fail(t->device, &t->tuning, c->rig.task, variant, setting, verdict.text);
        return QN_OK;
    }
    if (!c->any)
        c->first = run;
    if (!c->any || (run.seconds < c->best.seconds && run.seconds < gain * c->first.seconds))
        c->best = run;
    c->any = true;
    return QN_OK;
}

static qn_status try_variant(struct tuner *t, struct contest *c, int variant)
{
    const struct qn_variant *v = &c->rig.task->group->variant[variant];
    const char *why;
    for (int s = 0; s < qn_setting_count(v); s++) {
        if (!qn_rig_fits(&c->rig, variant, s, &why) || (c->any && is_over(t)) ||
            (!c->alone && !qn_trial_passed(t->device, &t->tuning, c->rig.task, variant, s)))
            continue;
        QN_TRY(enter(t, c, variant, s));
    }
    return QN_OK;
}

static bool note(struct tuner *t, const struct qn_tune_task *task, const struct qn_rig_run *run)
{
    const struct qn_variant *v = &task->task->group->variant[run->variant];
    const struct qn_tuned choice = {.task = task->key,
                                    .batch = task->problem->batch,
                                    .variant = v->name,
                                    .setting = qn_setting_name(v, run->setting),
                                    .seconds = run->seconds,
                                    .thorough = t->params.all,
                                    .flops = run->cost.flops,
                                    .bytes = run->cost.bytes,
                                    .launches = run->cost.launches};
    return qn_tuning_add_choice(&t->tuning, &choice);
}

/* What the task takes where nothing is timed. */
static struct qn_rig_run untimed(const struct qn_tune_task *task)
{
    return (struct qn_rig_run){.variant = task->task->variant, .setting = task->task->setting};
}

static bool has_choice(const struct qn_tune_task *task, unsigned candidates)
{
    int count = 0;
    for (int v = 0; v < QN_MAX_VARIANTS; v++)
        if (candidates >> v & 1u)
            count += qn_setting_count(&task->task->group->variant[v]);
    return count > 1;
}

static qn_status compete(struct tuner *t, const struct qn_tune_task *task, unsigned candidates)
{
    struct contest c = {.best = untimed(task), .alone = !has_choice(task, candidates)};
    const struct qn_rig_task what = {task->problem, task->task, candidates, t->budget};
    qn_status status = qn_rig_open(&c.rig, t->device, &what);
    for (int v = 0; status == QN_OK && v < QN_MAX_VARIANTS; v++)
        if (candidates >> v & 1u)
            status = try_variant(t, &c, v);
    qn_rig_close(&c.rig);
    if (status != QN_OK && status != QN_ERR_BUDGET)
        return status;
    return note(t, task, &c.best) ? QN_OK : out_of_memory(t);
}

/* What tuning found for the task at this very batch; NULL: nothing. */
static const struct qn_tuned *known(const struct tuner *t, const struct qn_tune_task *task)
{
    const struct qn_tuned *entry = qn_tuning_find(&t->tuning, task->key, task->problem->batch);
    return entry && entry->batch == task->problem->batch ? entry : NULL;
}

/* Whether a search would find no more: it would be as short as the one before. */
static bool is_settled(const struct tuner *t, const struct qn_tuned *entry)
{
    return entry && (!t->params.all || (entry->thorough && entry->seconds > 0));
}

static qn_status tune_task(struct tuner *t, const struct qn_tune_task *task)
{
    const unsigned candidates =
        qn_trial_candidates(task->problem, task->task, qn_device_facts(t->device), t->params.all);
    const struct qn_tuned *entry = known(t, task);
    if (is_settled(t, entry))
        return QN_OK;
    t->timed++;
    if (!is_over(t))
        return compete(t, task, candidates);
    const struct qn_rig_run none = untimed(task);
    return entry || note(t, task, &none) ? QN_OK : out_of_memory(t);
}

static void tell(const struct tuner *t, int done)
{
    const qn_tune_progress progress = {done, t->tasks.count,
                                       done < t->tasks.count ? t->tasks.list[done].key : ""};
    if (t->params.fn)
        t->params.fn(t->params.user, &progress);
}

static qn_status tune_all(struct tuner *t)
{
    for (int i = 0; i < t->tasks.count; i++) {
        tell(t, i);
        QN_TRY(tune_task(t, &t->tasks.list[i]));
    }
    tell(t, t->tasks.count);
    return QN_OK;
}

/* Where a plan may park: once for a device. */
static qn_status tune_transfers(struct tuner *t, const struct qn_plan *plan)
{
    if (!plan->params.park || t->tuning.transfers.to_host > 0)
        return QN_OK;
    const qn_status status = qn_measure_transfers(t->device, t->budget, &t->tuning.transfers);
    t->timed += status == QN_OK;
    return status == QN_ERR_BUDGET ? QN_OK : status;
}

static qn_status tune(struct tuner *t, const struct qn_plan *plan, struct qn_arena *arena,
                      char **text)
{
    QN_TRY(qn_tuning_open(&t->tuning, t->device, t->params.known));
    QN_TRY(tune_transfers(t, plan));
    if (!qn_tune_tasks_of(plan, arena, &t->tasks))
        return out_of_memory(t);
    QN_TRY(tune_all(t));
    *text = qn_tuning_text(&t->tuning);
    return *text ? QN_OK : out_of_memory(t);
}

qn_status qn_tune(qn_device *device, const qn_plan *plan, const qn_tune_params *params,
                  char **tuning, int *timed)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), plan && tuning);
    struct tuner tuner = {
        .device = device, .log = qn_device_log(device), .budget = plan->params.budget};
    struct qn_arena arena = {0};
    if (params)
        tuner.params = *params;
    if (tuner.params.seconds > 0)
        tuner.end = qn_clock() + tuner.params.seconds;
    *tuning = NULL;
    qn_status status = tune(&tuner, plan, &arena, tuning);
    if (timed)
        *timed = tuner.timed;
    qn_tuning_free(&tuner.tuning);
    qn_arena_free(&arena);
    return status;
}
