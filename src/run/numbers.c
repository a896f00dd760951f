/* SPDX-License-Identifier: MIT
 *
 * Numbers of the host to and from what a value stores: with f32 masters and averages what operators
 * read of them, and parameters with their corrections.
 */
#include "base/log.h"
#include "base/number.h"
#include "run/trainer.h"

#include <stdlib.h>

enum { CONVERTED = 1 << 16 }; /* elements at a time */

struct converted {
    double number[CONVERTED];
    uint16_t stored[CONVERTED];
};

static qn_status write_converted(struct qn_trainer *trainer, int value, int64_t first,
                                 const float *numbers, int64_t count, struct converted *room)
{
    const qn_dtype dtype = trainer->plan->persist.values[value].operand.dtype;
    for (int64_t done = 0; done < count; done += CONVERTED) {
        const int64_t size = count - done < CONVERTED ? count - done : CONVERTED;
        for (int64_t i = 0; i < size; i++)
            room->number[i] = (double)numbers[done + i];
        qn_number_encode(dtype, room->number, size, room->stored);
        QN_TRY(qn_trainer_write_value(trainer, value,
                                      (first + done) * (int64_t)sizeof *room->stored, room->stored,
                                      size * (int64_t)sizeof *room->stored));
    }
    return QN_OK;
}

static qn_status read_converted(struct qn_trainer *trainer, int value, int64_t first,
                                float *numbers, int64_t count, struct converted *room)
{
    const qn_dtype dtype = trainer->plan->persist.values[value].operand.dtype;
    for (int64_t done = 0; done < count; done += CONVERTED) {
        const int64_t size = count - done < CONVERTED ? count - done : CONVERTED;
        QN_TRY(qn_trainer_read_value(trainer, value, (first + done) * (int64_t)sizeof *room->stored,
                                     room->stored, size * (int64_t)sizeof *room->stored));
        qn_number_decode(dtype, room->stored, size, room->number);
        for (int64_t i = 0; i < size; i++)
            numbers[done + i] = (float)room->number[i];
    }
    return QN_OK;
}

static struct converted *new_room(const struct qn_trainer *trainer)
{
    struct converted *room = malloc(sizeof *room);
    if (!room)
        qn_fail(&trainer->log, QN_ERR_MEMORY, "parameters in 16 bits: out of host memory");
    return room;
}

qn_status qn_trainer_write_rounded(struct qn_trainer *trainer, int value, int64_t first,
                                   const float *numbers, int64_t count)
{
    struct converted *room = new_room(trainer);
    qn_status status =
        room ? write_converted(trainer, value, first, numbers, count, room) : QN_ERR_MEMORY;
    free(room);
    return status;
}

qn_status qn_trainer_read_rounded(struct qn_trainer *trainer, int value, int64_t first,
                                  float *numbers, int64_t count)
{
    struct converted *room = new_room(trainer);
    qn_status status =
        room ? read_converted(trainer, value, first, numbers, count, room) : QN_ERR_MEMORY;
    free(room);
    return status;
}

const struct qn_parameter *qn_trainer_parameter(const struct qn_trainer *trainer, int value)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].value == value)
            return &persist->parameters[p];
    return NULL;
}

/* The value that operators read in the place of `value`, an f32 master or an average; -1: there is
 * none. */
static int working_of(const struct qn_persist *persist, int value)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->value == value && parameter->working != value)
            return parameter->working;
        if (parameter->average == value && parameter->working_average != value)
            return parameter->working_average;
    }
    return -1;
}

/* The parameter that the value holds if a slot corrects it; NULL: none. */
static const struct qn_parameter *corrected_of(const struct qn_trainer *trainer, int value)
{
    const struct qn_parameter *parameter = qn_trainer_parameter(trainer, value);
    return parameter && qn_correction_of(&trainer->plan->persist, parameter) >= 0 ? parameter
                                                                                  : NULL;
}

static qn_status write_with_working(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                    const void *host, int64_t bytes)
{
    const struct qn_parameter *corrected = corrected_of(trainer, value);
    const int working = working_of(&trainer->plan->persist, value);
    const int64_t size = (int64_t)sizeof(float);
    if (corrected)
        return qn_corrected_write(trainer, corrected, offset_bytes / size, host, bytes / size);
    QN_TRY(qn_shard_write(trainer, value, offset_bytes, host, bytes));
    return working < 0 ? QN_OK : qn_trainer_write_rounded(trainer, working, 0, host, bytes / size);
}

/* The average of a parameter begins anew with what it was set to. */
static qn_status begin_average(struct qn_trainer *trainer, int value)
{
    const struct qn_parameter *parameter = qn_trainer_parameter(trainer, value);
    if (!parameter || parameter->average < 0)
        return QN_OK;
    const int64_t count = qn_operand_count(&parameter->node->leaf);
    float *numbers = malloc((size_t)count * sizeof *numbers);
    if (!numbers)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "%s: out of host memory",
                       parameter->node->name);
    qn_status status = qn_trainer_read_numbers(trainer, value, numbers, count);
    if (status == QN_OK)
        status = write_with_working(trainer, parameter->average, 0, numbers,
                                    count * (int64_t)sizeof *numbers);
    free(numbers);
    return status;
}

qn_status qn_trainer_write_tensor(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                  const void *host, int64_t bytes)
{
    QN_TRY(write_with_working(trainer, value, offset_bytes, host, bytes));
    return begin_average(trainer, value);
}

qn_status qn_trainer_read_tensor(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 void *host, int64_t bytes)
{
    const struct qn_parameter *corrected = corrected_of(trainer, value);
    const int64_t size = (int64_t)sizeof(float);
    return corrected
               ? qn_corrected_read(trainer, corrected, offset_bytes / size, host, bytes / size)
               : qn_shard_read(trainer, value, offset_bytes, host, bytes);
}

qn_dtype qn_trainer_tensor_type(const struct qn_trainer *trainer, int value)
{
    return corrected_of(trainer, value) ? QN_F32
                                        : trainer->plan->persist.values[value].operand.dtype;
}

static bool is_f32(const struct qn_trainer *trainer, int value)
{
    return qn_trainer_tensor_type(trainer, value) == QN_F32;
}

qn_status qn_trainer_write_numbers(struct qn_trainer *trainer, int value, const float *numbers,
                                   int64_t count)
{
    if (is_f32(trainer, value))
        return qn_trainer_write_tensor(trainer, value, 0, numbers,
                                       count * (int64_t)sizeof *numbers);
    QN_TRY(qn_trainer_write_rounded(trainer, value, 0, numbers, count));
    return begin_average(trainer, value);
}

qn_status qn_trainer_read_numbers(struct qn_trainer *trainer, int value, float *numbers,
                                  int64_t count)
{
    if (is_f32(trainer, value))
        return qn_trainer_read_tensor(trainer, value, 0, numbers, count * (int64_t)sizeof *numbers);
    return qn_trainer_read_rounded(trainer, value, 0, numbers, count);
}
