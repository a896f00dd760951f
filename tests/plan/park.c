/* SPDX-License-Identifier: MIT
 *
 * Plans that park values in host memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <stdlib.h>
#include <string.h>

static const qn_model_option depth18[] = {{"depth", "18"}};

static bool parks(const qn_plan_point *point)
{
    return point->parked_bytes > 0;
}

static struct test_budgets find(const qn_graph *graph, qn_plan_params params)
{
    return test_budgets(graph, &params, parks);
}

static qn_plan *plan_parked(const qn_graph *graph, qn_plan_params params, int64_t budget)
{
    params.budget = budget;
    qn_plan *plan = test_plan(graph, &params);
    assert_true(plan->info.parked_bytes > 0);
    assert_int_equal(plan->info.parked_bytes, plan->program.host_bytes);
    assert_int_equal(plan->info.peak_bytes, budget);
    return plan;
}

/* --- what is safe --- */

enum { LOOKS = 4 };

static void check_model(qn_graph *graph, qn_plan_params params)
{
    params.park = true;
    const struct test_budgets budgets = find(graph, params);
    assert_true(budgets.count > 1);
    for (int i = 0; i < LOOKS; i++) {
        const int64_t budget = budgets.bytes[i * (budgets.count - 1) / (LOOKS - 1)];
        qn_plan *plan = plan_parked(graph, params, budget);
        test_invariants(plan);
        test_interpret(plan);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

static void every_read_is_of_what_was_meant(void **state)
{
    (void)state;
    const qn_plan_params several = {.batch = {44, 20}, .micro_batch = 16};
    const qn_plan_params whole = {.batch = {32}, .micro_batch = 32, .early_updates = true};
    const qn_plan_params instant = {.batch = {8},
                                    .micro_batch = 8,
                                    .effort = QN_EFFORT_INSTANT,
                                    .recompute = QN_RECOMPUTE_NONE};
    check_model(test_model("cnn", NULL, 0), several);
    check_model(test_model("cnn", NULL, 0), whole);
    check_model(test_model("resnet", depth18, 1), instant);
    check_model(test_chain(12, 96), several);
}

/* --- the price --- */

/* Seconds of the fastest plan within the budget. */
static double seconds(const qn_graph *graph, qn_plan_params params, int64_t budget)
{
    params.budget = budget;
    qn_plan *plan = test_plan(graph, &params);
    const double found = plan->info.seconds;
    qn_plan_destroy(&plan);
    return found;
}

static int64_t smallest(const qn_graph *graph, qn_plan_params params)
{
    params.budget = INT64_C(3) << 30;
    qn_plan *plan = test_plan(graph, &params);
    const int64_t bytes = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    return bytes;
}

#define TUNING(to_host, to_device, begin)                                                          \
    "{\"quern_tuning\": 1, \"transfers\": {\"to_host\": " #to_host ", \"to_device\": " #to_device  \
    ", \"begin\": " #begin "}, \"self_tests\": [], \"choices\": []}"

/* Where transfers are fast they take the place of what is made again; where they are slow they are
 * used only below what recomputation reaches. */
static void parks_where_it_is_cheaper(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params without = {.batch = {32}, .micro_batch = 32};
    qn_plan_params fast = without, slow = without;
    fast.park = slow.park = true;
    fast.tuning = TUNING(1e13, 1e13, 1e-9);
    slow.tuning = TUNING(1e6, 1e6, 10);
    const int64_t least = smallest(graph, without);
    assert_true(smallest(graph, fast) < least && smallest(graph, slow) < least);
    assert_true(seconds(graph, fast, least) < seconds(graph, without, least));
    const struct test_budgets parked = find(graph, slow);
    assert_true(parked.count > 0 && parked.bytes[parked.count - 1] < least);
    qn_graph_destroy(&graph);
}

/* There and back, in every phase of the cycle. */
static void takes_what_was_measured(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(6, 96);
    const qn_plan_params params = {.batch = {50},
                                   .micro_batch = 20,
                                   .park = true,
                                   .recompute = QN_RECOMPUTE_NONE,
                                   .tuning = TUNING(1e6, 2e6, 1e-3)};
    qn_plan *plan = plan_parked(graph, params, find(graph, params).bytes[0]);
    double expected = 0;
    const struct qn_cycle_plan *cycle = &plan->program.cycles[0];
    const int phases[] = {cycle->runs[0].first, cycle->runs[0].later, cycle->runs[0].rest};
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < plan->program.phases[phases[p]].n_steps; i++) {
            const struct qn_phase_run *phase = &plan->program.phases[phases[p]];
            const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
            if (!qn_task_parks(task))
                continue;
            const bool stores = task->kind == QN_TASK_STORE;
            const int value = stores ? task->reads[0].value : task->writes[0].value;
            const int64_t bytes = phase->problem->values[value].bytes;
            const double one = 1e-3 + (double)bytes / (stores ? 1e6 : 2e6);
            assert_true(task->seconds > 0.999 * one && task->seconds < 1.001 * one);
            expected += one;
            assert_true(task->measured);
        }
    assert_true(expected > 0.05);
    assert_true(plan->info.parked_seconds > 0.999 * expected);
    assert_true(plan->info.parked_seconds < 1.001 * expected);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* --- off --- */

/* Parking is a choice that has to be asked for, and that one may ask for in vain. */
static void only_where_it_is_asked_for(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    qn_plan_params params = {.batch = {32}, .micro_batch = 32};
    assert_int_equal(find(graph, params).count, 0);
    params.budget = INT64_C(1) << 30;
    qn_plan *without = test_plan(graph, &params);
    params.park = true;
    qn_plan *with = test_plan(graph, &params);
    assert_int_equal(with->info.parked_bytes, 0);
    assert_true(with->info.hash == without->info.hash);
    qn_plan_destroy(&with);
    qn_plan_destroy(&without);
    qn_graph_destroy(&graph);
}

/* --- what people see --- */

static int count_words(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

static void is_printed_and_explained(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(6, 96);
    const qn_plan_params params = {
        .batch = {16}, .micro_batch = 16, .park = true, .recompute = QN_RECOMPUTE_NONE};
    qn_plan *plan = plan_parked(graph, params, find(graph, params).bytes[0]);
    char *text = qn_plan_text(plan), *json = qn_plan_json(plan), *why;
    assert_non_null(strstr(text, "parked: "));
    assert_non_null(strstr(json, "\"parked_bytes\": "));
    assert_true(count_words(json, "\"store\"") >= 3);
    assert_int_equal(count_words(json, "\"store\""), count_words(json, "\"fetch\""));
    assert_int_equal(plan->info.recomputed_steps, 0);
    assert_int_equal(qn_plan_explain(plan, "x", &why), QN_OK);
    assert_non_null(strstr(why, "back from host memory in step"));
    free(text);
    free(json);
    free(why);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_read_is_of_what_was_meant),
        cmocka_unit_test(parks_where_it_is_cheaper),
        cmocka_unit_test(takes_what_was_measured),
        cmocka_unit_test(only_where_it_is_asked_for),
        cmocka_unit_test(is_printed_and_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
