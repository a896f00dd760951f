/* SPDX-License-Identifier: MIT
 *
 * Buckets go through four stages, one after another, and several of them at the same time: reading
 * from the device, parts to their owners, sums to all, writing to the device. Each begins to be
 * read when its gradients are complete, while the rest of the backward pass runs.
 */
#include "group/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "run/trainer.h"

#include <string.h>

enum { BUCKET_NUMBERS = 1 << 18 }; /* 1 MiB */

/* --- messages --- */

static qn_status begin_send(struct qn_exchange *x, struct qn_slot *slot, int to,
                            const float *numbers, int64_t count)
{
    const int64_t bytes = count * (int64_t)sizeof *numbers;
    x->figures.bytes_sent += bytes;
    return count ? x->transport->send(x->transport->user, to, numbers, bytes,
                                      &slot->tickets[slot->n_tickets++])
                 : QN_OK;
}

static qn_status begin_receive(struct qn_exchange *x, struct qn_slot *slot, int from,
                               float *numbers, int64_t count)
{
    const int64_t bytes = count * (int64_t)sizeof *numbers;
    return count ? x->transport->receive(x->transport->user, from, numbers, bytes,
                                         &slot->tickets[slot->n_tickets++])
                 : QN_OK;
}

static qn_status wait_tickets(struct qn_exchange *x, struct qn_slot *slot)
{
    qn_status status = QN_OK;
    for (int i = 0; i < slot->n_tickets; i++) {
        const qn_status one = x->transport->wait(x->transport->user, &slot->tickets[i]);
        status = status == QN_OK ? one : status;
    }
    slot->n_tickets = 0;
    return status;
}

static qn_status wait_transfers(struct qn_exchange *x, struct qn_slot *slot)
{
    qn_status status = QN_OK;
    while (slot->n_transfers > 0) {
        const qn_status one = qn_transfer_wait(x->device, &slot->transfers[--slot->n_transfers]);
        status = status == QN_OK ? one : status;
    }
    return status;
}

/* --- the stages of a bucket --- */

static struct qn_slot *slot_of(struct qn_exchange *x, int bucket)
{
    return &x->slots[bucket % QN_SLOTS];
}

/* What a member owns of a bucket. */
struct range {
    int64_t first, count;
};

static struct range owned(const struct qn_exchange *x, int bucket, int member)
{
    const struct qn_bucket *b = &x->buckets.buckets[bucket];
    const int64_t first = qn_bucket_part(b, member, x->transport->members);
    return (struct range){first, qn_bucket_part(b, member + 1, x->transport->members) - first};
}

static qn_status read_bucket(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    const struct qn_bucket *b = &x->buckets.buckets[bucket];
    struct qn_slot *slot = slot_of(x, bucket);
    float *to = slot->own;
    QN_TRY(wait_transfers(x, slot)); /* of the bucket that had the slot before */
    for (int p = b->first_piece; p < b->first_piece + b->n_pieces; p++) {
        const qn_reduce_slice slice = qn_piece_slice(&x->buckets, &x->buckets.pieces[p]);
        QN_TRY(qn_slices_read(trainer, &slice, to, &x->marks[bucket],
                              &slot->transfers[slot->n_transfers++]));
        to += slice.count;
    }
    return QN_OK;
}

/* In round r member i sends to i + r and receives from i - r, so that no link waits for another. */
static qn_status exchange_parts(struct qn_exchange *x, int bucket)
{
    const int self = x->transport->member, members = x->transport->members;
    struct qn_slot *slot = slot_of(x, bucket);
    QN_TRY(wait_transfers(x, slot));
    QN_TRY(qn_transfer_wait(x->device, &x->marks[bucket]));
    const struct range mine = owned(x, bucket, self);
    for (int r = 1; r < members; r++) {
        const int to = (self + r) % members, from = (self + members - r) % members;
        const struct range theirs = owned(x, bucket, to);
        QN_TRY(begin_send(x, slot, to, slot->own + theirs.first, theirs.count));
        QN_TRY(begin_receive(x, slot, from, slot->parts + from * x->part, mine.count));
    }
    return QN_OK;
}

/* Of this member's own range, in the order of members. */
static void add_parts(const struct qn_exchange *x, struct qn_slot *slot, struct range mine)
{
    const int self = x->transport->member, members = x->transport->members;
    float *sum = slot->parts + self * x->part, *own = slot->own + mine.first;
    memcpy(sum, self == 0 ? own : slot->parts, (size_t)mine.count * sizeof *sum);
    for (int m = 1; m < members; m++) {
        const float *part = m == self ? own : slot->parts + m * x->part;
        for (int64_t i = 0; i < mine.count; i++)
            sum[i] += part[i];
    }
    memcpy(own, sum, (size_t)mine.count * sizeof *sum);
}

static qn_status exchange_sums(struct qn_exchange *x, int bucket)
{
    const int self = x->transport->member, members = x->transport->members;
    struct qn_slot *slot = slot_of(x, bucket);
    QN_TRY(wait_tickets(x, slot));
    const struct range mine = owned(x, bucket, self);
    add_parts(x, slot, mine);
    for (int r = 1; r < members; r++) {
        const int to = (self + r) % members, from = (self + members - r) % members;
        const struct range theirs = owned(x, bucket, from);
        QN_TRY(begin_send(x, slot, to, slot->own + mine.first, mine.count));
        QN_TRY(begin_receive(x, slot, from, slot->own + theirs.first, theirs.count));
    }
    return QN_OK;
}

static qn_status write_bucket(struct qn_exchange *x, struct qn_trainer *trainer, int bucket)
{
    const struct qn_bucket *b = &x->buckets.buckets[bucket];
    struct qn_slot *slot = slot_of(x, bucket);
    const float *from = slot->own;
    QN_TRY(wait_tickets(x, slot));
    for (int p = b->first_piece; p < b->first_piece + b->n_pieces; p++) {
        const qn_reduce_slice slice = qn_piece_slice(&x->buckets, &x->buckets.pieces[p]);
        QN_TRY(qn_slices_write(trainer, &slice, from, &slot->transfers[slot->n_transfers++]));
        from += slice.count;
    }
    return QN_OK;
}

/* --- the table --- */

static qn_status add_weights(void *user, double *weights, int count)
{
    struct qn_exchange *x = user;
    const qn_transport *t = x->transport;
    const int64_t bytes = count * (int64_t)sizeof *weights;
    QN_TRY(t->gather(t->user, weights, bytes, x->told));
    x->figures.bytes_told += bytes;
    for (int i = 0; i < count; i++) {
        weights[i] = 0;
        for (int m = 0; m < t->members; m++)
            weights[i] += x->told[m * count + i];
    }
    for (int b = 0; b < x->buckets.n_buckets; b++)
        x->waiting[b] = x->buckets.buckets[b].n_pieces;
    x->began = qn_clock();
    return QN_OK;
}

static qn_status begin_slice(void *user, qn_trainer *trainer, const qn_reduce_slice *slice)
{
    struct qn_exchange *x = user;
    const struct qn_buckets *all = &x->buckets;
    for (int b = 0; b < all->n_buckets; b++) {
        const struct qn_bucket *bucket = &all->buckets[b];
        for (int p = bucket->first_piece; p < bucket->first_piece + bucket->n_pieces; p++) {
            const qn_reduce_slice *of = &all->slices[all->pieces[p].slice];
            if (of->array != slice->array || of->first != slice->first || --x->waiting[b] > 0)
                continue;
            QN_TRY(qn_slices_mark(trainer, &x->marks[b]));
        }
    }
    return QN_OK;
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

static qn_status finish(void *user, qn_trainer *trainer)
{
    struct qn_exchange *x = user;
    double computed = x->began;
    QN_TRY(run_stages(x, trainer, &computed));
    x->figures.computed += computed - x->began;
    x->figures.waited += qn_clock() - computed;
    return QN_OK;
}

/* --- opening --- */

static qn_status pack(struct qn_exchange *x, const struct qn_trainer *trainer)
{
    int gradients = 0;
    struct qn_buckets *b = &x->buckets;
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int p = 0; p < persist->n_parameters; p++)
        gradients += persist->parameters[p].trainable;
    b->n_slices = qn_slices_list(trainer, NULL, 0);
    b->slices = qn_arena_new(&x->arena, qn_reduce_slice, (size_t)b->n_slices + 1);
    if (!b->slices)
        return QN_ERR_MEMORY;
    qn_slices_list(trainer, b->slices, b->n_slices);
    return qn_buckets_pack(b, &x->arena, b->n_slices - gradients, BUCKET_NUMBERS) ? QN_OK
                                                                                  : QN_ERR_MEMORY;
}

static int most_pieces(const struct qn_buckets *buckets)
{
    int most = 0;
    for (int b = 0; b < buckets->n_buckets; b++)
        most = buckets->buckets[b].n_pieces > most ? buckets->buckets[b].n_pieces : most;
    return most;
}

static bool open_slot(struct qn_exchange *x, struct qn_slot *slot)
{
    const size_t members = (size_t)x->transport->members, part = (size_t)x->part;
    slot->own = qn_arena_new(&x->arena, float, (size_t)x->buckets.largest + 1);
    slot->parts = qn_arena_new(&x->arena, float, members *part);
    slot->transfers =
        qn_arena_new(&x->arena, struct qn_transfer, (size_t)most_pieces(&x->buckets) + 1);
    slot->tickets = qn_arena_new(&x->arena, void *, 2 * members);
    return slot->own && slot->parts && slot->transfers && slot->tickets;
}

static bool open_rooms(struct qn_exchange *x)
{
    const size_t members = (size_t)x->transport->members;
    bool complete = true;
    x->part = x->buckets.largest / (int64_t)members + 1;
    x->marks = qn_arena_new(&x->arena, struct qn_transfer, (size_t)x->buckets.n_buckets + 1);
    x->waiting = qn_arena_new(&x->arena, int, (size_t)x->buckets.n_buckets + 1);
    x->told = qn_arena_new(&x->arena, double, members *QN_METRICS_LOSSES);
    for (int s = 0; s < QN_SLOTS; s++)
        complete &= open_slot(x, &x->slots[s]);
    return complete && x->marks && x->waiting && x->told;
}

qn_status qn_exchange_open(struct qn_exchange *x, struct qn_trainer *trainer,
                           const qn_transport *transport)
{
    *x = (struct qn_exchange){.transport = transport,
                              .device = trainer->device,
                              .reduce = {x, add_weights, begin_slice, finish}};
    if (pack(x, trainer) != QN_OK || !open_rooms(x))
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "group: out of host memory");
    return QN_OK;
}

void qn_exchange_drain(struct qn_exchange *x)
{
    for (int s = 0; s < QN_SLOTS; s++) {
        if (x->transport)
            wait_tickets(x, &x->slots[s]);
        wait_transfers(x, &x->slots[s]);
    }
    for (int b = 0; x->marks && b < x->buckets.n_buckets; b++)
        qn_transfer_wait(x->device, &x->marks[b]);
}

void qn_exchange_close(struct qn_exchange *x)
{
    qn_exchange_drain(x);
    qn_arena_free(&x->arena);
}
