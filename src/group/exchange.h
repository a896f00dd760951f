/* SPDX-License-Identifier: MIT
 *
 * A member's side of adding up what all members have computed of a cycle. Every number is summed by
 * one owner, in the order of members, in f32, and sent to all: so all have the same bits, whatever
 * carries the messages. Where members share the optimizer's work the owner of a sum keeps it,
 * updates its parameter and sends that. Buckets go through stages, several of them at the same
 * time, each in a slot.
 */
#ifndef QN_GROUP_EXCHANGE_H
#define QN_GROUP_EXCHANGE_H

#include "base/arena.h"
#include "cl/slab.h"
#include "group/buckets.h"
#include <quern/group.h>

enum { QN_MEMBER_LINE = 1024 }; /* bytes of why a member failed */
enum { QN_SLOTS = 4 };          /* buckets on their way at the same time */

/* A bucket on its way. */
struct qn_slot {
    float *own;                    /* its numbers: this member's, then the sums of all; or, in
                                      their own type, its parameters */
    float *parts;                  /* of what this member owns, from each member */
    struct qn_transfer *transfers; /* of its pieces, from or to the device */
    void **tickets;
    int n_transfers, n_tickets;
};

struct qn_exchange {
    const qn_transport *transport;
    qn_device *device;
    struct qn_buckets buckets;
    struct qn_transfer *marks; /* by bucket: its numbers are complete */
    int *waiting;              /* by bucket: pieces that are not begun */
    struct qn_slot slots[QN_SLOTS];
    int64_t part;           /* room for numbers in each part of a slot */
    double *told;           /* weights of all members */
    const int64_t *samples; /* of each member in the present cycle, borrowed from the group */
    qn_reduce_slice *whole; /* numbers that each member computes of all samples */
    int n_whole;
    unsigned char *rows; /* room for those of a cell */
    float *norms; /* of chunks: the most that a member has, and so many of each; then of all */
    int most_norms;
    double began; /* when the present cycle did */
    qn_group_figures figures;
    qn_reduce reduce; /* the table for cycles of the trainer */
    struct qn_arena arena;
};

/* For the trainer of a member; transport and `samples` are borrowed. QN_ERR_MEMORY. After a failure
 * qn_exchange_close is still to be called. */
qn_status qn_exchange_open(struct qn_exchange *exchange, struct qn_trainer *trainer,
                           const qn_transport *transport, const int64_t *samples);
/* After a failure of this member or another: nothing is on its way any more. */
void qn_exchange_drain(struct qn_exchange *exchange);
void qn_exchange_close(struct qn_exchange *exchange);

/* --- stages --- */

static inline struct qn_slot *qn_slot_of(struct qn_exchange *x, int bucket)
{
    return &x->slots[bucket % QN_SLOTS];
}

/* Begins a message, if it has bytes; waits for all that were begun, and for the transfers. */
qn_status qn_slot_send(struct qn_exchange *x, struct qn_slot *slot, int to, const void *numbers,
                       int64_t bytes);
qn_status qn_slot_receive(struct qn_exchange *x, struct qn_slot *slot, int from, void *numbers,
                          int64_t bytes);
qn_status qn_slot_arrive(struct qn_exchange *x, struct qn_slot *slot);
qn_status qn_slot_settle(struct qn_exchange *x, struct qn_slot *slot);

/* Neighbouring numbers of a bucket. */
struct qn_numbers {
    int64_t first, count;
};
/* Those that a member owns. */
struct qn_numbers qn_owned_numbers(const struct qn_exchange *x, int bucket, int member);
/* Has `work` done for the slices that lie in `numbers` of a bucket, each from number `at` of it. */
typedef qn_status (*qn_slice_work)(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                                   const qn_reduce_slice *slice, int64_t at);
qn_status qn_exchange_slices(struct qn_exchange *x, struct qn_trainer *trainer, int bucket,
                             struct qn_numbers numbers, qn_slice_work work);

/* Begins to send this member's numbers of a bucket, of `size` bytes each, to all, and to receive
 * theirs: all in slot->own, each in its place. */
qn_status qn_exchange_owned(struct qn_exchange *x, int bucket, int64_t size);

/* What `reduce` does after the last micro-step (gradients.c), and where members share the
 * optimizer's work before and after the update (parameters.c); `user` is the exchange. */
qn_status qn_exchange_gradients(void *user, struct qn_trainer *trainer);
qn_status qn_exchange_norms(void *user, struct qn_trainer *trainer);
qn_status qn_exchange_parameters(void *user, struct qn_trainer *trainer);
/* Brings the rows of all members into a cell of samples (rows.c). */
qn_status qn_exchange_rows(void *user, struct qn_trainer *trainer, const char *cell);
/* The first member that has samples. */
int qn_first_member(const struct qn_exchange *x);
/* Host memory for rows; for norms. False: out of memory. */
bool qn_exchange_open_rows(struct qn_exchange *x, const struct qn_trainer *trainer);
bool qn_exchange_open_norms(struct qn_exchange *x, const struct qn_shard *shard, int chunks);

#endif
