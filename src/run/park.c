/* SPDX-License-Identifier: MIT
 *
 * Parking beside the kernels. A store begins in its place and is waited for where something else
 * takes the bytes that it copies; a fetch begins as soon as nothing lies any more in the bytes that
 * it fills, and is waited for in its place. So neither changes a plan, nor what it needs.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <limits.h>
#include <stdlib.h>

/* Whether two storages share bytes, each in its time. */
static bool share(const struct qn_storage *a, const struct qn_storage *b)
{
    return a->pool == b->pool && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

/* The last position before `at` at which something lies in the bytes; -1: nothing does. */
static int last_before(const struct qn_program *program, const struct qn_storage *bytes, int at)
{
    int last = -1;
    for (int i = 0; i < program->n_storages; i++) {
        const struct qn_storage *other = &program->storages[i];
        if (other->end < at && other->end > last && share(other, bytes))
            last = other->end;
    }
    return last;
}

/* The first position after `at` at which something lies in the bytes. */
static int first_after(const struct qn_program *program, const struct qn_storage *bytes, int at)
{
    int first = program->length;
    for (int i = 0; i < program->n_storages; i++) {
        const struct qn_storage *other = &program->storages[i];
        if (other->start > at && other->start < first && share(other, bytes))
            first = other->start;
    }
    return first;
}

static const struct qn_task *task_of(const struct qn_phase_run *phase, int step)
{
    return &phase->problem->tasks[phase->steps[step].task];
}

/* The first step after `step` that writes to a storage; n_steps: none does. What a value leaves may
 * be written over in place. */
static int next_write(const struct qn_phase_run *phase, int storage, int step)
{
    for (int i = step + 1; i < phase->n_steps; i++)
        for (int w = 0; w < task_of(phase, i)->n_writes; w++)
            if (phase->steps[i].write[w] == storage)
                return i;
    return phase->n_steps;
}

/* The step that stores what another fetches: a task's store comes before its fetch. */
static int store_of(const struct qn_phase_run *phase, int fetch)
{
    int step = 0;
    while (phase->steps[step].task != phase->steps[fetch].task - 1)
        step++;
    return step;
}

/* Between which steps of its phase the transfer may run. */
static struct qn_parked find_times(const struct qn_program *program,
                                   const struct qn_phase_run *phase, int step)
{
    const struct qn_step *at = &phase->steps[step];
    const int position = phase->start + step;
    if (task_of(phase, step)->kind == QN_TASK_STORE) {
        const struct qn_storage *bytes = &program->storages[at->read[0]];
        const int other = first_after(program, bytes, bytes->end) - phase->start;
        const int own = next_write(phase, at->read[0], step);
        return (struct qn_parked){step, step, other < own ? other : own};
    }
    const struct qn_storage *bytes = &program->storages[at->write[0]];
    const int before = last_before(program, bytes, position) - phase->start;
    const int stored = store_of(phase, step);
    return (struct qn_parked){step, before > stored ? before : stored, step};
}

/* --- laying out --- */

static int by_end(const void *a, const void *b)
{
    const struct qn_parked *x = *(const struct qn_parked *const *)a;
    const struct qn_parked *y = *(const struct qn_parked *const *)b;
    return x->end != y->end ? x->end - y->end : x->step - y->step;
}

static int by_begin(const void *a, const void *b)
{
    const struct qn_parked *x = a, *y = b;
    return x->begin != y->begin ? x->begin - y->begin : x->step - y->step;
}

bool qn_parking_lay(const struct qn_program *program, const struct qn_phase_run *phase,
                    struct qn_arena *arena, struct qn_phase_parking *out)
{
    *out = (struct qn_phase_parking){.count = 0};
    for (int i = 0; i < phase->n_steps; i++)
        out->count += qn_task_parks(task_of(phase, i));
    out->items = qn_arena_new(arena, struct qn_parked, (size_t)out->count + 1);
    out->ends = qn_arena_new(arena, struct qn_parked *, (size_t)out->count + 1);
    if (!out->items || !out->ends)
        return false;
    for (int i = 0, k = 0; i < phase->n_steps; i++)
        if (qn_task_parks(task_of(phase, i)))
            out->items[k++] = find_times(program, phase, i);
    qsort(out->items, (size_t)out->count, sizeof *out->items, by_begin);
    for (int k = 0; k < out->count; k++)
        out->ends[k] = &out->items[k];
    qsort(out->ends, (size_t)out->count, sizeof *out->ends, by_end);
    return true;
}

/* --- running --- */

static qn_status transfer(struct qn_trainer *trainer, const struct qn_phase_run *phase, int step,
                          struct qn_transfer *out)
{
    const struct qn_storage *storages = trainer->plan->program.storages;
    const struct qn_step *at = &phase->steps[step];
    const bool stores = task_of(phase, step)->kind == QN_TASK_STORE;
    const struct qn_storage *bytes = &storages[stores ? at->read[0] : at->write[0]];
    const struct qn_storage *copy = &storages[stores ? at->write[0] : at->read[0]];
    unsigned char *host = trainer->parked + copy->offset;
    return stores ? qn_slab_read_aside(trainer->slab, bytes->pool, bytes->offset, host,
                                       copy->host_bytes, out)
                  : qn_slab_write_aside(trainer->slab, bytes->pool, bytes->offset, host,
                                        copy->host_bytes, out);
}

int qn_parking_next(const struct qn_phase_parking *parking, const struct qn_stage *stage)
{
    const int begin = stage->begun < parking->count ? parking->items[stage->begun].begin : INT_MAX;
    const int end =
        stage->awaited < parking->count ? parking->ends[stage->awaited]->end - 1 : INT_MAX;
    return begin < end ? begin : end;
}

qn_status qn_parking_pass(struct qn_trainer *trainer, int number, struct qn_stage *stage, int step)
{
    const struct qn_phase_parking *parking = &trainer->phases[number].parking;
    const struct qn_phase_run *phase = &trainer->plan->program.phases[number];
    while (stage->begun < parking->count && parking->items[stage->begun].begin <= step) {
        const int k = stage->begun++;
        QN_TRY(transfer(trainer, phase, parking->items[k].step, &stage->parking[k]));
    }
    while (stage->awaited < parking->count && parking->ends[stage->awaited]->end <= step + 1) {
        const int64_t k = parking->ends[stage->awaited++] - parking->items;
        QN_TRY(qn_slab_await(trainer->slab, &stage->parking[k]));
    }
    return QN_OK;
}

qn_status qn_parking_run(struct qn_trainer *trainer, int number, struct qn_stage *stage, int step)
{
    const struct qn_phase_run *phase = &trainer->plan->program.phases[number];
    struct qn_transfer *out = &stage->parking[stage->begun++];
    QN_TRY(transfer(trainer, phase, step, out));
    return qn_slab_await(trainer->slab, out);
}
