/* SPDX-License-Identifier: MIT
 *
 * Tuning: for each task of a plan the fastest of the variants that compute the right numbers.
 */
#include <quern/tune.h>

#include "cl/device.h"
#include "plan/cost/tuning.h"
#include "tune/contest.h"
#include "tune/store.h"
#include "tune/tasks.h"
#include "tune/transfers.h"
#include "tune/trial.h"

#include <math.h>

/* Limit of the seconds for building kernels, over the limit of the seconds for timing them. */
static const double compiling = 2;

struct tuner {
    qn_device *device;
    const struct qn_log *log;
    struct qn_tune_params params;
    struct qn_tuning tuning;
    struct qn_tune_tasks tasks;
    struct qn_watch watch, searching; /* now; as it was when the search among variants began */
    int64_t budget;
    bool wishes; /* params.variants of the plan names variants */
    int done, total;
    qn_tune_result result;
};

static qn_status out_of_memory(const struct tuner *t)
{
    return qn_fail(t->log, QN_ERR_MEMORY, "tuning: out of host memory");
}

static bool note(struct tuner *t, struct qn_tune_task *task, const struct qn_rig_run *run,
                 bool alone)
{
    const struct qn_variant *v = &task->task->group->variant[run->variant];
    const struct qn_tuned choice = {.task = task->key,
                                    .batch = task->problem->batch,
                                    .variant = v->name,
                                    .setting = qn_setting_name(v, run->setting),
                                    .seconds = run->seconds,
                                    .thorough = t->params.all && !alone,
                                    .flops = run->cost.flops,
                                    .bytes = run->cost.bytes,
                                    .launches = run->cost.launches,
                                    .alone = alone,
                                    .spread = fmax(run->median / run->seconds, 1)};
    t->result.timed += !task->timed;
    t->result.changed = true;
    task->timed = true;
    return qn_tuning_add_choice(&t->tuning, &choice);
}

/* The entry of the task at exactly its batch that holds a time; NULL: none. */
static const struct qn_tuned *known(const struct tuner *t, const struct qn_tune_task *task)
{
    const struct qn_tuned *entry = qn_tuning_find(&t->tuning, task->key, task->problem->batch);
    return entry && entry->batch == task->problem->batch && entry->seconds > 0 ? entry : NULL;
}

static unsigned candidates_of(const struct tuner *t, const struct qn_tune_task *task)
{
    return qn_trial_candidates(task->problem, task->task, qn_device_facts(t->device),
                               t->params.all);
}

static void tell(const struct tuner *t, const char *task)
{
    const qn_tune_progress progress = {.done = t->done,
                                       .total = t->total,
                                       .task = task,
                                       .timed = t->result.timed,
                                       .compile_seconds = t->watch.compiled,
                                       .timing_seconds = t->watch.timed};
    if (t->params.fn)
        t->params.fn(t->params.user, &progress);
}

/* --- variants that the plan takes --- */

/* Variants named in params.variants are not timed: the table would recommend them to later plans.
 */
static bool wants_measure(const struct tuner *t, const struct qn_tune_task *task)
{
    return !t->wishes && !known(t, task);
}

static bool has_measured_enough(const struct tuner *t)
{
    return t->params.measuring > 0 && t->watch.timed > t->params.measuring;
}

static qn_status measure(struct tuner *t, const struct qn_contest_params *contest,
                         struct qn_tune_task *task)
{
    struct qn_rig_run run;
    const qn_status status = qn_contest_measure(contest, task, &run);
    if (status != QN_OK)
        return status == QN_ERR_BUDGET ? QN_OK : status;
    const bool alone = qn_contest_has_choice(task, candidates_of(t, task));
    return run.seconds <= 0 || note(t, task, &run, alone) ? QN_OK : out_of_memory(t);
}

/* --- variants that the plan might take instead --- */

static bool wants_search(const struct tuner *t, const struct qn_tune_task *task)
{
    const struct qn_tuned *entry = known(t, task);
    const bool settled = entry && !entry->alone && (!t->params.all || entry->thorough);
    return !settled && (t->params.all || qn_contest_has_choice(task, candidates_of(t, task)));
}

static bool has_searched_enough(void *tuner)
{
    const struct tuner *t = tuner;
    const double limit = t->params.seconds;
    return limit < 0 ||
           (limit > 0 && (t->watch.timed - t->searching.timed > limit ||
                          t->watch.compiled - t->searching.compiled > compiling * limit));
}

static qn_status search(struct tuner *t, const struct qn_contest_params *contest,
                        struct qn_tune_task *task)
{
    struct qn_rig_run run;
    const qn_status status = qn_contest_run(contest, task, candidates_of(t, task), &run);
    if (status != QN_OK)
        return status == QN_ERR_BUDGET ? QN_OK : status;
    /* A contest that was stopped or ran out of time did not time every candidate. */
    const bool whole = !t->watch.stopped && !has_searched_enough(t);
    return run.seconds <= 0 || note(t, task, &run, !whole) ? QN_OK : out_of_memory(t);
}

/* --- the whole --- */

static qn_status tune_all(struct tuner *t)
{
    const struct qn_contest_params contest = {.device = t->device,
                                              .tuning = &t->tuning,
                                              .budget = t->budget,
                                              .watch = &t->watch,
                                              .over = has_searched_enough,
                                              .user = t};
    struct qn_tune_task *tasks = t->tasks.list;
    for (int i = 0; i < t->tasks.count; i++)
        t->total += wants_measure(t, &tasks[i]) + wants_search(t, &tasks[i]);
    for (int i = 0; i < t->tasks.count && !has_measured_enough(t); i++) {
        if (!wants_measure(t, &tasks[i]) || qn_watch_stops(&t->watch))
            continue;
        tell(t, tasks[i].key);
        QN_TRY(measure(t, &contest, &tasks[i]));
        t->done++;
    }
    t->searching = t->watch;
    for (int i = 0; i < t->tasks.count && !has_searched_enough(t); i++) {
        if (!wants_search(t, &tasks[i]) || qn_watch_stops(&t->watch))
            continue;
        tell(t, tasks[i].key);
        QN_TRY(search(t, &contest, &tasks[i]));
        t->done++;
    }
    tell(t, "");
    return QN_OK;
}

/* Only plans that may park values need the times of transfers; they are measured once for a device.
 */
static qn_status tune_transfers(struct tuner *t, const struct qn_plan *plan)
{
    if (!plan->params.park || t->tuning.transfers.to_host > 0)
        return QN_OK;
    const qn_status status = qn_measure_transfers(t->device, t->budget, &t->tuning.transfers);
    t->result.changed |= status == QN_OK;
    return status == QN_ERR_BUDGET ? QN_OK : status;
}

/* Whether a variant has failed a self-test or cannot be launched since there were `before` tests.
 */
static bool has_left_out(const struct qn_tuning *tuning, int before)
{
    for (int i = before; i < tuning->n_tests; i++)
        if (*tuning->tests[i].reason)
            return true;
    return false;
}

static qn_status tune(struct tuner *t, const struct qn_plan *plan, struct qn_arena *arena,
                      char **text)
{
    QN_TRY(qn_tuning_open(&t->tuning, t->device, t->params.known));
    const int tests = t->tuning.n_tests;
    QN_TRY(tune_transfers(t, plan));
    if (!qn_tune_tasks_of(plan, arena, &t->tasks))
        return out_of_memory(t);
    QN_TRY(tune_all(t));
    const struct qn_kept kept = {qn_plan_training(plan), plan->info.micro_batch};
    if (t->result.changed && !plan->params.micro_batch && !qn_tuning_keep(&t->tuning, &kept))
        return out_of_memory(t);
    t->result.changed |= has_left_out(&t->tuning, tests);
    *text = qn_tuning_text(&t->tuning);
    return *text ? QN_OK : out_of_memory(t);
}

qn_status qn_tune(qn_device *device, const qn_plan *plan, const qn_tune_params *params,
                  char **tuning, qn_tune_result *result)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), plan && tuning);
    const char *wishes = plan->params.variants;
    struct tuner tuner = {.device = device,
                          .log = qn_device_log(device),
                          .budget = plan->params.budget,
                          .wishes = wishes && *wishes};
    struct qn_arena arena = {0};
    if (params)
        tuner.params = *params;
    tuner.watch = (struct qn_watch){.stop = tuner.params.stop, .user = tuner.params.user};
    *tuning = NULL;
    qn_status status = tune(&tuner, plan, &arena, tuning);
    if (result)
        *result = tuner.result;
    qn_tuning_free(&tuner.tuning);
    qn_arena_free(&arena);
    return status;
}
