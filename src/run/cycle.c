/* SPDX-License-Identifier: MIT
 *
 * One update, in four calls: weigh, run, reduce, update. Nobody waits for the device, unless
 * members add up what each has computed.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static bool has_rows_of_samples(const struct qn_run_set *runs)
{
    for (int c = 0; c < runs->n_cells; c++)
        if (runs->cell[c].kind == QN_CELL_SAMPLES)
            return true;
    return false;
}

static int64_t whole_cycle(const struct qn_cycle *cycle)
{
    return cycle->whole ? cycle->whole : cycle->samples;
}

/* Where cells have rows for them, of as many samples of all members. */
static const struct qn_cycle_plan *find_cycle(const struct qn_trainer *trainer,
                                              const struct qn_cycle *cycle)
{
    const struct qn_program *program = &trainer->plan->program;
    const bool whole = has_rows_of_samples(&trainer->plan->runs);
    for (int i = 0; i < program->n_cycles; i++)
        if (program->cycles[i].batch == cycle->samples &&
            (!whole || program->cycles[i].whole == whole_cycle(cycle)))
            return &program->cycles[i];
    return NULL;
}

/* Whether the cycle is one that the trainer can run. */
static qn_status check_cycle(struct qn_trainer *trainer, const struct qn_cycle *cycle)
{
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, cycle && cycle->fetch);
    QN_REQUIRE(&trainer->log, cycle->lr >= 0 && isfinite((float)cycle->lr));
    QN_REQUIRE(&trainer->log, cycle->first >= 0 && cycle->first <= UINT32_MAX);
    QN_REQUIRE(&trainer->log, !cycle->whole || cycle->whole >= cycle->first + cycle->samples);
    if (trainer->plan->program.update < 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "step: the program trains nothing");
    if ((cycle->reduce || cycle->whole) && trainer->plan->persist.early)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "step: early_updates wait for no other members of the cycle");
    if (cycle->reduce && !cycle->reduce->rows && has_rows_of_samples(&trainer->plan->runs))
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "step: nobody brings the rows of the other members into cells of samples");
    if (!find_cycle(trainer, cycle) && (cycle->samples || !cycle->whole))
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "step: %" PRId64 " samples are not an effective batch of the plan",
                       cycle->samples);
    return QN_OK;
}

/* A member of those that share the optimizer's work cannot update alone. */
static qn_status check_others(const struct qn_trainer *trainer, const struct qn_cycle *cycle)
{
    const bool shared = trainer->plan->persist.shard.members;
    if (shared && !(cycle->reduce && cycle->reduce->norms && cycle->reduce->parameters))
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "step: the plan is that of a member who updates its own parameters alone; "
                       "qn_group_step");
    return QN_OK;
}

/* --- the control block --- */

static float loss_seed(const struct qn_plan_loss *loss, double weight)
{
    return weight == 0 ? 0.0f : (float)(loss->coefficient / weight);
}

static bool weightless(const struct qn_trainer *trainer, const double *weight)
{
    for (int i = 0; i < trainer->plan->n_losses; i++)
        if (weight[i] != 0)
            return false;
    return true;
}

static qn_status send_control(struct qn_trainer *trainer, struct qn_update_record *record,
                              const struct qn_cycle *cycle)
{
    const struct qn_plan *plan = trainer->plan;
    uint64_t seed = trainer->params.seed;
    record->out = (struct qn_control){.seed_lo = (uint32_t)seed,
                                      .seed_hi = (uint32_t)(seed >> 32),
                                      .update = (uint32_t)trainer->updates,
                                      .samples = (float)whole_cycle(cycle),
                                      .lr = (float)cycle->lr,
                                      .clip = (float)trainer->params.clip,
                                      .weight_decay = (float)trainer->params.weight_decay};
    for (int i = 0; i < plan->n_losses; i++)
        record->out.loss_seed[i] = loss_seed(&plan->losses[i], record->weight[i]);
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    return qn_slab_write(trainer->slab, place.buffer, place.offset, &record->out,
                         (int64_t)offsetof(struct qn_control, loss_scale), &record->write);
}

static qn_status ask_control(struct qn_trainer *trainer, struct qn_update_record *record)
{
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    return qn_slab_read(trainer->slab, place.buffer, place.offset, &record->in, sizeof record->in,
                        &record->read);
}

/* --- metrics --- */

static void sum_losses(const struct qn_trainer *trainer, struct qn_update_record *record)
{
    const struct qn_plan *plan = trainer->plan;
    struct qn_metrics *m = &record->metrics;
    for (int i = 0; i < plan->n_losses; i++) {
        m->losses[i] = record->weight[i] == 0 ? NAN : record->in.loss[i] / record->weight[i];
        if (record->weight[i] != 0)
            m->loss += plan->losses[i].coefficient * m->losses[i];
    }
}

/* Waits for what an update did. Where there are rings and it was skipped, they go back: no later
 * cycle has begun then, since each waits for the one before. */
static qn_status settle(struct qn_trainer *trainer, struct qn_update_record *record)
{
    if (record->settled)
        return QN_OK;
    QN_TRY(qn_transfer_wait(trainer->device, &record->write));
    QN_TRY(qn_transfer_wait(trainer->device, &record->read));
    QN_TRY(qn_norms_wait(trainer, record));
    QN_TRY(qn_noise_collect(trainer, record));
    record->settled = true;
    if (!record->metrics.skipped) {
        record->metrics.grad_norm = record->in.grad_norm;
        record->metrics.skipped = record->in.skip != 0;
    }
    sum_losses(trainer, record);
    record->metrics.valid = true;
    return trainer->rings && record->metrics.skipped ? qn_cells_go_back(trainer) : QN_OK;
}

static struct qn_update_record *last_record(struct qn_trainer *trainer)
{
    return &trainer->records[(trainer->updates + 1) % QN_STAGES];
}

qn_status qn_trainer_settle(struct qn_trainer *trainer)
{
    struct qn_update_record *record = last_record(trainer);
    return trainer->rings && record->pending ? settle(trainer, record) : QN_OK;
}

/* Waits for the metrics of an update record, if it has any, and gives them. */
static qn_status collect(struct qn_trainer *trainer, struct qn_update_record *record,
                         struct qn_metrics *metrics)
{
    if (!record->pending) {
        if (metrics)
            *metrics = (struct qn_metrics){0};
        return QN_OK;
    }
    record->pending = false;
    QN_TRY(settle(trainer, record));
    qn_norms_give(trainer, record);
    if (metrics)
        *metrics = record->metrics;
    return QN_OK;
}

/* --- the four calls --- */

static struct qn_update_record *present_record(struct qn_trainer *trainer)
{
    return &trainer->records[trainer->updates % QN_STAGES];
}

/* Ends one of the four calls with its status. After a failure no transfer of the update record is
 * under way, and the update begins anew. */
static qn_status end_call(struct qn_trainer *trainer, enum qn_stage_of_update next,
                          qn_status status)
{
    struct qn_update_record *record = present_record(trainer);
    trainer->stage_of_update = status == QN_OK ? next : QN_UPDATE_IDLE;
    if (status == QN_OK)
        return QN_OK;
    qn_trainer_check(trainer, qn_cells_go_back(trainer));
    qn_trainer_check(trainer, qn_transfer_wait(trainer->device, &record->write));
    qn_trainer_check(trainer, qn_transfer_wait(trainer->device, &record->read));
    qn_trainer_check(trainer, qn_norms_wait(trainer, record));
    qn_trainer_check(trainer, qn_noise_collect(trainer, record));
    return qn_trainer_check(trainer, status);
}

qn_status qn_trainer_weigh(qn_trainer *trainer, const qn_cycle *cycle,
                           double weights[QN_METRICS_LOSSES])
{
    QN_REQUIRE(NULL, trainer && weights);
    QN_TRY(check_cycle(trainer, cycle));
    return qn_trainer_check(trainer, qn_trainer_sum_weights(trainer, cycle, weights));
}

/* Members without samples add zeros. */
static qn_status run(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                     struct qn_update_record *record)
{
    const struct qn_cycle_plan *plan = find_cycle(trainer, cycle);
    QN_TRY(send_control(trainer, record, cycle));
    return plan ? qn_trainer_run_passes(trainer, cycle, plan, record) : qn_slices_clear(trainer);
}

qn_status qn_trainer_run(qn_trainer *trainer, const qn_cycle *cycle, const double *weights)
{
    QN_REQUIRE(NULL, trainer && weights);
    QN_TRY(check_cycle(trainer, cycle));
    QN_TRY(check_others(trainer, cycle));
    struct qn_update_record *record = present_record(trainer);
    QN_TRY(qn_trainer_check(trainer, collect(trainer, record, NULL)));
    QN_TRY(qn_trainer_check(trainer, qn_trainer_settle(trainer)));
    if (trainer->stage_of_update != QN_UPDATE_IDLE) {
        QN_TRY(qn_trainer_check(trainer, qn_transfer_wait(trainer->device, &record->write)));
        QN_TRY(qn_trainer_check(trainer, qn_cells_go_back(trainer)));
    }
    QN_TRY(qn_trainer_check(trainer, qn_cells_keep(trainer)));
    record->settled = false;
    memcpy(record->weight, weights, sizeof record->weight);
    record->metrics = (struct qn_metrics){.update = trainer->updates,
                                          .samples = whole_cycle(cycle),
                                          .lr = cycle->lr,
                                          .skipped = weightless(trainer, weights)};
    memset(record->norms.norm, 0, sizeof record->norms.norm);
    memset(trainer->begun, 0, (size_t)trainer->plan->persist.n_parameters * sizeof *trainer->begun);
    if (!record->metrics.skipped)
        return end_call(trainer, QN_UPDATE_RUN, run(trainer, cycle, record));
    trainer->stage_of_update = QN_UPDATE_RUN;
    qn_log_write(&trainer->log, QN_LOG_WARNING,
                 "update %" PRId64 ": nothing in the batch has weight; it is skipped",
                 trainer->updates);
    return QN_OK;
}

static qn_status reduce(struct qn_trainer *trainer, const qn_reduce *table)
{
    QN_TRY(qn_slices_begin_rest(trainer, table));
    return table->finish(table->user, trainer);
}

qn_status qn_trainer_reduce(qn_trainer *trainer, const qn_cycle *cycle)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(check_cycle(trainer, cycle));
    QN_REQUIRE(&trainer->log, trainer->stage_of_update == QN_UPDATE_RUN);
    if (!cycle->reduce || present_record(trainer)->metrics.skipped)
        return end_call(trainer, QN_UPDATE_REDUCED, QN_OK);
    return end_call(trainer, QN_UPDATE_REDUCED, reduce(trainer, cycle->reduce));
}

static qn_status update(struct qn_trainer *trainer, const struct qn_reduce *reduce,
                        struct qn_update_record *record)
{
    const struct qn_program *program = &trainer->plan->program;
    const struct qn_feed none = {.count = 1};
    if (record->metrics.skipped)
        return QN_OK;
    if (program->norms >= 0) {
        QN_TRY(qn_trainer_run_phase(trainer, program->norms, &none));
        QN_TRY(reduce->norms(reduce->user, trainer));
    }
    QN_TRY(qn_trainer_run_phase(trainer, program->update, &none));
    if (program->norms >= 0)
        QN_TRY(reduce->parameters(reduce->user, trainer));
    QN_TRY(ask_control(trainer, record));
    return qn_norms_ask(trainer, record);
}

qn_status qn_trainer_update(qn_trainer *trainer, const qn_cycle *cycle, qn_metrics *previous)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(check_cycle(trainer, cycle));
    QN_TRY(check_others(trainer, cycle));
    QN_REQUIRE(&trainer->log, trainer->stage_of_update == QN_UPDATE_REDUCED);
    struct qn_update_record *record = present_record(trainer);
    QN_TRY(end_call(trainer, QN_UPDATE_IDLE, update(trainer, cycle->reduce, record)));
    record->pending = true;
    trainer->updates++;
    return qn_trainer_check(trainer, collect(trainer, present_record(trainer), previous));
}

/* --- all of them --- */

static qn_status weigh_all(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                           double weights[QN_METRICS_LOSSES])
{
    QN_TRY(qn_trainer_weigh(trainer, cycle, weights));
    return cycle->reduce ? cycle->reduce->weights(cycle->reduce->user, weights, QN_METRICS_LOSSES)
                         : QN_OK;
}

qn_status qn_trainer_step(qn_trainer *trainer, const qn_cycle *cycle, qn_metrics *previous)
{
    double weights[QN_METRICS_LOSSES] = {0};
    QN_TRY(weigh_all(trainer, cycle, weights));
    QN_TRY(qn_trainer_run(trainer, cycle, weights));
    QN_TRY(qn_trainer_reduce(trainer, cycle));
    return qn_trainer_update(trainer, cycle, previous);
}

qn_status qn_trainer_finish(qn_trainer *trainer, qn_metrics *last)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_TRY(qn_trainer_check(trainer, collect(trainer, last_record(trainer), last)));
    return qn_trainer_check(trainer, qn_device_finish(trainer->device));
}

static qn_status accumulate(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                            struct qn_update_record *record)
{
    struct qn_cycle alone = *cycle;
    alone.measure_noise = false; /* there is no update whose metrics would tell it */
    QN_TRY(weigh_all(trainer, cycle, record->weight));
    QN_TRY(run(trainer, &alone, record));
    QN_TRY(qn_transfer_wait(trainer->device, &record->write));
    return qn_device_finish(trainer->device);
}

qn_status qn_trainer_accumulate(qn_trainer *trainer, const qn_cycle *cycle)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(check_cycle(trainer, cycle));
    if (trainer->plan->persist.early)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "accumulate: the plan's early_updates leave no gradient");
    QN_TRY(qn_trainer_check(trainer, qn_trainer_settle(trainer)));
    QN_TRY(qn_trainer_check(trainer, qn_device_finish(trainer->device)));
    QN_TRY(qn_trainer_check(trainer, qn_cells_keep(trainer)));
    QN_TRY(end_call(trainer, QN_UPDATE_IDLE, accumulate(trainer, cycle, present_record(trainer))));
    return qn_trainer_check(trainer, qn_cells_go_back(trainer));
}
