/* SPDX-License-Identifier: MIT
 *
 * Averages in the place of parameters, for evaluations of members that share the optimizer's work:
 * each has the averages of its own ranges alone, and no room for all of them.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <stdlib.h>

bool qn_averages_are_parted(const struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    return persist->averaging && persist->shard.members;
}

/* What is done to each range of this member's; `covered` is host memory for its parameters. */
typedef qn_status (*range_work)(struct qn_trainer *trainer, const struct qn_range *range,
                                unsigned char *covered);

static int64_t element_bytes(const struct qn_persist *persist, const struct qn_range *range)
{
    return qn_dtype_size(persist->values[persist->blocks[range->block].working].operand.dtype);
}

/* Gives the bytes of all parameters of this member's ranges, too. */
static qn_status do_own(struct qn_trainer *trainer, range_work work, int64_t *bytes)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    int64_t done = 0;
    for (int r = 0; r < persist->shard.n_ranges; r++) {
        const struct qn_range *range = &persist->shard.ranges[r];
        if (!qn_range_is_own(&persist->shard, range))
            continue;
        if (work)
            QN_TRY(work(trainer, range, trainer->covered + done));
        done += range->count * element_bytes(persist, range);
    }
    *bytes = done;
    return QN_OK;
}

static qn_status write_average(struct qn_trainer *trainer, const struct qn_range *range,
                               float *numbers)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_block *block = &persist->blocks[range->block];
    const int64_t size = (int64_t)sizeof *numbers, bytes = range->count * size;
    QN_TRY(qn_trainer_read_value(trainer, block->average, range->kept * size, numbers, bytes));
    if (persist->values[block->working].operand.dtype != QN_F32)
        return qn_trainer_write_rounded(trainer, block->working, range->first, numbers,
                                        range->count);
    return qn_trainer_write_value(trainer, block->working, range->first * size, numbers, bytes);
}

static qn_status cover(struct qn_trainer *trainer, const struct qn_range *range,
                       unsigned char *covered)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const int64_t size = element_bytes(persist, range);
    QN_TRY(qn_trainer_read_value(trainer, persist->blocks[range->block].working,
                                 range->first * size, covered, range->count * size));
    float *numbers = malloc((size_t)range->count * sizeof *numbers);
    if (!numbers)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "averages: out of host memory");
    const qn_status status = write_average(trainer, range, numbers);
    free(numbers);
    return status;
}

static qn_status uncover(struct qn_trainer *trainer, const struct qn_range *range,
                         unsigned char *covered)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const int64_t size = element_bytes(persist, range);
    return qn_trainer_write_value(trainer, persist->blocks[range->block].working,
                                  range->first * size, covered, range->count * size);
}

qn_status qn_averages_cover(struct qn_trainer *trainer)
{
    int64_t bytes;
    QN_TRY(do_own(trainer, NULL, &bytes));
    trainer->covered = malloc((size_t)bytes + 1);
    if (!trainer->covered)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "averages: out of host memory");
    return do_own(trainer, cover, &bytes);
}

qn_status qn_averages_uncover(struct qn_trainer *trainer)
{
    int64_t bytes;
    const qn_status status = do_own(trainer, uncover, &bytes);
    free(trainer->covered);
    trainer->covered = NULL;
    return status;
}
