/* SPDX-License-Identifier: MIT
 *
 * One update: weights first, then the micro-steps, then the update; nobody waits for the device.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct qn_cycle_plan *find_cycle(const struct qn_trainer *trainer, int64_t samples)
{
    const struct qn_program *program = &trainer->plan->program;
    for (int i = 0; i < program->n_cycles; i++)
        if (program->cycles[i].batch == samples)
            return &program->cycles[i];
    return NULL;
}

static qn_status begin(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                       const struct qn_cycle_plan **plan)
{
    if (trainer->failed)
        return trainer->failed;
    QN_REQUIRE(&trainer->log, cycle && cycle->fetch);
    QN_REQUIRE(&trainer->log, cycle->lr >= 0 && isfinite((float)cycle->lr));
    *plan = find_cycle(trainer, cycle->samples);
    if (!*plan)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "step: %" PRId64 " samples are not an effective batch of the plan",
                       cycle->samples);
    return QN_OK;
}

/* --- the control block --- */

static float loss_seed(const struct qn_graph_loss *loss, double weight)
{
    return weight == 0 ? 0.0f : (float)(loss->coefficient / weight);
}

static bool weightless(const struct qn_trainer *trainer, const double *weight)
{
    for (int i = 0; i < trainer->plan->graph->n_losses; i++)
        if (weight[i] != 0)
            return false;
    return true;
}

static qn_status send_control(struct qn_trainer *trainer, struct qn_update_slot *slot,
                              const struct qn_cycle *cycle)
{
    const qn_graph *graph = trainer->plan->graph;
    uint64_t seed = trainer->params.seed;
    slot->out = (struct qn_control){.seed_lo = (uint32_t)seed,
                                    .seed_hi = (uint32_t)(seed >> 32),
                                    .update = (uint32_t)trainer->updates,
                                    .samples = (float)cycle->samples,
                                    .lr = (float)cycle->lr,
                                    .clip = (float)trainer->params.clip,
                                    .weight_decay = (float)trainer->params.weight_decay};
    for (int i = 0; i < graph->n_losses; i++)
        slot->out.loss_seed[i] = loss_seed(&graph->losses[i], slot->weight[i]);
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    return qn_slab_write(trainer->slab, place.buffer, place.offset, &slot->out,
                         (int64_t)offsetof(struct qn_control, loss_scale), &slot->write);
}

static qn_status ask_control(struct qn_trainer *trainer, struct qn_update_slot *slot)
{
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    return qn_slab_read(trainer->slab, place.buffer, place.offset, &slot->in, sizeof slot->in,
                        &slot->read);
}

/* --- metrics --- */

static void sum_losses(const struct qn_trainer *trainer, struct qn_update_slot *slot)
{
    const qn_graph *graph = trainer->plan->graph;
    struct qn_metrics *m = &slot->metrics;
    for (int i = 0; i < graph->n_losses; i++) {
        m->losses[i] = slot->weight[i] == 0 ? NAN : slot->in.loss[i] / slot->weight[i];
        if (slot->weight[i] != 0)
            m->loss += graph->losses[i].coefficient * m->losses[i];
    }
}

/* Waits for the metrics of a slot, if it has any, and gives them. */
static qn_status collect(struct qn_trainer *trainer, struct qn_update_slot *slot,
                         struct qn_metrics *metrics)
{
    if (!slot->pending) {
        if (metrics)
            *metrics = (struct qn_metrics){0};
        return QN_OK;
    }
    slot->pending = false;
    QN_TRY(qn_transfer_wait(trainer->device, &slot->write));
    QN_TRY(qn_transfer_wait(trainer->device, &slot->read));
    if (!slot->metrics.skipped) {
        slot->metrics.grad_norm = slot->in.grad_norm;
        slot->metrics.skipped = slot->in.skip != 0;
    }
    sum_losses(trainer, slot);
    slot->metrics.valid = true;
    if (metrics)
        *metrics = slot->metrics;
    return QN_OK;
}

/* --- micro-steps --- */

static qn_status run_micro_steps(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                                 const struct qn_cycle_plan *plan)
{
    int64_t size = trainer->plan->info.micro_batch;
    struct qn_feed feed = {.fetch = cycle->fetch, .user = cycle->user, .count = size};
    for (int64_t i = 0; i < plan->micro_steps; i++, feed.first += size)
        QN_TRY(qn_trainer_run_phase(trainer, i ? plan->later : plan->first, &feed));
    feed.count = plan->remainder;
    return plan->remainder ? qn_trainer_run_phase(trainer, plan->rest, &feed) : QN_OK;
}

static qn_status step(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                      const struct qn_cycle_plan *plan, struct qn_update_slot *slot)
{
    const struct qn_feed none = {.count = 1};
    slot->metrics =
        (struct qn_metrics){.update = trainer->updates, .samples = cycle->samples, .lr = cycle->lr};
    QN_TRY(qn_trainer_weigh(trainer, cycle, slot->weight));
    if (weightless(trainer, slot->weight)) {
        slot->metrics.skipped = true;
        qn_log_write(&trainer->log, QN_LOG_WARNING,
                     "update %" PRId64 ": nothing in the batch has weight; it is skipped",
                     trainer->updates);
        return QN_OK;
    }
    QN_TRY(send_control(trainer, slot, cycle));
    QN_TRY(run_micro_steps(trainer, cycle, plan));
    QN_TRY(qn_trainer_run_phase(trainer, trainer->plan->program.update, &none));
    return ask_control(trainer, slot);
}

static qn_status accumulate(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                            const struct qn_cycle_plan *plan, struct qn_update_slot *slot)
{
    QN_TRY(qn_trainer_weigh(trainer, cycle, slot->weight));
    QN_TRY(send_control(trainer, slot, cycle));
    QN_TRY(run_micro_steps(trainer, cycle, plan));
    QN_TRY(qn_transfer_wait(trainer->device, &slot->write));
    return qn_device_finish(trainer->device);
}

/* What a cycle gave; one that failed leaves nothing under way in its slot. */
static qn_status end_cycle(struct qn_trainer *trainer, struct qn_update_slot *slot,
                           qn_status status)
{
    if (status == QN_OK)
        return QN_OK;
    qn_trainer_check(trainer, qn_transfer_wait(trainer->device, &slot->write));
    qn_trainer_check(trainer, qn_transfer_wait(trainer->device, &slot->read));
    return qn_trainer_check(trainer, status);
}

qn_status qn_trainer_step(qn_trainer *trainer, const qn_cycle *cycle, qn_metrics *previous)
{
    const struct qn_cycle_plan *plan;
    if (!trainer)
        return QN_ERR_ARGUMENT;
    QN_TRY(begin(trainer, cycle, &plan));
    struct qn_update_slot *slot = &trainer->slots[trainer->updates % QN_STAGES];
    struct qn_update_slot *before = &trainer->slots[(trainer->updates + 1) % QN_STAGES];
    QN_TRY(qn_trainer_check(trainer, collect(trainer, slot, NULL)));
    QN_TRY(end_cycle(trainer, slot, step(trainer, cycle, plan, slot)));
    slot->pending = true;
    trainer->updates++;
    return qn_trainer_check(trainer, collect(trainer, before, previous));
}

qn_status qn_trainer_finish(qn_trainer *trainer, qn_metrics *last)
{
    if (!trainer)
        return QN_ERR_ARGUMENT;
    if (trainer->failed)
        return trainer->failed;
    struct qn_update_slot *slot = &trainer->slots[(trainer->updates + 1) % QN_STAGES];
    QN_TRY(qn_trainer_check(trainer, collect(trainer, slot, last)));
    return qn_trainer_check(trainer, qn_device_finish(trainer->device));
}

qn_status qn_trainer_accumulate(qn_trainer *trainer, const qn_cycle *cycle)
{
    const struct qn_cycle_plan *plan;
    if (!trainer)
        return QN_ERR_ARGUMENT;
    QN_TRY(begin(trainer, cycle, &plan));
    if (trainer->plan->persist.early)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "accumulate: the plan's early_updates leave no gradient");
    QN_TRY(qn_trainer_check(trainer, qn_device_finish(trainer->device)));
    struct qn_update_slot *slot = &trainer->slots[trainer->updates % QN_STAGES];
    return end_cycle(trainer, slot, accumulate(trainer, cycle, plan, slot));
}
