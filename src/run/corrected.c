/* SPDX-License-Identifier: MIT
 *
 * Parameters in bf16 with a slot of their optimizer that has 8 more bits: for the host they are
 * f32.
 */
#include "base/log.h"
#include "base/number.h"
#include "run/trainer.h"

#include <stdlib.h>

enum { CORRECTED = 1 << 16 }; /* elements at a time */

struct room {
    uint16_t stored[CORRECTED];
    uint8_t code[CORRECTED];
};

/* Where the elements from one on are: in which values, and byte offsets into them. */
struct place {
    int stored, code;
    int64_t stored_at, code_at;
};

static struct place place_of(const struct qn_trainer *trainer, const struct qn_parameter *parameter,
                             int64_t first)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const int slot = qn_correction_of(persist, parameter);
    return (struct place){
        .stored = parameter->value,
        .code = persist->blocks[parameter->block].state[slot],
        .stored_at = first * (int64_t)sizeof(uint16_t),
        .code_at = parameter->part[slot].first + first,
    };
}

static qn_status write_some(struct qn_trainer *trainer, const struct place *at,
                            const float *numbers, int64_t count, struct room *room)
{
    qn_number_split(numbers, count, room->stored, room->code);
    QN_TRY(qn_trainer_write_value(trainer, at->stored, at->stored_at, room->stored,
                                  count * (int64_t)sizeof *room->stored));
    return qn_shard_write(trainer, at->code, at->code_at, room->code, count);
}

static qn_status read_some(struct qn_trainer *trainer, const struct place *at, float *numbers,
                           int64_t count, struct room *room)
{
    QN_TRY(qn_trainer_read_value(trainer, at->stored, at->stored_at, room->stored,
                                 count * (int64_t)sizeof *room->stored));
    QN_TRY(qn_shard_read(trainer, at->code, at->code_at, room->code, count));
    qn_number_join(room->stored, room->code, count, numbers);
    return QN_OK;
}

static struct room *new_room(const struct qn_trainer *trainer)
{
    struct room *room = malloc(sizeof *room);
    if (!room)
        qn_fail(&trainer->log, QN_ERR_MEMORY, "parameters with corrections: out of host memory");
    return room;
}

qn_status qn_corrected_write(struct qn_trainer *trainer, const struct qn_parameter *parameter,
                             int64_t first, const float *numbers, int64_t count)
{
    struct room *room = new_room(trainer);
    qn_status status = room ? QN_OK : QN_ERR_MEMORY;
    for (int64_t done = 0; status == QN_OK && done < count; done += CORRECTED) {
        const struct place at = place_of(trainer, parameter, first + done);
        const int64_t size = count - done < CORRECTED ? count - done : CORRECTED;
        status = write_some(trainer, &at, numbers + done, size, room);
    }
    free(room);
    return status;
}

qn_status qn_corrected_read(struct qn_trainer *trainer, const struct qn_parameter *parameter,
                            int64_t first, float *numbers, int64_t count)
{
    struct room *room = new_room(trainer);
    qn_status status = room ? QN_OK : QN_ERR_MEMORY;
    for (int64_t done = 0; status == QN_OK && done < count; done += CORRECTED) {
        const struct place at = place_of(trainer, parameter, first + done);
        const int64_t size = count - done < CORRECTED ? count - done : CORRECTED;
        status = read_some(trainer, &at, numbers + done, size, room);
    }
    free(room);
    return status;
}
