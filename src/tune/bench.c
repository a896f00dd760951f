/* SPDX-License-Identifier: MIT
 *
 * Benchmarks: the time of every task of a plan, by variant.
 */
#include <quern/tune.h>

#include "cl/device.h"
#include "plan/cost/tuning.h"
#include "tune/rig.h"
#include "tune/store.h"
#include "tune/tasks.h"
#include "tune/trial.h"

static const double default_seconds = 0.2;

struct bench {
    qn_device *device;
    qn_bench_params params;
    struct qn_tuning tuning; /* outcomes of self-tests */
    struct qn_watch watch;
};

static void report(const struct bench *b, const struct qn_tune_task *task,
                   const struct qn_rig_run *run, qn_bench_outcome outcome, const char *reason)
{
    const struct qn_variant *variant = &task->task->group->variant[run->variant];
    const qn_bench_record record = {.node = task->task->name,
                                    .op = task->task->op->name,
                                    .group = task->task->group->name,
                                    .task = task->key,
                                    .variant = variant->name,
                                    .setting = qn_setting_name(variant, run->setting),
                                    .outcome = outcome,
                                    .reason = reason,
                                    .chosen = run->variant == task->task->variant &&
                                              run->setting == task->task->setting,
                                    .seconds = run->median,
                                    .fastest = run->seconds,
                                    .flops = run->cost.flops,
                                    .bytes = run->cost.bytes,
                                    .launches = run->cost.launches,
                                    .scratch = run->cost.scratch};
    if (b->params.fn)
        b->params.fn(b->params.user, &record);
}

static qn_status time_one(struct bench *b, struct qn_rig *rig, const struct qn_tune_task *task,
                          struct qn_rig_run *run)
{
    struct qn_verdict verdict = {0};
    const char *why;
    if (!qn_rig_fits(rig, run->variant, run->setting, &why)) {
        report(b, task, run, QN_BENCH_NOT_APPLICABLE, why);
        return QN_OK;
    }
    if (!qn_trial_passed(b->device, &b->tuning, task->task, run->variant, run->setting)) {
        report(b, task, run, QN_BENCH_FAILED, "its self-test");
        return QN_OK;
    }
    const qn_status status = qn_rig_time(rig, run, &verdict);
    if (status == QN_ERR_BUILD) {
        report(b, task, run, QN_BENCH_NOT_APPLICABLE, "the device cannot launch it");
        return QN_OK;
    }
    QN_TRY(status);
    report(b, task, run, verdict.failed ? QN_BENCH_FAILED : QN_BENCH_TIMED, verdict.text);
    return QN_OK;
}

static qn_status time_all(struct bench *b, struct qn_rig *rig, const struct qn_tune_task *task)
{
    for (int v = 0; v < QN_MAX_VARIANTS && task->task->group->variant[v].name; v++)
        for (int s = 0; s < qn_setting_count(&task->task->group->variant[v]); s++) {
            struct qn_rig_run run = {.variant = v, .setting = s, .least = b->params.seconds};
            const bool chosen = v == task->task->variant && s == task->task->setting;
            if (chosen || b->params.all)
                QN_TRY(time_one(b, rig, task, &run));
        }
    return QN_OK;
}

static qn_status time_task(struct bench *b, const struct qn_tune_task *task)
{
    struct qn_rig rig;
    const unsigned usable = b->params.all ? ~0u : 1u << task->task->variant;
    const struct qn_rig_task what = {task->problem, task->task, usable, INT64_MAX, &b->watch};
    qn_status status = qn_rig_open(&rig, b->device, &what);
    if (status == QN_OK)
        status = time_all(b, &rig, task);
    qn_rig_close(&rig);
    return status;
}

static qn_status run(struct bench *b, const qn_plan *plan, struct qn_arena *arena)
{
    struct qn_tune_tasks tasks;
    QN_TRY(qn_tuning_open(&b->tuning, b->device, plan->params.tuning));
    if (!qn_tune_tasks_of(plan, arena, &tasks))
        return qn_fail(qn_device_log(b->device), QN_ERR_MEMORY, "benchmark: out of host memory");
    for (int i = 0; i < tasks.count; i++)
        QN_TRY(time_task(b, &tasks.list[i]));
    return QN_OK;
}

qn_status qn_bench(qn_device *device, const qn_plan *plan, const qn_bench_params *params)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), plan);
    struct bench bench = {.device = device};
    struct qn_arena arena = {0};
    if (params)
        bench.params = *params;
    if (bench.params.seconds <= 0)
        bench.params.seconds = default_seconds;
    qn_status status = run(&bench, plan, &arena);
    qn_tuning_free(&bench.tuning);
    qn_arena_free(&arena);
    return status;
}
