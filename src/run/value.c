/* SPDX-License-Identifier: MIT
 *
 * Where what persists lies, and what it holds; and the device error that sticks.
 */
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"
#include "run/trainer.h"

qn_status qn_trainer_check(struct qn_trainer *trainer, qn_status status)
{
    if (status == QN_ERR_DEVICE)
        trainer->failed = status;
    return status;
}

qn_status qn_trainer_failure(const struct qn_trainer *trainer)
{
    if (!trainer->failed)
        return QN_OK;
    return qn_fail(NULL, trainer->failed, "trainer: its device failed in an earlier call");
}

struct qn_place_of qn_trainer_storage_place(const struct qn_trainer *trainer, int storage)
{
    const struct qn_storage *at = &trainer->plan->program.storages[storage];
    return (struct qn_place_of){at->pool, at->offset};
}

struct qn_place_of qn_trainer_place(const struct qn_trainer *trainer, int value)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_value *v = &persist->values[value];
    int storage = trainer->plan->program.persistent[v->block >= 0 ? v->block : value];
    struct qn_place_of place = qn_trainer_storage_place(trainer, storage);
    place.offset += v->block >= 0 ? v->block_offset : 0;
    return place;
}

qn_status qn_trainer_write_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 const void *host, int64_t bytes)
{
    struct qn_place_of place = qn_trainer_place(trainer, value);
    return qn_trainer_check(trainer, qn_slab_write(trainer->slab, place.buffer,
                                                   place.offset + offset_bytes, host, bytes, NULL));
}

qn_status qn_trainer_read_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                void *host, int64_t bytes)
{
    struct qn_place_of place = qn_trainer_place(trainer, value);
    return qn_trainer_check(trainer, qn_slab_read(trainer->slab, place.buffer,
                                                  place.offset + offset_bytes, host, bytes, NULL));
}

/* Four bytes of elements of this type that are all `value`. */
static uint32_t word_of(qn_dtype dtype, double value)
{
    const double values[] = {value, value, value, value};
    uint32_t word;
    qn_number_encode(dtype, values, (int64_t)sizeof word / qn_dtype_size(dtype), &word);
    return word;
}

qn_status qn_trainer_fill_part(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                               int64_t bytes, float with)
{
    const struct qn_value *of = &trainer->plan->persist.values[value];
    struct qn_place_of place = qn_trainer_place(trainer, value);
    return qn_slab_fill(trainer->slab, place.buffer, place.offset + offset_bytes, bytes,
                        word_of(of->operand.dtype, (double)with));
}

/* What pads it to four bytes is filled too. */
qn_status qn_trainer_fill_value(struct qn_trainer *trainer, int value, float with)
{
    const int64_t bytes = trainer->plan->persist.values[value].bytes;
    return qn_trainer_fill_part(trainer, value, 0, qn_round_up(bytes, 4), with);
}
