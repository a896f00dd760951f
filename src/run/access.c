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
    if (trainer->failed)
        return trainer->failed;
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
    if (!trainer || !values)
        return QN_ERR_ARGUMENT;
    QN_TRY(find(trainer, name, count, &named, text));
    return qn_trainer_read_value(trainer, named.value, 0, values, count * (int64_t)sizeof *values);
}

qn_status qn_trainer_write(qn_trainer *trainer, const char *name, const float *values,
                           int64_t count)
{
    char text[128];
    struct qn_named named;
    if (!trainer || !values)
        return QN_ERR_ARGUMENT;
    QN_TRY(find(trainer, name, count, &named, text));
    return qn_trainer_write_value(trainer, named.value, 0, values, count * (int64_t)sizeof *values);
}

qn_status qn_trainer_read_gradient(qn_trainer *trainer, const char *parameter, float *values,
                                   int64_t count)
{
    char text[128];
    struct qn_named named;
    if (!trainer || !values)
        return QN_ERR_ARGUMENT;
    QN_TRY(find(trainer, parameter, count, &named, text));
    const struct qn_persist *persist = &trainer->plan->persist;
    if (persist->early)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "%s: the plan's early_updates leave no gradient", parameter);
    for (int n = 0; n < persist->graph->n_nodes; n++)
        if (persist->leaf[n] == named.value && persist->gradient[n] >= 0)
            return qn_trainer_read_value(trainer, persist->gradient[n], 0, values,
                                         count * (int64_t)sizeof *values);
    return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                   "%s: has no gradient: it is no parameter, frozen, or reached by no loss",
                   parameter);
}

qn_status qn_trainer_evaluate(qn_trainer *trainer, int64_t samples, qn_fetch_fn fetch,
                              qn_result_fn result, void *user)
{
    if (!trainer)
        return QN_ERR_ARGUMENT;
    if (trainer->failed)
        return trainer->failed;
    QN_REQUIRE(&trainer->log, fetch && samples > 0);
    int phase = trainer->plan->program.evaluation;
    if (phase < 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "evaluate: the graph has no outputs");
    int64_t size = trainer->plan->info.micro_batch;
    for (int64_t first = 0; first < samples; first += size) {
        int64_t left = samples - first;
        const struct qn_feed feed = {fetch, result, user, first, left < size ? left : size};
        QN_TRY(qn_trainer_check(trainer, qn_trainer_run_phase(trainer, phase, &feed)));
    }
    return qn_trainer_check(trainer, qn_device_finish(trainer->device));
}
