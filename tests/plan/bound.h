/* SPDX-License-Identifier: MIT
 *
 * What no plan is better than.
 */
#ifndef QN_TESTS_PLAN_BOUND_H
#define QN_TESTS_PLAN_BOUND_H

#include "plan/problem.h"

/* Every list of steps of the problem, in the order of its backward tasks, that needs at most so
 * many bytes, with those of persistent values, runs forward tasks again for at least that many
 * seconds; INFINITY: there is no such list. Aborts the test when out of memory. */
double test_least_recompute(const struct qn_problem *problem, int64_t bytes);

#endif
