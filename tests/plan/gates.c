/* SPDX-License-Identifier: MIT
 *
 * What planning reaches on the networks of published planners, at their micro-batches and at costs
 * that were measured: the slow-down at a share of the bytes that keeping everything needs. Prints a
 * table beside theirs and what is out of reach for any plan; fails where a plan is slower than it
 * has been, or faster than it can be.
 *
 * Usage: test_plan_gates [default|thorough [NAME...]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bound.h"
#include "graphs/networks.h"
#include "support.h"

#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double ROUNDING = 1e-3; /* percent */

/* --- inputs --- */

static char *read_costs(const struct network *network)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.json", TEST_GRAPHS, network->name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_in_range(fread(text, 1, 1 << 20, file), 1, (1 << 20) - 1);
    fclose(file);
    return text;
}

static qn_plan *make(const qn_graph *graph, const qn_plan_params *params)
{
    qn_plan *plan = NULL;
    qn_facts facts = test_facts();
    facts.max_alloc_bytes = INT64_C(8) << 30;
    facts.global_bytes = INT64_C(256) << 30;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, params, NULL), QN_OK);
    return plan;
}

/* --- the table --- */

/* What keeping everything needs, and the part of it that the shares are of. */
struct whole {
    int64_t peak, part;
    double seconds;
};

static struct whole keep_all(const qn_graph *graph, qn_plan_params params, bool activations)
{
    params.recompute = QN_RECOMPUTE_NONE;
    params.early_updates = false;
    qn_plan *plan = make(graph, &params);
    const qn_plan_info *info = qn_plan_facts(plan);
    const struct whole whole = {
        info->peak_bytes, activations ? activation_bytes(info) : info->peak_bytes, info->seconds};
    qn_plan_destroy(&plan);
    return whole;
}

/* The fastest within the bytes; where there is none, the smallest. */
static const qn_plan_point *point_for(const qn_plan_point *points, int count, int64_t bytes)
{
    int at = 0;
    while (at + 1 < count && points[at + 1].bytes <= bytes)
        at++;
    return &points[at];
}

static int64_t bytes_of(const struct whole *whole, double percent)
{
    return whole->peak - whole->part + (int64_t)((double)whole->part * percent / 100);
}

static double percent_of(const struct whole *whole, int64_t bytes)
{
    return 100.0 * (double)(bytes - whole->peak + whole->part) / (double)whole->part;
}

/* Percent that any plan is slower than keeping everything: early updates, where they are allowed,
 * need the fewest bytes. */
static double least_percent(const qn_graph *graph, qn_plan_params params, const struct whole *whole,
                            int64_t bytes)
{
    params.effort = QN_EFFORT_INSTANT;
    qn_plan *plan = make(graph, &params);
    params.budget = qn_plan_facts(plan)->smallest_budget;
    qn_plan_destroy(&plan);
    plan = make(graph, &params);
    const double seconds = test_least_recompute(plan->program.phases[0].problem, bytes);
    qn_plan_destroy(&plan);
    return 100 * seconds / whole->seconds;
}

/* Whether it is slower than it has been, or faster than it can be. */
static bool print_row(const struct network *network, const qn_plan_point *points, int count,
                      const struct whole *whole, double least, int i, bool thorough)
{
    const double share = network->share[i].percent, gate = network->share[i].gate;
    const int64_t bytes = bytes_of(whole, share);
    const qn_plan_point *point = point_for(points, count, bytes);
    const double slower = 100 * (point->seconds / whole->seconds - 1);
    printf("  %3.0f %%  %+7.2f %%  any plan %+6.2f %%  gate %4.1f %%  ", share, slower, least,
           gate);
    if (point->bytes > bytes)
        printf("bound: %.1f %%\n", percent_of(whole, point->bytes));
    else
        printf("%s\n", slower <= gate ? "met" : least > gate ? "out of reach" : "missed");
    return slower > (thorough ? network->share[i].thorough : network->share[i].usual) ||
           (point->bytes <= bytes && slower < least - ROUNDING);
}

static int check(const struct network *network, qn_plan_effort effort)
{
    enum { MOST_POINTS = 1000 };
    static qn_plan_point points[MOST_POINTS];
    const clock_t start = clock();
    char *costs = read_costs(network);
    qn_graph *graph = network_graph(network);
    const qn_plan_params params = {.budget = INT64_C(200) << 30,
                                   .batch = {network->batch},
                                   .micro_batch = network->batch,
                                   .effort = effort,
                                   .early_updates = !network->activations,
                                   .tuning = costs};
    const struct whole whole = keep_all(graph, params, network->activations);
    qn_plan *plan = make(graph, &params);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    int slower = 0;
    assert_in_range(count, 1, MOST_POINTS);
    printf("%s: keeping all %.2f GiB, %.2f s; planned in %.1f s\n", network->title,
           (double)whole.peak / (1 << 30), whole.seconds,
           (double)(clock() - start) / CLOCKS_PER_SEC);
    for (int i = 0; i < MOST_SHARES && network->share[i].percent > 0; i++) {
        const double least =
            least_percent(graph, params, &whole, bytes_of(&whole, network->share[i].percent));
        slower += print_row(network, points, count, &whole, least, i, effort == QN_EFFORT_THOROUGH);
    }
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
    free(costs);
    return slower;
}

static bool is_asked(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count <= 0;
}

int main(int argc, char **argv)
{
    const bool thorough = argc > 1 && strcmp(argv[1], "thorough") == 0;
    const qn_plan_effort effort = thorough ? QN_EFFORT_THOROUGH : QN_EFFORT_DEFAULT;
    int slower = 0;
    for (int i = 0; i < N_NETWORKS; i++)
        if (is_asked(networks[i].name, argv + 2, argc - 2))
            slower += check(&networks[i], effort);
    printf("%d slower than they have been, or faster than they can be\n", slower);
    return slower > 0;
}
