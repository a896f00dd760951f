/* SPDX-License-Identifier: MIT
 *
 * The order of samples: position p of the endless stream lies in epoch p / n, and each epoch is a
 * permutation of the n samples drawn from (seed, epoch).
 */
#ifndef QN_DATA_ORDER_H
#define QN_DATA_ORDER_H

#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Holds the permutations of the two epochs last asked for.
 * Thread-safety: Unsafe. Lifetime: until qn_order_free; a zeroed struct is none. */
struct qn_order {
    uint64_t seed;
    int64_t count;
    bool sequential;
    uint32_t *index[2]; /* of an even and of an odd epoch */
    int64_t epoch[2];   /* -1: none yet */
};

/* At most 2^32 - 1 samples. Allocates all that is ever needed. */
qn_status qn_order_make(struct qn_order *order, uint64_t seed, int64_t count, bool sequential,
                        const struct qn_log *log);
void qn_order_free(struct qn_order *order);

/* The sample at a position, which is not negative. */
int64_t qn_order_at(struct qn_order *order, int64_t position);

#endif
