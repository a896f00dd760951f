/* SPDX-License-Identifier: MIT
 *
 * How the slices of a cycle's gradient are packed for the way between members: in buckets of some
 * bytes, the same ones in the same order for every member, whatever its plan is.
 */
#ifndef QN_GROUP_BUCKETS_H
#define QN_GROUP_BUCKETS_H

#include "base/arena.h"
#include <quern/train.h>

/* Neighbouring numbers of a slice. */
struct qn_piece {
    int slice;
    int64_t first, count; /* in the slice */
};

struct qn_bucket {
    int first_piece, n_pieces;
    int64_t count; /* numbers of all its pieces, which lie one after another */
};

struct qn_buckets {
    qn_reduce_slice *slices;
    int n_slices;
    struct qn_piece *pieces;
    struct qn_bucket *buckets;
    int n_pieces, n_buckets;
    int64_t largest; /* numbers of a bucket */
};

/* Packs slices from the last to the first, which is about the order in which gradients are
 * complete; the last `rest` of them, which are complete with the cycle alone, come last. `most`:
 * numbers of a bucket. False: out of memory. */
bool qn_buckets_pack(struct qn_buckets *buckets, struct qn_arena *arena, int rest, int64_t most);

/* The numbers of the bucket that a member owns: from this one on to that of the next member. */
static inline int64_t qn_bucket_part(const struct qn_bucket *bucket, int member, int members)
{
    return bucket->count / members * member + bucket->count % members * member / members;
}

/* A piece, as a slice. */
qn_reduce_slice qn_piece_slice(const struct qn_buckets *buckets, const struct qn_piece *piece);

#endif
