/* SPDX-License-Identifier: MIT
 *
 * From a plan's steps to recorded launches, and running them.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <stddef.h>
#include <string.h>

/* Address of a value inside its storage: blocks hold several values. */
static void set_address(const struct qn_trainer *trainer, const struct qn_problem *problem,
                        int value, int storage, struct qn_operand *operand)
{
    struct qn_place_of place = qn_trainer_storage_place(trainer, storage);
    int64_t inside = problem->values[value].block >= 0 ? problem->values[value].block_offset : 0;
    operand->buffer = place.buffer;
    operand->offset = (place.offset + inside) / qn_dtype_size(operand->dtype);
}

static void bind_control(const struct qn_trainer *trainer, struct qn_operand *control)
{
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    control->buffer = place.buffer;
    control->offset = place.offset / qn_dtype_size(control->dtype);
}

static void bind_call(const struct qn_trainer *trainer, const struct qn_phase_run *phase,
                      const struct qn_step *step, struct qn_call *call)
{
    const struct qn_problem *problem = phase->problem;
    const struct qn_task *task = &problem->tasks[step->task];
    qn_task_call(problem, task, phase->first, call);
    for (int i = 0; i < task->n_reads; i++)
        set_address(trainer, problem, task->reads[i].value, step->read[i],
                    qn_call_operand(call, task->reads[i].ref));
    for (int i = 0; i < task->n_writes; i++)
        set_address(trainer, problem, task->writes[i].value, step->write[i],
                    qn_call_operand(call, task->writes[i].ref));
    if (step->scratch >= 0) {
        struct qn_place_of place = qn_trainer_storage_place(trainer, step->scratch);
        call->scratch.buffer = place.buffer;
        call->scratch.offset = place.offset / (int64_t)sizeof(float);
    }
    bind_control(trainer, &call->control);
}

static qn_status record_step(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                             struct qn_recording *recording, const struct qn_step *step)
{
    const struct qn_task *task = &phase->problem->tasks[step->task];
    if (task->kind != QN_TASK_GROUP)
        return QN_OK;
    struct qn_call call;
    bind_call(trainer, phase, step, &call);
    return task->group->variant[task->variant].emit(qn_recording_emit(recording, task->name),
                                                    &call);
}

static qn_status record_phase(struct qn_trainer *trainer, int number)
{
    const struct qn_phase_run *phase = &trainer->plan->program.phases[number];
    struct qn_phase_recording *out = &trainer->phases[number];
    out->first_launch = qn_arena_new(&trainer->plan_arena, int, (size_t)phase->n_steps + 1);
    if (!out->first_launch ||
        !qn_parking_lay(&trainer->plan->program, phase, &trainer->plan_arena, &out->parking))
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
    out->n_complete = qn_slices_find(phase, &trainer->plan_arena, &out->complete);
    if (out->n_complete < 0)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
    QN_TRY(qn_recording_open(&out->recording, trainer->slab));
    qn_recording_set_blas_buffer(out->recording, trainer->blas_buffer);
    for (int i = 0; i < phase->n_steps; i++) {
        out->first_launch[i] = qn_recording_count(out->recording);
        QN_TRY(record_step(trainer, phase, out->recording, &phase->steps[i]));
    }
    out->first_launch[phase->n_steps] = qn_recording_count(out->recording);
    return QN_OK;
}

qn_status qn_trainer_record(struct qn_trainer *trainer)
{
    for (int p = 0; p < trainer->plan->program.n_phases; p++)
        QN_TRY(record_phase(trainer, p));
    return QN_OK;
}

/* --- running --- */

/* Whether the phase, or the one whose values it goes on with, makes the storage. */
static bool makes(const struct qn_program *program, const struct qn_phase_run *phase, int storage)
{
    const struct qn_phase_run *before = phase->before < 0 ? phase : &program->phases[phase->before];
    return storage >= before->first_storage && storage < phase->first_storage + phase->n_storages;
}

/* Fills all that has just died with NaN. What outlives a phase stays until the update, the phase
 * may run again. */
static qn_status poison_dead(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                             int index)
{
    const uint32_t quiet_nan = 0x7fc00000u;
    const struct qn_program *program = &trainer->plan->program;
    for (int i = 0; i < program->n_storages; i++) {
        const struct qn_storage *s = &program->storages[i];
        const bool dies = makes(program, phase, i) || phase->kind == QN_UPDATE_PHASE;
        if (dies && s->end == phase->start + index && s->end + 1 < program->length && s->bytes)
            QN_TRY(qn_slab_fill(trainer->slab, s->pool, s->offset, s->bytes, quiet_nan));
    }
    return QN_OK;
}

static int64_t row_bytes(const struct qn_operand *operand, int64_t batch)
{
    return qn_operand_bytes(operand) / batch;
}

/* Copies the last row over the rows that the batch has and the data has not. */
static void repeat_last(unsigned char *rows, int64_t row, int64_t have, int64_t want)
{
    for (int64_t i = have; i < want; i++)
        memcpy(rows + i * row, rows + (have - 1) * row, (size_t)row);
}

static qn_status upload(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                        const struct qn_step *step, const struct qn_feed *feed,
                        struct qn_stage *stage)
{
    const struct qn_task *task = &phase->problem->tasks[step->task];
    const struct qn_operand *operand = &task->writes[0].operand;
    int64_t batch = phase->problem->batch, row = row_bytes(operand, batch);
    unsigned char *rows = stage->rows + trainer->input_at[qn_graph_of(phase->problem)][task->node];
    qn_status status =
        feed->fetch(feed->user, task->name, feed->base + feed->first, feed->count, rows);
    if (status != QN_OK)
        return qn_fail(&trainer->log, status, "%s: its data could not be fetched", task->name);
    repeat_last(rows, row, feed->count, batch);
    struct qn_place_of place = qn_trainer_storage_place(trainer, step->write[0]);
    return qn_slab_write(trainer->slab, place.buffer, place.offset, rows, row * batch,
                         &stage->transfers[stage->n_transfers++]);
}

static qn_status download(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                          const struct qn_step *step, const struct qn_feed *feed)
{
    const struct qn_task *task = &phase->problem->tasks[step->task];
    const struct qn_operand *operand = &task->reads[0].operand;
    struct qn_place_of place = qn_trainer_storage_place(trainer, step->read[0]);
    QN_TRY(qn_slab_read(trainer->slab, place.buffer, place.offset, trainer->results,
                        qn_operand_bytes(operand), NULL));
    return feed->result
               ? feed->result(feed->user, phase->problem->bound->graph->outputs[task->output].name,
                              feed->first, feed->count, trainer->results)
               : QN_OK;
}

/* Tells the kernels which samples of the cycle these are, and where their rows go in cells. */
static qn_status send_start(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                            const struct qn_feed *feed, struct qn_stage *stage)
{
    const int64_t at = (int64_t)offsetof(struct qn_control, sample);
    struct qn_place_of place = qn_trainer_place(trainer, trainer->plan->persist.control);
    stage->start.sample = (uint32_t)(feed->base + feed->first);
    QN_TRY(qn_cells_begin(trainer, phase, feed, &stage->start));
    return qn_slab_write(trainer->slab, place.buffer, place.offset + at, &stage->start,
                         sizeof stage->start, &stage->transfers[stage->n_transfers++]);
}

/* Steps one by one, where somebody looks at what is between them. */
static bool runs_alone(const struct qn_trainer *trainer)
{
    return trainer->params.poison || trainer->profile;
}

static qn_status end_step(struct qn_trainer *trainer, int number, int index, double begin)
{
    if (trainer->profile)
        QN_TRY(qn_trainer_report_step(trainer, number, index, begin));
    return trainer->params.poison
               ? poison_dead(trainer, &trainer->plan->program.phases[number], index)
               : QN_OK;
}

/* A phase on its way. */
struct running {
    struct qn_trainer *trainer;
    int number;
    const struct qn_phase_run *phase;
    const struct qn_phase_recording *recorded;
    const struct qn_feed *feed;
    struct qn_stage *stage;
    bool alone;
    int done;  /* launches that were enqueued */
    int begun; /* slices, where somebody is told of them */
};

/* Enqueues all launches before step `step`. */
static qn_status launch_until(struct running *r, int step)
{
    const int first = r->done, last = r->recorded->first_launch[step];
    r->done = last > first ? last : first;
    return last > first ? qn_recording_run(r->recorded->recording, first, last) : QN_OK;
}

/* What is no launch. */
static qn_status run_transfer(struct running *r, int index)
{
    const struct qn_step *step = &r->phase->steps[index];
    const struct qn_task *task = &r->phase->problem->tasks[step->task];
    if (task->kind == QN_TASK_GROUP || (qn_task_parks(task) && !r->alone))
        return QN_OK;
    QN_TRY(launch_until(r, index));
    if (qn_task_parks(task))
        return qn_parking_run(r->trainer, r->number, r->stage, index);
    return task->kind == QN_TASK_UPLOAD ? upload(r->trainer, r->phase, step, r->feed, r->stage)
                                        : download(r->trainer, r->phase, step, r->feed);
}

/* What is parked beside the kernels, and how much of it is over, after step `index`. */
static qn_status park_beside(struct running *r, int index)
{
    if (r->alone || qn_parking_next(&r->recorded->parking, r->stage) > index)
        return QN_OK;
    QN_TRY(launch_until(r, index + 1));
    return qn_parking_pass(r->trainer, r->number, r->stage, index);
}

/* Begins the slices of gradients that are complete after step `index`. */
static qn_status begin_slices(struct running *r, int index)
{
    const struct qn_phase_recording *recorded = r->recorded;
    while (r->feed->reduce && r->begun < recorded->n_complete &&
           recorded->complete[r->begun].step == index) {
        QN_TRY(launch_until(r, index + 1));
        QN_TRY(
            qn_slices_begin(r->trainer, r->feed->reduce, recorded->complete[r->begun++].parameter));
    }
    return QN_OK;
}

static qn_status run_step(struct running *r, int index)
{
    const double begin = r->alone ? qn_clock() : 0;
    QN_TRY(run_transfer(r, index));
    QN_TRY(park_beside(r, index));
    QN_TRY(begin_slices(r, index));
    if (!r->alone)
        return QN_OK;
    QN_TRY(launch_until(r, index + 1));
    return end_step(r->trainer, r->number, index, begin);
}

static qn_status run_steps(struct qn_trainer *trainer, int number, const struct qn_feed *feed,
                           struct qn_stage *stage)
{
    struct running r = {.trainer = trainer,
                        .number = number,
                        .phase = &trainer->plan->program.phases[number],
                        .recorded = &trainer->phases[number],
                        .feed = feed,
                        .stage = stage,
                        .alone = runs_alone(trainer)};
    for (int i = -1; i < r.phase->n_steps; i++)
        QN_TRY(i < 0 ? park_beside(&r, i) : run_step(&r, i));
    return launch_until(&r, r.phase->n_steps);
}

qn_status qn_stage_wait(struct qn_trainer *trainer, struct qn_stage *stage)
{
    qn_status status = QN_OK;
    while (stage->n_transfers > 0) {
        qn_status one = qn_transfer_wait(trainer->device, &stage->transfers[--stage->n_transfers]);
        status = status == QN_OK ? one : status;
    }
    for (stage->awaited = 0; stage->begun > 0;) {
        qn_status one = qn_transfer_wait(trainer->device, &stage->parking[--stage->begun]);
        status = status == QN_OK ? one : status;
    }
    return status;
}

qn_status qn_trainer_run_phase(struct qn_trainer *trainer, int number, const struct qn_feed *feed)
{
    const struct qn_phase_run *phase = &trainer->plan->program.phases[number];
    struct qn_stage *stage = &trainer->stages[trainer->next_stage];
    trainer->next_stage = (trainer->next_stage + 1) % QN_STAGES;
    QN_TRY(qn_stage_wait(trainer, stage));
    if (phase->kind == QN_MICRO_PHASE ||
        (phase->kind == QN_EVALUATION_PHASE && trainer->plan->runs.n_cells))
        QN_TRY(send_start(trainer, phase, feed, stage));
    QN_TRY(run_steps(trainer, number, feed, stage));
    QN_TRY(qn_cells_end(trainer, phase, feed->count));
    return qn_device_flush(trainer->device);
}
