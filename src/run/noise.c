/* SPDX-License-Identifier: MIT
 *
 * The gradient of a cycle's first micro-step by itself, whose norm beside that of the whole cycle
 * tells how noisy gradients are. It is taken before the second micro-step, while the accumulators
 * hold nothing else, by the launches that the update begins with: the norms of all chunks. The
 * bytes where the update has them are free then, since between micro-steps nothing lives but what
 * is persistent.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

qn_status qn_noise_open(struct qn_trainer *trainer)
{
    const size_t chunks = (size_t)trainer->plan->persist.n_chunks;
    for (int i = 0; i < QN_STAGES; i++) {
        trainer->records[i].noise.norms = qn_arena_new(&trainer->plan_arena, float, chunks + 1);
        if (!trainer->records[i].noise.norms)
            return qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
    }
    return QN_OK;
}

/* Steps with which the update begins that take norms of chunks. */
static int norm_steps(const struct qn_phase_run *update)
{
    int count = 0;
    while (count < update->n_steps) {
        const struct qn_task *task = &update->problem->tasks[update->steps[count].task];
        if (task->kind != QN_TASK_GROUP || strcmp(task->op->name, "gradient_norm_partial") != 0)
            break;
        count++;
    }
    return count;
}

qn_status qn_noise_ask(struct qn_trainer *trainer, struct qn_update_record *record)
{
    const struct qn_program *program = &trainer->plan->program;
    const struct qn_phase_run *update = &program->phases[program->update];
    const struct qn_phase_recording *recorded = &trainer->phases[program->update];
    const int64_t bytes = trainer->plan->persist.n_chunks * (int64_t)sizeof *record->noise.norms;
    const int steps = norm_steps(update);
    if (!steps)
        return QN_OK;
    const struct qn_storage *norms = &program->storages[update->steps[0].write[0]];
    const struct qn_place_of control = qn_trainer_place(trainer, trainer->plan->persist.control);
    record->noise.pending = true;
    record->metrics.micro_samples = trainer->plan->info.micro_batch;
    QN_TRY(qn_recording_run(recorded->recording, 0, recorded->first_launch[steps]));
    QN_TRY(qn_slab_read(trainer->slab, norms->pool, norms->offset, record->noise.norms, bytes,
                        &record->noise.read[0]));
    return qn_slab_read(trainer->slab, control.buffer,
                        control.offset + (int64_t)offsetof(struct qn_control, loss_scale),
                        &record->noise.loss_scale, sizeof record->noise.loss_scale,
                        &record->noise.read[1]);
}

qn_status qn_noise_collect(struct qn_trainer *trainer, struct qn_update_record *record)
{
    struct qn_metrics *m = &record->metrics;
    double sum = 0;
    if (!record->noise.pending)
        return QN_OK;
    record->noise.pending = false;
    const qn_status norms = qn_transfer_wait(trainer->device, &record->noise.read[0]);
    const qn_status scale = qn_transfer_wait(trainer->device, &record->noise.read[1]);
    for (int64_t i = 0; i < trainer->plan->persist.n_chunks; i++)
        sum += (double)record->noise.norms[i] * record->noise.norms[i];
    m->micro_norm =
        sqrt(sum) / record->noise.loss_scale * ((double)m->samples / (double)m->micro_samples);
    return norms == QN_OK ? scale : norms;
}
