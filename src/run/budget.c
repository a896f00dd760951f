/* SPDX-License-Identifier: MIT
 *
 * Another budget in the middle of a training: the plan is made again, and what outlives an update
 * moves through the host, so that the buffers of both plans never stand on the device together.
 */
#include "base/log.h"
#include "plan/runs.h"
#include "run/trainer.h"

#include <stdlib.h>

/* Values that stand alone and live as long as the run. Both plans have the same ones in the same
 * order: neither budget nor micro-batch matters to them. Only the optimizer's tables differ where
 * one plan has early updates. */
static bool moves(const struct qn_value *value)
{
    return value->life == QN_LIFE_TRAINING && value->block < 0;
}

static int64_t moved_bytes(const struct qn_persist *persist)
{
    int64_t bytes = 0;
    for (int v = 0; v < persist->n_values; v++)
        bytes += moves(&persist->values[v]) ? persist->values[v].bytes : 0;
    return bytes;
}

static qn_status read_all(struct qn_trainer *trainer, unsigned char *host)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int v = 0; v < persist->n_values; v++) {
        if (!moves(&persist->values[v]))
            continue;
        QN_TRY(qn_trainer_read_value(trainer, v, 0, host, persist->values[v].bytes));
        host += persist->values[v].bytes;
    }
    return QN_OK;
}

static qn_status write_all(struct qn_trainer *trainer, const unsigned char *host)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int v = 0; v < persist->n_values; v++) {
        if (!moves(&persist->values[v]))
            continue;
        QN_TRY(qn_trainer_write_value(trainer, v, 0, host, persist->values[v].bytes));
        host += persist->values[v].bytes;
    }
    QN_TRY(qn_trainer_write_tables(trainer));
    return qn_trainer_check(trainer, qn_device_finish(trainer->device));
}

static qn_status open_with(struct qn_trainer *trainer, const struct qn_plan *plan,
                           const unsigned char *host)
{
    trainer->plan = plan;
    qn_status status = qn_trainer_open_plan(trainer);
    if (status == QN_OK)
        status = write_all(trainer, host);
    if (status != QN_OK)
        qn_trainer_close_plan(trainer);
    return status;
}

/* Where the new plan cannot be opened, the old one is opened again: there was room for it. */
static qn_status change_plan(struct qn_trainer *trainer, const struct qn_plan *plan,
                             const unsigned char *host)
{
    const struct qn_plan *old = trainer->plan;
    qn_trainer_close_plan(trainer);
    const qn_status status = open_with(trainer, plan, host);
    if (status == QN_OK)
        return status;
    trainer->plan = old; /* even where nothing works any more: the caller frees the new one */
    if (trainer->failed)
        return status;
    const qn_status again = open_with(trainer, old, host);
    trainer->failed = again;
    return again == QN_OK ? status : again;
}

static qn_status move_to(struct qn_trainer *trainer, const struct qn_plan *plan)
{
    unsigned char *host = malloc((size_t)moved_bytes(&trainer->plan->persist) + 1);
    if (!host)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "budget: out of host memory");
    qn_status status = read_all(trainer, host);
    if (status == QN_OK)
        status = change_plan(trainer, plan, host);
    free(host);
    return status;
}

qn_status qn_trainer_set_budget(qn_trainer *trainer, int64_t budget)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, budget > 0);
    qn_plan_params params = trainer->plan->params;
    struct qn_runs_again again;
    qn_plan *plan;
    params.budget = budget;
    params.early_updates &= !(trainer->params.clip > 0);
    qn_runs_again(trainer->plan, &again);
    QN_TRY(qn_plan_create_runs(&plan, &again.list, &trainer->plan->facts, &params, NULL));
    qn_status status = qn_trainer_check(trainer, qn_trainer_settle(trainer));
    if (status == QN_OK)
        status = qn_trainer_check(trainer, qn_device_finish(trainer->device));
    if (status == QN_OK)
        status = move_to(trainer, plan);
    if (status != QN_OK) {
        qn_plan_destroy(&plan);
        return status;
    }
    qn_plan_destroy(&trainer->own);
    trainer->own = plan;
    return QN_OK;
}
