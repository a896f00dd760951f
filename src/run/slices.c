/* SPDX-License-Identifier: MIT
 *
 * The accumulators of a cycle as arrays of numbers, for members that add them up: gradients block
 * by block, what is gathered for running averages, and the numerators of the losses.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

/* An accumulator: a persistent value, from an offset in bytes on. */
struct array {
    int value;
    int64_t offset, count;
};

/* Gives false past the last. */
static bool array_at(const struct qn_trainer *trainer, int index, struct array *array)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    if (index >= 0 && index < persist->n_blocks) {
        const int value = persist->blocks[index].gradients;
        *array = (struct array){value, 0, qn_operand_count(&persist->values[value].operand)};
        return true;
    }
    index -= persist->n_blocks;
    for (int i = 0; index >= 0 && i < persist->n_moving; i++) {
        const int value = persist->moving[i].gather;
        if (value < 0 || index-- > 0)
            continue;
        *array = (struct array){value, 0, qn_operand_count(&persist->values[value].operand)};
        return true;
    }
    *array = (struct array){persist->control, offsetof(struct qn_control, loss), QN_MAX_LOSSES};
    return index == 0;
}

int qn_trainer_arrays(const qn_trainer *trainer, int64_t *counts, int room)
{
    struct array array;
    int count = 0;
    for (; trainer && !trainer->plan->persist.early && array_at(trainer, count, &array); count++)
        if (count < room)
            counts[count] = array.count;
    return count;
}

static qn_status find_slice(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                            struct array *array)
{
    QN_TRY(qn_trainer_failure(trainer));
    if (!slice || !array_at(trainer, slice->array, array) || slice->first < 0 || slice->count < 0 ||
        slice->first > array->count || slice->count > array->count - slice->first)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "slice: outside the trainer's accumulators");
    array->offset += slice->first * (int64_t)sizeof(float);
    array->count = slice->count;
    return QN_OK;
}

qn_status qn_trainer_read_slice(qn_trainer *trainer, const qn_reduce_slice *slice, float *values)
{
    struct array array;
    QN_REQUIRE(NULL, trainer && values);
    QN_TRY(find_slice(trainer, slice, &array));
    return qn_trainer_read_value(trainer, array.value, array.offset, values,
                                 array.count * (int64_t)sizeof *values);
}

qn_status qn_trainer_write_slice(qn_trainer *trainer, const qn_reduce_slice *slice,
                                 const float *values)
{
    struct array array;
    QN_REQUIRE(NULL, trainer && values);
    QN_TRY(find_slice(trainer, slice, &array));
    return qn_trainer_write_value(trainer, array.value, array.offset, values,
                                  array.count * (int64_t)sizeof *values);
}

/* --- the same beside the kernels --- */

qn_status qn_slices_mark(struct qn_trainer *trainer, struct qn_transfer *mark)
{
    return qn_slab_mark(trainer->slab, mark);
}

static struct qn_place_of place_of(const struct qn_trainer *trainer, const struct array *array)
{
    struct qn_place_of place = qn_trainer_place(trainer, array->value);
    place.offset += array->offset;
    return place;
}

qn_status qn_slices_read(struct qn_trainer *trainer, const qn_reduce_slice *slice, float *values,
                         const struct qn_transfer *mark, struct qn_transfer *transfer)
{
    struct array array;
    QN_TRY(find_slice(trainer, slice, &array));
    const struct qn_place_of place = place_of(trainer, &array);
    return qn_trainer_check(
        trainer, qn_slab_read_after(trainer->slab, place.buffer, place.offset, values,
                                    array.count * (int64_t)sizeof(float), mark, transfer));
}

qn_status qn_slices_write(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                          const float *values, struct qn_transfer *transfer)
{
    struct array array;
    QN_TRY(find_slice(trainer, slice, &array));
    const struct qn_place_of place = place_of(trainer, &array);
    return qn_trainer_check(trainer,
                            qn_slab_write(trainer->slab, place.buffer, place.offset, values,
                                          array.count * (int64_t)sizeof(float), transfer));
}

/* --- parameters --- */

static int working_of(const struct qn_trainer *trainer, const qn_reduce_slice *slice)
{
    return trainer->plan->persist.blocks[slice->array].working;
}

qn_dtype qn_slices_type(const struct qn_trainer *trainer, const qn_reduce_slice *slice)
{
    return trainer->plan->persist.values[working_of(trainer, slice)].operand.dtype;
}

static struct qn_place_of parameters_of(const struct qn_trainer *trainer,
                                        const qn_reduce_slice *slice, int64_t *bytes)
{
    const int64_t size = qn_dtype_size(qn_slices_type(trainer, slice));
    struct qn_place_of place = qn_trainer_place(trainer, working_of(trainer, slice));
    place.offset += slice->first * size;
    *bytes = slice->count * size;
    return place;
}

qn_status qn_slices_read_parameters(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                                    void *values, const struct qn_transfer *mark,
                                    struct qn_transfer *transfer)
{
    int64_t bytes;
    const struct qn_place_of place = parameters_of(trainer, slice, &bytes);
    return qn_trainer_check(trainer, qn_slab_read_after(trainer->slab, place.buffer, place.offset,
                                                        values, bytes, mark, transfer));
}

qn_status qn_slices_write_parameters(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                                     const void *values, struct qn_transfer *transfer)
{
    int64_t bytes;
    const struct qn_place_of place = parameters_of(trainer, slice, &bytes);
    return qn_trainer_check(
        trainer, qn_slab_write(trainer->slab, place.buffer, place.offset, values, bytes, transfer));
}

/* --- when they are complete --- */

/* The step that writes a parameter's gradient last; -1: none does. */
static int last_write(const struct qn_phase_run *phase, int gradient)
{
    for (int i = phase->n_steps - 1; i >= 0; i--) {
        const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
        for (int w = 0; w < task->n_writes; w++)
            if (task->writes[w].value == gradient)
                return i;
    }
    return -1;
}

static int by_step(const void *a, const void *b)
{
    const struct qn_complete *x = a, *y = b;
    return x->step != y->step ? x->step - y->step : x->parameter - y->parameter;
}

int qn_slices_find(const struct qn_phase_run *phase, struct qn_arena *arena,
                   struct qn_complete **complete)
{
    const struct qn_persist *persist = phase->problem->persist;
    struct qn_complete *list =
        qn_arena_new(arena, struct qn_complete, (size_t)persist->n_parameters + 1);
    int count = 0;
    for (int p = 0; list && phase->kind == QN_MICRO_PHASE && p < persist->n_parameters; p++) {
        const int step = persist->parameters[p].gradient < 0
                             ? -1
                             : last_write(phase, persist->parameters[p].gradient);
        if (step >= 0)
            list[count++] = (struct qn_complete){step, p};
    }
    if (list)
        qsort(list, (size_t)count, sizeof *list, by_step);
    *complete = list;
    return list ? count : -1;
}

static qn_reduce_slice slice_of(const struct qn_persist *persist, int parameter)
{
    const struct qn_parameter *of = &persist->parameters[parameter];
    return (qn_reduce_slice){.array = of->block,
                             .first = persist->values[of->gradient].block_offset /
                                      (int64_t)sizeof(float),
                             .count = qn_operand_count(&of->node->leaf)};
}

int qn_slices_list(const struct qn_trainer *trainer, qn_reduce_slice *list, int room)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    struct array array;
    int count = 0;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].trainable && count++ < room)
            list[count - 1] = slice_of(persist, p);
    for (int i = persist->n_blocks; array_at(trainer, i, &array); i++)
        if (count++ < room)
            list[count - 1] = (qn_reduce_slice){.array = i, .count = array.count};
    return count;
}

/* Whether whole runs compute the loss of that index. */
static bool is_of_whole(const struct qn_plan *plan, int loss)
{
    for (int r = 0; r < plan->runs.n_runs; r++) {
        const struct qn_graph *graph = plan->graphs[plan->runs.run[r].graph];
        for (int l = 0; plan->runs.run[r].whole && l < graph->n_losses; l++)
            if (graph->losses[l].index == loss)
                return true;
    }
    return false;
}

int qn_slices_whole(const struct qn_trainer *trainer, qn_reduce_slice *list, int room)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const int losses = qn_trainer_arrays(trainer, NULL, 0) - 1;
    int count = 0;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].trainable && !persist->parameters[p].by_steps && count++ < room)
            list[count - 1] = slice_of(persist, p);
    for (int l = 0; l < trainer->plan->n_losses; l++)
        if (is_of_whole(trainer->plan, l) && count++ < room)
            list[count - 1] = (qn_reduce_slice){losses, l, 1};
    return count;
}

qn_status qn_slices_begin(struct qn_trainer *trainer, const qn_reduce *reduce, int parameter)
{
    const qn_reduce_slice slice = slice_of(&trainer->plan->persist, parameter);
    trainer->begun[parameter] = true;
    return reduce->begin(reduce->user, trainer, &slice);
}

qn_status qn_slices_begin_rest(struct qn_trainer *trainer, const qn_reduce *reduce)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    struct array array;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].trainable && !trainer->begun[p])
            QN_TRY(qn_slices_begin(trainer, reduce, p));
    for (int i = persist->n_blocks; array_at(trainer, i, &array); i++)
        QN_TRY(reduce->begin(reduce->user, trainer,
                             &(qn_reduce_slice){.array = i, .first = 0, .count = array.count}));
    return QN_OK;
}

/* The numerators are zeros already: they come with the control block. */
qn_status qn_slices_clear(struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int b = 0; b < persist->n_blocks; b++)
        QN_TRY(qn_trainer_fill_value(trainer, persist->blocks[b].gradients, 0));
    for (int i = 0; i < persist->n_moving; i++)
        if (persist->moving[i].gather >= 0)
            QN_TRY(qn_trainer_fill_value(trainer, persist->moving[i].gather, 0));
    return QN_OK;
}
