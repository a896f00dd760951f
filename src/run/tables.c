/* SPDX-License-Identifier: MIT
 *
 * Tables of rings that forget: where rows were emptied, what the others know of them is made anew,
 * by the launches with which a micro-step does it for rows that it adds.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

#include <stddef.h>

/* A step of a phase that keeps a table. */
struct keeper {
    const struct qn_phase_run *phase;
    int step;
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

/* Moves on to the next step of the phase that keeps a table of ring c; the first is after -1. */
static bool find_next(const struct qn_trainer *trainer, int c, struct keeper *k)
{
    while (++k->step < k->phase->n_steps) {
        k->task = &k->phase->problem->tasks[k->phase->steps[k->step].task];
        if (reads_ring(trainer, k->task, c, ~0u))
            return true;
    }
    return false;
}

bool qn_tables_let_forget(const struct qn_trainer *trainer, int c)
{
    const struct qn_program *program = &trainer->plan->program;
    for (int p = 0; p < program->n_phases; p++)
        for (struct keeper k = {.phase = &program->phases[p], .step = -1};
             find_next(trainer, c, &k);)
            if (reads_ring(trainer, k.task, c, ~k.task->op->table->forgets))
                return false;
    return true;
}

/* Writes the row of ring c at which those of a micro-step begin. */
static qn_status set_position(struct qn_trainer *trainer, int c, int64_t row)
{
    const struct qn_place_of control = qn_trainer_place(trainer, trainer->plan->persist.control);
    const size_t slot = (size_t)trainer->plan->persist.runs.cell[c].slot;
    const size_t at = offsetof(struct qn_control, position) + slot * sizeof(uint32_t);
    return qn_slab_fill(trainer->slab, control.buffer, control.offset + (int64_t)at,
                        sizeof(uint32_t), (uint32_t)row);
}

/* As if the rows of a micro-step had come to `place` of ring c; in the task's other rings the last
 * ones that came are its. */
static qn_status run_at(struct qn_trainer *trainer, const struct keeper *k, int c, int64_t place)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    const struct qn_phase_recording *recorded =
        &trainer->phases[k->phase - trainer->plan->program.phases];
    for (int r = 0; r < runs->n_cells; r++) {
        if (!reads_ring(trainer, k->task, r, ~0u))
            continue;
        const int64_t capacity = runs->cell[r].operand.shape.dim[0];
        const int64_t rows = qn_cell_rows_each(k->phase, &runs->cell[r]) * k->phase->problem->batch;
        const int64_t last = (trainer->cell_rows[r] + capacity - rows) % capacity;
        QN_TRY(set_position(trainer, r, r == c ? place : last));
    }
    return qn_recording_run(recorded->recording, recorded->first_launch[k->step],
                            recorded->first_launch[k->step + 1]);
}

/* Each run sees to all stretches in which a micro-step's rows would be. */
static qn_status make_anew(struct qn_trainer *trainer, const struct keeper *k, int c, int64_t first,
                           int64_t end)
{
    struct qn_call call;
    qn_task_call(k->phase->problem, k->task, k->phase->first, &call);
    const int64_t stretch = k->task->op->table->stretch(&call);
    for (int64_t place = first; place < end; place = qn_round_up(place + call.batch, stretch))
        QN_TRY(run_at(trainer, k, c, place));
    return QN_OK;
}

/* The first phase that keeps a table of ring c; NULL: none does. */
static const struct qn_phase_run *find_phase(const struct qn_trainer *trainer, int c)
{
    const struct qn_program *program = &trainer->plan->program;
    for (int p = 0; p < program->n_phases; p++)
        if (find_next(trainer, c, &(struct keeper){.phase = &program->phases[p], .step = -1}))
            return &program->phases[p];
    return NULL;
}

qn_status qn_tables_forget(struct qn_trainer *trainer, int c, const struct qn_phase_run *phase,
                           int64_t first, int64_t count)
{
    struct keeper k = {.phase = phase ? phase : find_phase(trainer, c), .step = -1};
    while (k.phase && find_next(trainer, c, &k))
        QN_TRY(make_anew(trainer, &k, c, first, first + count));
    return QN_OK;
}
