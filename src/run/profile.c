/* SPDX-License-Identifier: MIT
 *
 * What each step takes, seen from the host: the device is idle before and after it.
 */
#include "base/clock.h"
#include "base/log.h"
#include "run/trainer.h"

void qn_trainer_profile(qn_trainer *trainer, qn_profile_fn fn, void *user)
{
    if (!trainer)
        return;
    trainer->profile = fn;
    trainer->profile_user = user;
}

static qn_profile_kind kind_of(const struct qn_phase_run *phase, const struct qn_step *step,
                               const struct qn_task *task)
{
    if (task->kind != QN_TASK_GROUP)
        return QN_PROFILE_TRANSFER;
    if (phase->kind == QN_UPDATE_PHASE || task->node < 0)
        return QN_PROFILE_UPDATE;
    if (phase->kind == QN_EVALUATION_PHASE)
        return QN_PROFILE_EVALUATION;
    return step->recomputed ? QN_PROFILE_RECOMPUTE
           : task->backward ? QN_PROFILE_BACKWARD
                            : QN_PROFILE_FORWARD;
}

qn_status qn_trainer_report_step(struct qn_trainer *trainer, int number, int index, double begin)
{
    const struct qn_phase_run *phase = &trainer->plan->program.phases[number];
    const struct qn_step *step = &phase->steps[index];
    const struct qn_task *task = &phase->problem->tasks[step->task];
    QN_TRY(qn_device_finish(trainer->device));
    const qn_profile_step report = {
        .kind = kind_of(phase, step, task),
        .name = task->name,
        .group = qn_task_does(task),
        .begin = begin,
        .seconds = qn_clock() - begin,
        .live_bytes =
            trainer->plan->program.live[phase->start + index] + trainer->plan->program.blas_temp,
    };
    trainer->profile(trainer->profile_user, &report);
    return QN_OK;
}
