/* SPDX-License-Identifier: MIT
 *
 * Gradients go through four stages: reading from the device, parts to their owners, sums to all, or
 * to nobody where owners update what they own, writing to the device. Each bucket begins to be read
 * when its gradients are complete, while the rest of the backward pass runs.
 */
#include "base/clock.h"
#include "base/log.h"
#include "group/exchange.h"
#include "run/trainer.h"

#include <string.h>

static struct qn_numbers all_numbers(const struct qn_exchange *x, int bucket)
{
    return (struct qn_numbers){0, x->buckets.buckets[bucket].count};
}

static qn_status read_slice(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                            const qn_reduce_slice *slice, int64_t at)
{
    struct qn_slot *slot = qn_slot_of(x, bucket);
    return qn_slices_read(trainer, slice, slot->own + at, &x->marks[bucket],
                          &slot->transfers[slot->n_transfers++]);
}

static qn_status write_slice(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                             const qn_reduce_slice *slice, int64_t at)
{
    struct qn_slot *slot = qn_slot_of(x, bucket);
    return qn_slices_write(trainer, slice, slot->own + at, &slot->transfers[slot->n_transfers++]);
}

/* After the bucket that had the slot before. */
static qn_status read_bucket(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    QN_TRY(qn_slot_settle(x, qn_slot_of(x, bucket)));
    return qn_exchange_slices(x, trainer, bucket, all_numbers(x, bucket), read_slice);
}

/* In the rounds of qn_exchange_owned. */
static qn_status exchange_parts(struct qn_exchange *x, int bucket)
{
    const int self = x->transport->member, members = x->transport->members;
    const int64_t size = (int64_t)sizeof(float);
    struct qn_slot *slot = qn_slot_of(x, bucket);
    QN_TRY(qn_slot_settle(x, slot));
    QN_TRY(qn_transfer_wait(x->device, &x->marks[bucket]));
    const struct qn_numbers mine = qn_owned_numbers(x, bucket, self);
    for (int r = 1; r < members; r++) {
        const int to = (self + r) % members, from = (self + members - r) % members;
        const struct qn_numbers theirs = qn_owned_numbers(x, bucket, to);
        QN_TRY(qn_slot_send(x, slot, to, slot->own + theirs.first, theirs.count * size));
        QN_TRY(qn_slot_receive(x, slot, from, slot->parts + from * x->part, mine.count * size));
    }
    return QN_OK;
}

/* What a member gave of this member's own range. */
static const float *part_of(const struct qn_exchange *x, const struct qn_slot *slot, int member,
                            struct qn_numbers mine)
{
    return member == x->transport->member ? slot->own + mine.first : slot->parts + member * x->part;
}

/* Numbers that each member has computed of all samples are those of the first. */
static qn_status take_whole(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                            const qn_reduce_slice *slice, int64_t at)
{
    const struct qn_slot *slot = qn_slot_of(x, bucket);
    const int self = x->transport->member;
    const struct qn_numbers mine = qn_owned_numbers(x, bucket, self);
    const float *first = part_of(x, slot, qn_first_member(x), mine);
    float *sum = slot->parts + self * x->part;
    (void)trainer;
    for (const qn_reduce_slice *w = x->whole; w < x->whole + x->n_whole; w++)
        for (int64_t i = 0; w->array == slice->array && i < slice->count; i++)
            if (slice->first + i >= w->first && slice->first + i < w->first + w->count)
                sum[at - mine.first + i] = first[at - mine.first + i];
    return QN_OK;
}

/* Of this member's own range, in the order of members. */
static qn_status add_parts(struct qn_exchange *x, int bucket)
{
    const int self = x->transport->member, members = x->transport->members;
    const struct qn_numbers mine = qn_owned_numbers(x, bucket, self);
    struct qn_slot *slot = qn_slot_of(x, bucket);
    float *sum = slot->parts + self * x->part, *own = slot->own + mine.first;
    memcpy(sum, self == 0 ? own : slot->parts, (size_t)mine.count * sizeof *sum);
    for (int m = 1; m < members; m++) {
        const float *part = part_of(x, slot, m, mine);
        for (int64_t i = 0; i < mine.count; i++)
            sum[i] += part[i];
    }
    if (x->n_whole)
        QN_TRY(qn_exchange_slices(x, NULL, bucket, mine, take_whole));
    memcpy(own, sum, (size_t)mine.count * sizeof *sum);
    return QN_OK;
}

static qn_status exchange_sums(struct qn_exchange *x, int bucket)
{
    QN_TRY(qn_slot_arrive(x, qn_slot_of(x, bucket)));
    QN_TRY(add_parts(x, bucket));
    return x->buckets.buckets[bucket].shared ? QN_OK : qn_exchange_owned(x, bucket, sizeof(float));
}

static qn_status write_bucket(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    const struct qn_numbers summed = x->buckets.buckets[bucket].shared
                                         ? qn_owned_numbers(x, bucket, x->transport->member)
                                         : all_numbers(x, bucket);
    QN_TRY(qn_slot_arrive(x, qn_slot_of(x, bucket)));
    return qn_exchange_slices(x, trainer, bucket, summed, write_slice);
}

static qn_status run_stages(struct qn_exchange *x, struct qn_trainer *trainer, double *computed)
{
    const int count = x->buckets.n_buckets;
    for (int b = 0; b < count + QN_SLOTS - 1; b++) {
        if (b < count)
            QN_TRY(read_bucket(x, trainer, b));
        if (b >= 1 && b - 1 < count)
            QN_TRY(exchange_parts(x, b - 1));
        if (b == count)
            *computed = qn_clock();
        if (b >= 2 && b - 2 < count)
            QN_TRY(exchange_sums(x, b - 2));
        if (b >= 3)
            QN_TRY(write_bucket(x, trainer, b - 3));
    }
    return QN_OK;
}

qn_status qn_exchange_gradients(void *user, struct qn_trainer *trainer)
{
    struct qn_exchange *x = user;
    double computed = x->began;
    QN_TRY(run_stages(x, trainer, &computed));
    x->figures.computed += computed - x->began;
    x->figures.waited += qn_clock() - computed;
    return QN_OK;
}
