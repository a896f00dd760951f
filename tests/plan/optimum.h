/* SPDX-License-Identifier: MIT
 *
 * The fastest step list of all within a number of bytes, by an exact search that the planner has no
 * part in: for small problems.
 */
#ifndef QN_TESTS_PLAN_OPTIMUM_H
#define QN_TESTS_PLAN_OPTIMUM_H

#include "plan/program/schedule.h"

enum test_verdict {
    TEST_FOUND,
    TEST_NONE,    /* no list within the bytes is that fast */
    TEST_GAVE_UP, /* too many states */
};

struct test_optimum {
    enum test_verdict verdict;
    struct qn_steps steps;
    int states; /* that were met */
};

/* Of all lists that run backward tasks, uploads and tasks that must not repeat once and in their
 * order, and every other forward task anywhere and as often as it likes, the fastest one that has
 * at most `most` live bytes (of the micro-step alone) at any moment and takes at most `slowest`
 * seconds. Allocated from `arena`. */
struct test_optimum test_find_optimum(const struct qn_problem *problem, int64_t most,
                                      double slowest, struct qn_arena *arena);

#endif
