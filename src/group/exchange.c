/* SPDX-License-Identifier: MIT
 *
 * What the stages of an exchange share: messages, transfers and the rooms of buckets; and the sums
 * of weights.
 */
#include "group/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "run/trainer.h"

#include <stdio.h>

enum { BUCKET_NUMBERS = QN_BUCKET_BYTES / (int)sizeof(float) };

/* --- messages --- */

qn_status qn_slot_send(struct qn_exchange *x, struct qn_slot *slot, int to, const void *numbers,
                       int64_t bytes)
{
    x->figures.bytes_sent += bytes;
    return bytes ? x->transport->send(x->transport->user, to, numbers, bytes,
                                      &slot->tickets[slot->n_tickets++])
                 : QN_OK;
}

qn_status qn_slot_receive(struct qn_exchange *x, struct qn_slot *slot, int from, void *numbers,
                          int64_t bytes)
{
    return bytes ? x->transport->receive(x->transport->user, from, numbers, bytes,
                                         &slot->tickets[slot->n_tickets++])
                 : QN_OK;
}

/* All are waited for; of several that fail, status and line are those of the first. */
qn_status qn_slot_arrive(struct qn_exchange *x, struct qn_slot *slot)
{
    qn_status status = QN_OK;
    char line[QN_MEMBER_LINE] = "";
    for (int i = 0; i < slot->n_tickets; i++) {
        const qn_status one = x->transport->wait(x->transport->user, &slot->tickets[i]);
        if (status == QN_OK && one != QN_OK)
            snprintf(line, sizeof line, "%s", qn_last_error());
        status = status == QN_OK ? one : status;
    }
    slot->n_tickets = 0;
    return status == QN_OK ? QN_OK : qn_transport_error(status, line);
}

qn_status qn_slot_settle(struct qn_exchange *x, struct qn_slot *slot)
{
    qn_status status = QN_OK;
    while (slot->n_transfers > 0) {
        const qn_status one = qn_transfer_wait(x->device, &slot->transfers[--slot->n_transfers]);
        status = status == QN_OK ? one : status;
    }
    return status;
}

/* --- numbers of a bucket --- */

struct qn_numbers qn_owned_numbers(const struct qn_exchange *x, int bucket, int member)
{
    const int64_t *part = x->buckets.buckets[bucket].part;
    return (struct qn_numbers){part[member], part[member + 1] - part[member]};
}

qn_status qn_exchange_slices(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                             struct qn_numbers numbers, qn_slice_work work)
{
    const struct qn_bucket *b = &x->buckets.buckets[bucket];
    const struct qn_piece *piece = &x->buckets.pieces[b->first_piece];
    int64_t before = 0, at;
    for (int p = 0; p < b->n_pieces; p++, piece++) {
        const qn_reduce_slice slice =
            qn_piece_slice(&x->buckets, piece, before, numbers.first, numbers.count, &at);
        if (slice.count)
            QN_TRY(work(x, trainer, bucket, &slice, numbers.first + at));
        before += piece->count;
    }
    return QN_OK;
}

/* In round r member i sends to i + r and receives from i - r, so that no link waits for another. */
qn_status qn_exchange_owned(struct qn_exchange *x, int bucket, int64_t size)
{
    const int self = x->transport->member, members = x->transport->members;
    const struct qn_numbers mine = qn_owned_numbers(x, bucket, self);
    struct qn_slot *slot = qn_slot_of(x, bucket);
    char *room = (char *)slot->own;
    for (int r = 1; r < members; r++) {
        const int to = (self + r) % members, from = (self + members - r) % members;
        const struct qn_numbers theirs = qn_owned_numbers(x, bucket, from);
        QN_TRY(qn_slot_send(x, slot, to, room + mine.first * size, mine.count * size));
        QN_TRY(qn_slot_receive(x, slot, from, room + theirs.first * size, theirs.count * size));
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
    b->members = x->transport->members;
    return qn_buckets_pack(b, &x->arena, persist, b->n_slices - gradients, BUCKET_NUMBERS)
               ? QN_OK
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
        qn_arena_new(&x->arena, struct qn_transfer, (size_t)most_pieces(&x->buckets) + 2);
    slot->tickets = qn_arena_new(&x->arena, void *, 2 * members);
    return slot->own && slot->parts && slot->transfers && slot->tickets;
}

/* The most numbers of a bucket that this member owns. */
static int64_t most_owned(const struct qn_exchange *x)
{
    int64_t most = 0;
    for (int b = 0; b < x->buckets.n_buckets; b++) {
        const int64_t count = qn_owned_numbers(x, b, x->transport->member).count;
        most = count > most ? count : most;
    }
    return most;
}

static bool open_rooms(struct qn_exchange *x, const struct qn_persist *persist)
{
    const size_t members = (size_t)x->transport->members;
    bool complete =
        !persist->shard.members || qn_exchange_open_norms(x, &persist->shard, persist->n_chunks);
    x->part = most_owned(x) + 1;
    x->marks = qn_arena_new(&x->arena, struct qn_transfer, (size_t)x->buckets.n_buckets + 1);
    x->waiting = qn_arena_new(&x->arena, int, (size_t)x->buckets.n_buckets + 1);
    x->told = qn_arena_new(&x->arena, double, members *QN_METRICS_LOSSES);
    for (int s = 0; s < QN_SLOTS; s++)
        complete &= open_slot(x, &x->slots[s]);
    return complete && x->marks && x->waiting && x->told;
}

/* Lists the numbers that each member computes of all samples. */
static bool list_whole(struct qn_exchange *x, const struct qn_trainer *trainer)
{
    x->n_whole = qn_slices_whole(trainer, NULL, 0);
    x->whole = qn_arena_new(&x->arena, qn_reduce_slice, (size_t)x->n_whole + 1);
    if (x->whole)
        qn_slices_whole(trainer, x->whole, x->n_whole);
    return x->whole;
}

qn_status qn_exchange_open(struct qn_exchange *x, struct qn_trainer *trainer,
                           const qn_transport *transport, const int64_t *samples)
{
    *x = (struct qn_exchange){.transport = transport,
                              .samples = samples,
                              .device = trainer->device,
                              .reduce = {x, add_weights, begin_slice, qn_exchange_gradients,
                                         qn_exchange_norms, qn_exchange_parameters,
                                         qn_exchange_rows}};
    if (pack(x, trainer) != QN_OK || !open_rooms(x, &trainer->plan->persist) ||
        !list_whole(x, trainer) || !qn_exchange_open_rows(x, trainer))
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "group: out of host memory");
    return QN_OK;
}

void qn_exchange_drain(struct qn_exchange *x)
{
    for (int s = 0; s < QN_SLOTS; s++) {
        if (x->transport)
            qn_slot_arrive(x, &x->slots[s]);
        qn_slot_settle(x, &x->slots[s]);
    }
    for (int b = 0; x->marks && b < x->buckets.n_buckets; b++)
        qn_transfer_wait(x->device, &x->marks[b]);
}

void qn_exchange_close(struct qn_exchange *x)
{
    qn_exchange_drain(x);
    qn_arena_free(&x->arena);
}
