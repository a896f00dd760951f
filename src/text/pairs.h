/* SPDX-License-Identifier: MIT
 *
 * A table from pairs of token ids to two numbers. A zeroed struct is empty. Thread-safety: Unsafe
 * for adding, Safe for reading.
 */
#ifndef QN_TEXT_PAIRS_H
#define QN_TEXT_PAIRS_H

#include <stddef.h>
#include <stdint.h>

struct qn_pair {
    int32_t left, right; /* left < 0: a free place */
    int64_t count;
    int32_t rank, id;
};

struct qn_pairs {
    struct qn_pair *place; /* (places): open addressing */
    size_t places, count;
};

/* The pair, which is added with numbers of 0 if it is not there; NULL: out of memory. Valid until
 * the next one is added. */
struct qn_pair *qn_pairs_add(struct qn_pairs *pairs, int32_t left, int32_t right);
/* NULL: it is not there. */
const struct qn_pair *qn_pairs_find(const struct qn_pairs *pairs, int32_t left, int32_t right);
void qn_pairs_free(struct qn_pairs *pairs);

#endif
