/* SPDX-License-Identifier: MIT
 *
 * Numbers of the host to and from what a value stores, and f32 masters with what operators read of
 * them.
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

static qn_status write_converted(struct qn_trainer *trainer, int value, const float *numbers,
                                 int64_t count, struct converted *room)
{
    const qn_dtype dtype = trainer->plan->persist.values[value].operand.dtype;
    for (int64_t done = 0; done < count; done += CONVERTED) {
        const int64_t size = count - done < CONVERTED ? count - done : CONVERTED;
        for (int64_t i = 0; i < size; i++)
            room->number[i] = (double)numbers[done + i];
        qn_number_encode(dtype, room->number, size, room->stored);
        QN_TRY(qn_trainer_write_value(trainer, value, done * (int64_t)sizeof *room->stored,
                                      room->stored, size * (int64_t)sizeof *room->stored));
    }
    return QN_OK;
}

static qn_status read_converted(struct qn_trainer *trainer, int value, float *numbers,
                                int64_t count, struct converted *room)
{
    const qn_dtype dtype = trainer->plan->persist.values[value].operand.dtype;
    for (int64_t done = 0; done < count; done += CONVERTED) {
        const int64_t size = count - done < CONVERTED ? count - done : CONVERTED;
        QN_TRY(qn_trainer_read_value(trainer, value, done * (int64_t)sizeof *room->stored,
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

static qn_status write_rounded(struct qn_trainer *trainer, int value, const float *numbers,
                               int64_t count)
{
    struct converted *room = new_room(trainer);
    qn_status status = room ? write_converted(trainer, value, numbers, count, room) : QN_ERR_MEMORY;
    free(room);
    return status;
}

/* The value that operators read in the place of the f32 master `value`; -1: it is none. */
static int working_of(const struct qn_persist *persist, int value)
{
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].value == value && persist->parameters[p].working != value)
            return persist->parameters[p].working;
    return -1;
}

qn_status qn_trainer_write_tensor(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                  const void *host, int64_t bytes)
{
    const int working = working_of(&trainer->plan->persist, value);
    QN_TRY(qn_trainer_write_value(trainer, value, offset_bytes, host, bytes));
    return working < 0 ? QN_OK
                       : write_rounded(trainer, working, host, bytes / (int64_t)sizeof(float));
}

static bool is_f32(const struct qn_trainer *trainer, int value)
{
    return trainer->plan->persist.values[value].operand.dtype == QN_F32;
}

qn_status qn_trainer_write_numbers(struct qn_trainer *trainer, int value, const float *numbers,
                                   int64_t count)
{
    return is_f32(trainer, value) ? qn_trainer_write_tensor(trainer, value, 0, numbers,
                                                            count * (int64_t)sizeof *numbers)
                                  : write_rounded(trainer, value, numbers, count);
}

qn_status qn_trainer_read_numbers(struct qn_trainer *trainer, int value, float *numbers,
                                  int64_t count)
{
    if (is_f32(trainer, value))
        return qn_trainer_read_value(trainer, value, 0, numbers, count * (int64_t)sizeof *numbers);
    struct converted *room = new_room(trainer);
    qn_status status = room ? read_converted(trainer, value, numbers, count, room) : QN_ERR_MEMORY;
    free(room);
    return status;
}
