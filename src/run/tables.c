/* SPDX-License-Identifier: MIT
 *
 * Tables of rings that forget: where rows were emptied, what the others know of them is made anew,
 * by the launches with which a micro-step does it for rows that it adds.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <stddef.h>

/* A step that keeps a table. */
struct keeper {
    int phase, step;
    const struct qn_task *task;
};

/* Whether the task keeps a table of which an input, of those in the mask, is ring c. */
static bool reads_ring(const struct qn_trainer *trainer, const struct qn_task *task, int c,
                       unsigned inputs)
{
    const int value = trainer->plan->persist.runs.cell[c].value;
    if (task->kind != QN_TASK_GROUP || !task->op->table)
        return false;
    for (int i = 0; i < task->n_reads; i++)
        if (task->reads[i].value == value && (inputs >> task->reads[i].ref.index & 1u))
            return true;
    return false;
}

static unsigned forgetting(const struct qn_task *task)
{
    return task->op->table ? task->op->table->forgets : 0;
}

/* Moves on to the next step whose table is of ring c; `k` begins with phase 0 and step -1. */
static bool find_next(const struct qn_trainer *trainer, int c, struct keeper *k)
{
    const struct qn_program *program = &trainer->plan->program;
    for (; k->phase < program->n_phases; k->phase++, k->step = -1) {
        const struct qn_phase_run *phase = &program->phases[k->phase];
        while (++k->step < phase->n_steps) {
            k->task = &phase->problem->tasks[phase->steps[k->step].task];
            if (reads_ring(trainer, k->task, c, ~0u))
                return true;
        }
    }
    return false;
}

bool qn_tables_let_forget(const struct qn_trainer *trainer, int c)
{
    struct keeper k = {.step = -1};
    while (find_next(trainer, c, &k))
        if (reads_ring(trainer, k.task, c, ~forgetting(k.task)))
            return false;
    return true;
}

/* As if the rows of a micro-step had come to `place`. */
static qn_status run_at(struct qn_trainer *trainer, const struct keeper *k, int slot, int64_t place)
{
    const struct qn_phase_recording *recorded = &trainer->phases[k->phase];
    const struct qn_place_of control = qn_trainer_place(trainer, trainer->plan->persist.control);
    const size_t at = offsetof(struct qn_control, position) + (size_t)slot * sizeof(uint32_t);
    QN_TRY(qn_slab_fill(trainer->slab, control.buffer, control.offset + (int64_t)at,
                        sizeof(uint32_t), (uint32_t)place));
    return qn_recording_run(recorded->recording, recorded->first_launch[k->step],
                            recorded->first_launch[k->step + 1]);
}

/* Each run sees to all stretches in which a micro-step's rows would be. */
static qn_status make_anew(struct qn_trainer *trainer, const struct keeper *k, int64_t first,
                           int64_t end)
{
    const struct qn_phase_run *phase = &trainer->plan->program.phases[k->phase];
    struct qn_call call;
    qn_task_call(phase->problem, k->task, phase->first, &call);
    const int64_t stretch = k->task->op->table->stretch(&call);
    for (int64_t place = first; place < end; place = qn_round_up(place + call.batch, stretch))
        QN_TRY(run_at(trainer, k, call.slot[0], place));
    return QN_OK;
}

/* Any phase that keeps the table will do: its scratch is free between two phases. */
qn_status qn_tables_forget(struct qn_trainer *trainer, int c, int64_t first, int64_t count)
{
    struct keeper k = {.step = -1};
    int phase = -1;
    while (find_next(trainer, c, &k) && (phase < 0 || k.phase == phase)) {
        QN_TRY(make_anew(trainer, &k, first, first + count));
        phase = k.phase;
    }
    return QN_OK;
}
