/* SPDX-License-Identifier: MIT
 *
 * Reading and writing what a trainer holds, and evaluation.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <inttypes.h>
#include <string.h>

const char *qn_trainer_tensor(const qn_trainer *trainer, int index, qn_shape *shape)
{
    char text[128];
    struct qn_named named;
    if (!trainer || index < 0 || !qn_trainer_named(trainer, index, text, &named))
        return NULL;
    if (shape)
        *shape = named.shape;
    return trainer->tensor_names[index];
}

static qn_status find(struct qn_trainer *trainer, const char *name, int64_t count,
                      struct qn_named *named, char text[128])
{
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, name);
    for (int i = 0; qn_trainer_named(trainer, i, text, named); i++) {
        if (strcmp(named->name, name) != 0)
            continue;
        if (count != qn_shape_count(&named->shape))
            return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                           "%s: has %" PRId64 " elements, not %" PRId64, name,
                           qn_shape_count(&named->shape), count);
        return QN_OK;
    }
    return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "%s: no such parameter or state", name);
}

qn_status qn_trainer_read(qn_trainer *trainer, const char *name, float *values, int64_t count)
{
    char text[128];
    struct qn_named named;
    QN_REQUIRE(NULL, trainer && values);
    QN_TRY(find(trainer, name, count, &named, text));
    return qn_trainer_read_numbers(trainer, named.value, values, count);
}

qn_status qn_trainer_write(qn_trainer *trainer, const char *name, const float *values,
                           int64_t count)
{
    char text[128];
    struct qn_named named;
    QN_REQUIRE(NULL, trainer && values);
    QN_TRY(find(trainer, name, count, &named, text));
    return qn_trainer_write_numbers(trainer, named.value, values, count);
}

/* The accumulators hold the gradient times the loss scale, a power of two. */
static qn_status read_unscaled(struct qn_trainer *trainer, int value, float *values, int64_t count)
{
    float scale;
    const int64_t at = (int64_t)offsetof(struct qn_control, loss_scale);
    QN_TRY(qn_trainer_read_value(trainer, value, 0, values, count * (int64_t)sizeof *values));
    QN_TRY(
        qn_trainer_read_value(trainer, trainer->plan->persist.control, at, &scale, sizeof scale));
    for (int64_t i = 0; i < count; i++)
        values[i] /= scale;
    return QN_OK;
}

qn_status qn_trainer_read_gradient(qn_trainer *trainer, const char *parameter, float *values,
                                   int64_t count)
{
    char text[128];
    struct qn_named named;
    QN_REQUIRE(NULL, trainer && values);
    QN_TRY(find(trainer, parameter, count, &named, text));
    const struct qn_persist *persist = &trainer->plan->persist;
    if (persist->early)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "%s: the plan's early_updates leave no gradient", parameter);
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].value == named.value && persist->parameters[p].trainable)
            return read_unscaled(trainer, persist->parameters[p].gradient, values, count);
    return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                   "%s: has no gradient: it is no parameter, frozen, or reached by no loss",
                   parameter);
}

/* The first evaluation, or that of the name; -1: there is none. */
static int find_evaluation(const struct qn_trainer *trainer, const char *name)
{
    const struct qn_run_set *runs = &trainer->plan->runs;
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what == QN_RUN_EVALUATE && (!name || strcmp(runs->run[r].name, name) == 0))
            return trainer->plan->program.evaluation[r];
    return -1;
}

static qn_status run_evaluation(struct qn_trainer *trainer, int phase, int64_t samples,
                                qn_fetch_fn fetch, qn_result_fn result, void *user)
{
    const int64_t size = trainer->plan->program.phases[phase].problem->batch;
    if (qn_averages_are_parted(trainer) && !trainer->covered)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "evaluate: each member has a part of the averages; qn_group_show_averages");
    QN_TRY(qn_trainer_check(trainer, qn_trainer_settle(trainer)));
    for (int64_t first = 0; first < samples; first += size) {
        int64_t left = samples - first;
        const struct qn_feed feed = {fetch, result, user, first, left < size ? left : size};
        QN_TRY(qn_trainer_check(trainer, qn_trainer_run_phase(trainer, phase, &feed)));
    }
    return qn_trainer_check(trainer, qn_device_finish(trainer->device));
}

qn_status qn_trainer_evaluate(qn_trainer *trainer, int64_t samples, qn_fetch_fn fetch,
                              qn_result_fn result, void *user)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, fetch && samples > 0);
    const int phase = find_evaluation(trainer, NULL);
    if (phase < 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "evaluate: the graph has no outputs");
    return run_evaluation(trainer, phase, samples, fetch, result, user);
}

qn_status qn_trainer_evaluate_run(qn_trainer *trainer, const char *run, int64_t samples,
                                  qn_fetch_fn fetch, qn_result_fn result, void *user)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, run && fetch && samples > 0);
    const int phase = find_evaluation(trainer, run);
    if (phase < 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "%s: no run of kind QN_RUN_EVALUATE", run);
    return run_evaluation(trainer, phase, samples, fetch, result, user);
}
