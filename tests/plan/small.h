/* SPDX-License-Identifier: MIT
 *
 * Graphs of at most twenty operators whose sizes are drawn at random: for tests that compare plans
 * with the best there can be.
 */
#ifndef QN_TESTS_PLAN_SMALL_H
#define QN_TESTS_PLAN_SMALL_H

#include <quern/quern.h>

/* X(name): chains, and graphs in which values are read far from where they are made. */
#define TEST_SMALL_KINDS(X) X(perceptron) X(convnet) X(residual) X(unet) X(transformer) X(tangle)

enum test_small_kind {
#define TEST_SMALL_ENUM(name) TEST_SMALL_##name,
    TEST_SMALL_KINDS(TEST_SMALL_ENUM)
#undef TEST_SMALL_ENUM
        TEST_SMALL_COUNT
};

const char *test_small_name(enum test_small_kind kind);

/* The same for the same seed; aborts the test on failure. */
qn_graph *test_small_graph(enum test_small_kind kind, uint64_t seed);
/* `length` products and nonlinear functions in turn. */
qn_graph *test_small_chain(int length, uint64_t seed);

#endif
