/* SPDX-License-Identifier: MIT
 *
 * A member's side of adding up what all members have computed of a cycle. Every number is summed by
 * one owner, in the order of members, in f32, and sent to all: so all have the same bits, whatever
 * carries the messages.
 */
#ifndef QN_GROUP_EXCHANGE_H
#define QN_GROUP_EXCHANGE_H

#include "base/arena.h"
#include "cl/slab.h"
#include "group/buckets.h"
#include <quern/group.h>

enum { QN_SLOTS = 4 }; /* buckets on their way at the same time */

/* A bucket on its way. */
struct qn_slot {
    float *own;                    /* its numbers: this member's, then the sums of all */
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
    int64_t part; /* room for numbers in each part of a slot */
    double *told; /* weights of all members */
    double began; /* when the present cycle did */
    qn_group_figures figures;
    qn_reduce reduce; /* the table for cycles of the trainer */
    struct qn_arena arena;
};

/* For the trainer of a member; the transport is borrowed. QN_ERR_MEMORY. After a failure
 * qn_exchange_close is still to be called. */
qn_status qn_exchange_open(struct qn_exchange *exchange, struct qn_trainer *trainer,
                           const qn_transport *transport);
/* After a failure of this member or another: nothing is on its way any more. */
void qn_exchange_drain(struct qn_exchange *exchange);
void qn_exchange_close(struct qn_exchange *exchange);

#endif
