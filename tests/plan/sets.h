/* SPDX-License-Identifier: MIT
 *
 * A problem in sets of bits, for the exact search: one bit for each value that a forward task
 * writes. What backward tasks write lives from its write to its last use, whatever is recomputed,
 * and is a number of bytes at each place.
 */
#ifndef QN_TESTS_PLAN_SETS_H
#define QN_TESTS_PLAN_SETS_H

#include "plan/problem.h"

enum { TEST_MOST_VALUES = 64, TEST_BYTE = 256 };

struct test_action {
    int task;
    uint64_t reads, writes;
    double seconds;
    int64_t scratch;
    struct {
        uint64_t over; /* if this one dies here, its bytes serve in place of as many new ones */
        int64_t bytes;
    } in_place[QN_MAX_WRITES];
    int n_in_place;
};

/* The moments from behind one fixed task to the end of the next one. */
struct test_place {
    uint64_t direct; /* values that this fixed task or a later one reads */
    uint64_t useful; /* and those that such can be made of */
    uint64_t ahead;  /* values that this fixed task or a later one writes */
    int64_t before;  /* bytes written by backward tasks that live before the fixed task runs */
    int64_t during;  /* and while it runs */
    double seconds;  /* of this fixed task and all later ones */
};

struct test_sets {
    struct test_action *fixed; /* run once, in this order */
    struct test_action *movable;
    int n_fixed, n_movable;
    struct test_place *places; /* n_fixed and one, which is the end */
    uint64_t from_fixed;       /* values that fixed tasks write */
    int64_t bytes[TEST_MOST_VALUES], sum[TEST_MOST_VALUES / 8][TEST_BYTE];
};

/* Allocated from `arena`; aborts the test on failure. */
void test_sets_make(const struct qn_problem *problem, struct qn_arena *arena,
                    struct test_sets *sets);

static inline int64_t test_bytes_of(const struct test_sets *sets, uint64_t values)
{
    int64_t bytes = 0;
    for (int i = 0; values; i++, values >>= 8)
        bytes += sets->sum[i][values % TEST_BYTE];
    return bytes;
}

#endif
