/* SPDX-License-Identifier: MIT
 *
 * Every network that ships under random budgets: the bytes of all buffers, counted from outside by
 * clcount, are those of the plan and within the budget, and a trainer leaves none behind.
 *
 * Usage: test_run_bytes [NETWORK...]
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "shipped.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, BUDGETS = 10 };

static int64_t bytes_now(void)
{
    largest_since();
    return (int64_t)largest_since();
}

/* --- training --- */

/* What some of the plans do. */
struct tally {
    int recomputed, parked;
};

static void train(const struct shipped *network, const qn_graph *graph,
                  const qn_plan_params *params, struct tally *tally)
{
    const qn_cycle cycle = {BATCH, 0.01, shipped_fetch, (void *)network};
    assert_int_equal(bytes_now(), 0);
    struct test_run run = test_open(device, graph, params, NULL);
    const qn_plan_info info = *qn_plan_facts(run.plan);
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &(qn_metrics){0}), QN_OK);
    assert_int_equal(largest_since(), info.peak_bytes);
    assert_true(info.peak_bytes <= params->budget);
    test_close(&run);
    assert_int_equal(bytes_now(), 0);
    tally->recomputed += info.recomputed_steps > 0;
    tally->parked += info.parked_bytes > 0;
}

/* The smallest and the largest budget that matters. */
static void find_range(const qn_graph *graph, qn_plan_params params, int64_t range[2])
{
    qn_plan *plan;
    params.budget = INT64_C(1) << 40;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &params, NULL), QN_OK);
    range[0] = qn_plan_facts(plan)->smallest_budget;
    range[1] = qn_plan_facts(plan)->peak_bytes;
    qn_plan_destroy(&plan);
}

/* Whether the plan may park; if so it does not recompute, which mostly takes less time here. */
static void choose(qn_plan_params *params, bool park)
{
    params->park = park;
    params->recompute = park ? QN_RECOMPUTE_NONE : QN_RECOMPUTE_AUTO;
}

/* Half of the budgets at one micro-batch, where there is more to recompute. A third of all for
 * plans that may park. */
static struct tally check_network(const struct shipped *network, uint64_t number)
{
    qn_graph *graph = shipped_build(network, false);
    qn_plan_params params = {.batch = {BATCH}};
    int64_t ranges[2][2] = {{0}};
    struct tally tally = {0};
    for (int i = 0; i < BUDGETS; i++) {
        params.micro_batch = i < BUDGETS / 2 ? BATCH : 0;
        for (int park = 0; i % (BUDGETS / 2) == 0 && park < 2; park++) {
            choose(&params, park);
            find_range(graph, params, ranges[park]);
        }
        choose(&params, i % 3 == 0);
        const int64_t *range = ranges[params.park];
        params.budget = range[0] + (int64_t)(qn_random_uniform(7, number, (uint64_t)i) *
                                             (double)(range[1] - range[0]));
        train(network, graph, &params, &tally);
    }
    qn_graph_destroy(&graph);
    return tally;
}

/* Arguments: the networks to train; none: all. */
static char **chosen;

static void bytes_are_those_of_the_plan(void **state)
{
    (void)state;
    int plans = 0;
    struct tally all = {0};
    for (int i = 0; shipped[i].name; i++) {
        if (!test_chosen(chosen, shipped[i].name))
            continue;
        const struct tally some = check_network(&shipped[i], (uint64_t)i);
        print_message("  %s: %d of %d plans recompute, %d park\n", shipped[i].name, some.recomputed,
                      BUDGETS, some.parked);
        plans += BUDGETS;
        all.recomputed += some.recomputed;
        all.parked += some.parked;
    }
    print_message("  all: %d of %d, %d park\n", all.recomputed, plans, all.parked);
    assert_true(all.recomputed > plans / 3 && all.parked > plans / 10);
}

/* Nothing is tested where nobody counts. */
static int open_all(void **state)
{
    const int failed = open_counted(state);
    return largest_since ? failed : -1;
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_of_the_plan)};
    chosen = argv + 1;
    return cmocka_run_group_tests_name("bytes", tests, open_all, close_device);
}
