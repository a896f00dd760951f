/* SPDX-License-Identifier: MIT
 *
 * How the slices of a cycle's gradient are packed for the way between members: in buckets of some
 * bytes, the same ones in the same order for every member, whatever its plan is.
 */
#ifndef QN_GROUP_BUCKETS_H
#define QN_GROUP_BUCKETS_H

#include "base/arena.h"
#include "plan/problem.h"
#include <quern/train.h>

/* Neighbouring numbers of a slice. */
struct qn_piece {
    int slice;
    int64_t first, count; /* in the slice */
};

struct qn_bucket {
    int first_piece, n_pieces;
    int64_t count; /* numbers of all its pieces, which lie one after another */
    int64_t *part; /* by member: its first number; one more than there are members */
    bool shared;   /* sums stay with their owners, who send the parameters that they update */
};

struct qn_buckets {
    qn_reduce_slice *slices;
    int n_slices;
    struct qn_piece *pieces;
    struct qn_bucket *buckets;
    int64_t *parts; /* of all buckets */
    int n_pieces, n_buckets, members;
    int64_t largest; /* numbers of a bucket */
};

/* Packs slices from the last to the first, which is about the order in which gradients are
 * complete; the last `rest` of them, which are complete with the cycle alone, come last. Members
 * own about equal parts of each bucket, or the ranges of the shard where they share the optimizer's
 * work; the first slices are then those of the parameters that `persist` trains. `most`: numbers of
 * a bucket. False: out of memory. */
bool qn_buckets_pack(struct qn_buckets *buckets, struct qn_arena *arena,
                     const struct qn_persist *persist, int rest, int64_t most);

/* The part of a piece that lies in a range of its bucket's numbers, as a slice; `at`: where the
 * range has it. Of count 0: nothing. `before`: numbers of the bucket before the piece. */
qn_reduce_slice qn_piece_slice(const struct qn_buckets *buckets, const struct qn_piece *piece,
                               int64_t before, int64_t first, int64_t count, int64_t *at);

#endif
