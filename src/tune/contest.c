/* SPDX-License-Identifier: MIT */
#include "tune/contest.h"

#include "base/clock.h"
#include "tune/trial.h"

/* least_seconds: of timing a candidate; turn_seconds: of a turn of decide(). A candidate wins only
 * with seconds < gain * the default's, and is given up after a repetition of more than
 * hopeless * the best's. */
static const double least_seconds = 0.03, turn_seconds = 0.005, gain = 0.97, hopeless = 1.5;
enum { TURNS = 3 };

struct contest {
    const struct qn_contest_params *params;
    struct qn_rig rig;
    struct qn_rig_run first, best; /* the first is the default */
    bool any;
    bool alone; /* there is one candidate, which is timed without a self-test */
};

bool qn_contest_has_choice(const struct qn_tune_task *task, unsigned candidates)
{
    int count = 0;
    for (int v = 0; v < QN_MAX_VARIANTS; v++)
        if (candidates >> v & 1u)
            count += qn_setting_count(&task->task->group->variant[v]);
    return count > 1;
}

static qn_status open_rig(const struct qn_contest_params *params, const struct qn_tune_task *task,
                          unsigned usable, struct qn_rig *rig)
{
    const struct qn_rig_task what = {task->problem, task->task, usable, params->budget,
                                     params->watch};
    return qn_rig_open(rig, params->device, &what);
}

/* Of a variant whose kernels the driver cannot launch: sets run->seconds to 0 and notes the
 * refusal, so that the variant is left out from now on. */
static qn_status leave_out(const struct qn_contest_params *params, const struct qn_rig *rig,
                           struct qn_rig_run *run, qn_status status)
{
    if (status != QN_ERR_BUILD)
        return status;
    qn_trial_refuse(params->device, params->tuning, rig->task, run->variant, run->setting);
    run->seconds = 0;
    return QN_OK;
}

qn_status qn_contest_measure(const struct qn_contest_params *params,
                             const struct qn_tune_task *task, struct qn_rig_run *run)
{
    struct qn_rig rig;
    struct qn_verdict verdict = {0};
    *run = (struct qn_rig_run){
        .variant = task->task->variant, .setting = task->task->setting, .least = least_seconds};
    qn_status status = open_rig(params, task, 1u << run->variant, &rig);
    if (status == QN_OK)
        status = leave_out(params, &rig, run, qn_rig_time(&rig, run, &verdict));
    qn_rig_close(&rig);
    return status;
}

/* --- several candidates --- */

/* Where a candidate's results differ from the first one's, the first may be the wrong one: whether
 * the first passes every case of the harness. */
static bool first_stands(const struct contest *c)
{
    return qn_trial_stands(c->params->device, c->params->tuning, c->rig.task, c->first.variant,
                           c->first.setting);
}

static qn_status enter(struct contest *c, int variant, int setting)
{
    struct qn_verdict verdict = {0};
    struct qn_rig_run run = {.variant = variant,
                             .setting = setting,
                             .least = least_seconds,
                             .given_up = hopeless * c->best.seconds};
    QN_TRY(leave_out(c->params, &c->rig, &run, qn_rig_time(&c->rig, &run, &verdict)));
    if (verdict.failed && !first_stands(c)) {
        qn_rig_forget(&c->rig);
        c->any = false;
        return enter(c, variant, setting);
    }
    if (verdict.failed)
        qn_trial_fail(c->params->device, c->params->tuning, c->rig.task, variant, setting,
                      verdict.text);
    if (verdict.failed || run.seconds <= 0)
        return QN_OK;
    if (!c->any)
        c->first = run;
    if (!c->any || (run.seconds < c->best.seconds && run.seconds < gain * c->first.seconds))
        c->best = run;
    c->any = true;
    return QN_OK;
}

static bool passes(const struct contest *c, int variant, int setting)
{
    const double start = qn_clock();
    const bool passed =
        qn_trial_passed(c->params->device, c->params->tuning, c->rig.task, variant, setting);
    c->params->watch->compiled += qn_clock() - start;
    return passed;
}

static qn_status try_variant(struct contest *c, int variant)
{
    const struct qn_contest_params *p = c->params;
    const char *why;
    for (int s = 0; s < qn_setting_count(&c->rig.task->group->variant[variant]); s++) {
        if (!qn_rig_fits(&c->rig, variant, s, &why) || qn_watch_stops(p->watch) ||
            (c->any && p->over(p->user)) || (!c->alone && !passes(c, variant, s)) ||
            qn_watch_stops(p->watch))
            continue;
        QN_TRY(enter(c, variant, s));
    }
    return QN_OK;
}

/* Times the first and the best again, in turns: another program may have run beside one of them. */
static qn_status decide(struct contest *c)
{
    struct qn_rig_run *both[] = {&c->first, &c->best};
    struct qn_verdict verdict = {0};
    if (c->best.variant == c->first.variant && c->best.setting == c->first.setting)
        return QN_OK;
    for (int i = 0; i < 2 * TURNS; i++) {
        both[i % 2]->again = true;
        both[i % 2]->least = turn_seconds;
        QN_TRY(qn_rig_time(&c->rig, both[i % 2], &verdict));
    }
    if (c->best.seconds >= gain * c->first.seconds)
        c->best = c->first;
    return QN_OK;
}

qn_status qn_contest_run(const struct qn_contest_params *params, const struct qn_tune_task *task,
                         unsigned candidates, struct qn_rig_run *run)
{
    struct contest c = {.params = params, .alone = !qn_contest_has_choice(task, candidates)};
    qn_status status = open_rig(params, task, candidates, &c.rig);
    for (int v = 0; status == QN_OK && v < QN_MAX_VARIANTS; v++)
        if (candidates >> v & 1u)
            status = try_variant(&c, v);
    if (status == QN_OK)
        status = decide(&c);
    qn_rig_close(&c.rig);
    *run = c.best;
    return status;
}
