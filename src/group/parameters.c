/* SPDX-License-Identifier: MIT
 *
 * Members that share the optimizer's work: each takes the norms of the chunks that it has summed
 * up, all learn those of all, and what each has updated goes to all the others.
 */
#include "base/clock.h"
#include "base/log.h"
#include "group/exchange.h"
#include "run/trainer.h"

#include <string.h>

/* --- norms --- */

/* Copies the norms of a member's chunks from the list of all chunks' to one of its own; or back. */
static void copy_norms(const struct qn_shard *shard, int member, float *all, float *own, bool back)
{
    for (int r = 0; r < shard->n_ranges; r++) {
        const struct qn_range *range = &shard->ranges[r];
        const size_t bytes = (size_t)range->chunks * sizeof *own;
        if (range->owner != member)
            continue;
        memcpy(back ? all + range->first_chunk : own, back ? own : all + range->first_chunk, bytes);
        own += range->chunks;
    }
}

bool qn_exchange_open_norms(struct qn_exchange *x, const struct qn_shard *shard, int chunks)
{
    for (int m = 0; m < shard->members; m++) {
        int count = 0;
        for (int r = 0; r < shard->n_ranges; r++)
            count += shard->ranges[r].owner == m ? shard->ranges[r].chunks : 0;
        x->most_norms = count > x->most_norms ? count : x->most_norms;
    }
    const size_t each = (size_t)x->most_norms;
    x->norms = qn_arena_new(&x->arena, float, each *((size_t)shard->members + 1) + (size_t)chunks);
    return x->norms;
}

qn_status qn_exchange_norms(void *user, struct qn_trainer *trainer)
{
    struct qn_exchange *x = user;
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_shard *shard = &persist->shard;
    const int64_t bytes = persist->n_chunks * (int64_t)sizeof(float);
    const double began = qn_clock();
    float *own = x->norms, *theirs = own + x->most_norms;
    float *all = theirs + (int64_t)shard->members * x->most_norms;
    QN_TRY(qn_trainer_read_value(trainer, persist->norms, 0, all, bytes));
    copy_norms(shard, shard->member, all, own, false);
    QN_TRY(x->transport->gather(x->transport->user, own, x->most_norms * (int64_t)sizeof *own,
                                theirs));
    x->figures.bytes_told += x->most_norms * (int64_t)sizeof *own;
    for (int m = 0; m < shard->members; m++)
        copy_norms(shard, m, all, theirs + (int64_t)m * x->most_norms, true);
    QN_TRY(qn_trainer_write_value(trainer, persist->norms, 0, all, bytes));
    x->figures.waited += qn_clock() - began;
    return QN_OK;
}

/* --- parameters --- */

/* Bytes of a parameter of the bucket: it has those of one block. */
static int64_t size_of(const struct qn_exchange *x, const struct qn_trainer *trainer, int bucket)
{
    const struct qn_bucket *b = &x->buckets.buckets[bucket];
    return qn_dtype_size(
        qn_slices_type(trainer, &x->buckets.slices[x->buckets.pieces[b->first_piece].slice]));
}

static char *room_of(struct qn_exchange *x, const struct qn_trainer *trainer, int bucket,
                     int64_t number)
{
    return (char *)qn_slot_of(x, bucket)->own + number * size_of(x, trainer, bucket);
}

static qn_status read_slice(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                            const qn_reduce_slice *slice, int64_t at)
{
    struct qn_slot *slot = qn_slot_of(x, bucket);
    return qn_slices_read_parameters(trainer, slice, room_of(x, trainer, bucket, at), &x->marks[0],
                                     &slot->transfers[slot->n_transfers++]);
}

static qn_status write_slice(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                             const qn_reduce_slice *slice, int64_t at)
{
    struct qn_slot *slot = qn_slot_of(x, bucket);
    return qn_slices_write_parameters(trainer, slice, room_of(x, trainer, bucket, at),
                                      &slot->transfers[slot->n_transfers++]);
}

static qn_status read_own(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    QN_TRY(qn_slot_settle(x, qn_slot_of(x, bucket)));
    return qn_exchange_slices(x, trainer, bucket, qn_owned_numbers(x, bucket, x->transport->member),
                              read_slice);
}

static qn_status exchange(struct qn_exchange *x, const struct qn_trainer *trainer, int bucket)
{
    QN_TRY(qn_slot_settle(x, qn_slot_of(x, bucket)));
    return qn_exchange_owned(x, bucket, size_of(x, trainer, bucket));
}

static qn_status write_others(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    const struct qn_numbers mine = qn_owned_numbers(x, bucket, x->transport->member);
    const int64_t end = mine.first + mine.count;
    const struct qn_numbers after = {end, x->buckets.buckets[bucket].count - end};
    QN_TRY(qn_slot_arrive(x, qn_slot_of(x, bucket)));
    QN_TRY(qn_exchange_slices(x, trainer, bucket, (struct qn_numbers){0, mine.first}, write_slice));
    return qn_exchange_slices(x, trainer, bucket, after, write_slice);
}

/* The buckets of parameters are the first. */
static int count_shared(const struct qn_buckets *buckets)
{
    int count = 0;
    while (count < buckets->n_buckets && buckets->buckets[count].shared)
        count++;
    return count;
}

static qn_status run_stages(struct qn_exchange *x, struct qn_trainer *trainer)
{
    const int count = count_shared(&x->buckets);
    for (int b = 0; b < count + 2; b++) {
        if (b < count)
            QN_TRY(read_own(x, trainer, b));
        if (b >= 1 && b - 1 < count)
            QN_TRY(exchange(x, trainer, b - 1));
        if (b >= 2)
            QN_TRY(write_others(x, trainer, b - 2));
    }
    return QN_OK;
}

qn_status qn_exchange_parameters(void *user, struct qn_trainer *trainer)
{
    struct qn_exchange *x = user;
    const double began = qn_clock();
    QN_TRY(qn_slices_mark(trainer, &x->marks[0]));
    const qn_status status = run_stages(x, trainer);
    QN_TRY(qn_transfer_wait(x->device, &x->marks[0]));
    x->figures.waited += qn_clock() - began;
    return status;
}
