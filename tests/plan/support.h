/* SPDX-License-Identifier: MIT
 *
 * Graphs for planner tests, and the invariants that every plan must keep.
 */
#ifndef QN_TESTS_PLAN_SUPPORT_H
#define QN_TESTS_PLAN_SUPPORT_H

#include "plan/plan.h"
#include <quern/model.h>

/* The device of planner tests: numbers that no machine changes. */
struct qn_facts test_facts(void);

/* A model that ships, for 28 x 28 images; aborts the test on failure. */
qn_graph *test_model(const char *name, const qn_model_option *options, int n_options);

/* A chain of `length` matrix products and sigmoids of `width` features. */
qn_graph *test_chain(int length, int64_t width);

/* Plans or aborts the test. */
qn_plan *test_plan(const qn_graph *graph, const qn_plan_params *params);

/* Budgets of the points of a frontier that are wanted, upwards. */
enum { TEST_MOST_POINTS = 800 };
struct test_budgets {
    int64_t bytes[TEST_MOST_POINTS];
    int count;
};
struct test_budgets test_budgets(const qn_graph *graph, const qn_plan_params *params,
                                 bool (*wanted)(const qn_plan_point *point));

/* Storages alive together never overlap and stay inside their pools; every step reads storages that
 * are alive; the sum of live bytes is what the program says; the peak is within the budget. */
void test_invariants(const qn_plan *plan);

/* Runs the step lists on poisoned memory: each value is one number kept at every unit of its bytes,
 * and poison follows where a storage ends. False when a step reads anything but the value meant. */
bool test_runs_on_poison(const qn_plan *plan);
/* The same; aborts the test on false. */
void test_interpret(const qn_plan *plan);

/* Lays out what is persistent of a graph that trains. */
void test_persist(const struct qn_lowering *how, const qn_graph *graph, struct qn_persist *persist);

#endif
