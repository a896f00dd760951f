/* SPDX-License-Identifier: MIT */
#include <quern/schedule.h>
#include <string.h>

int64_t qn_schedule_batch(const qn_batch_schedule *schedule, int64_t update)
{
    if (!schedule || schedule->count < 1)
        return 0;
    int i = schedule->count - 1;
    while (i > 0 && schedule->step[i].update > update)
        i--;
    return schedule->step[i].batch;
}

/* The batch of the last step takes what the others left. */
int64_t qn_schedule_updates(const qn_batch_schedule *schedule, int64_t samples)
{
    int64_t left = samples, update = 0;
    if (!schedule || schedule->count < 1)
        return 0;
    for (int i = 0; i + 1 < schedule->count; i++) {
        const qn_batch_step *step = &schedule->step[i];
        int64_t length = step[1].update - step->update, whole = left / step->batch;
        if (whole < length)
            return update + whole + (left % step->batch != 0);
        left -= length * step->batch;
        update += length;
    }
    int64_t batch = schedule->step[schedule->count - 1].batch;
    return update + left / batch + (left % batch != 0);
}

/* Adds a size that is not there yet; the largest stays first. */
static int add_size(int64_t *sizes, int count, int64_t size)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] == size)
            return count;
    sizes[count] = size;
    if (size > sizes[0]) {
        sizes[count] = sizes[0];
        sizes[0] = size;
    }
    return count + 1;
}

int qn_schedule_sizes(const qn_batch_schedule *schedule, int64_t sizes[QN_MAX_BATCH_SIZES])
{
    int count = 0;
    if (!sizes)
        return 0;
    memset(sizes, 0, QN_MAX_BATCH_SIZES * sizeof *sizes);
    for (int i = 0; schedule && i < schedule->count && i < QN_MAX_BATCH_SIZES; i++)
        count = add_size(sizes, count, schedule->step[i].batch);
    return count;
}
