/* SPDX-License-Identifier: MIT
 *
 * How many kernels an update of two networks launches on a GPU, as plans count them: so many that
 * what is added to an operator does not go unseen. kernel_programs sees that the counts of the
 * operators are true.
 *
 * Usage: test_plan_launches
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graphs/network.h"
#include "plan/plan.h"
#include "plan/showing/launches.h"
#include "support.h"

#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches of a micro-step and of the update, at most. */
struct bound {
    struct network network;
    int micro, update;
};

static const struct bound bounds[] = {
    {{"resnet18",
      "ResNet-18",
      "resnet",
      {{"depth", "18"}},
      16, /* one group of the norms */
      {.channels = 3, .height = 224, .width = 224, .classes = 1000},
      false,
      {{0}}},
     201,
     4},
    {{"gpt2",
      "GPT-2 124M",
      "gpt",
      {{"layers", "12"}, {"heads", "12"}, {"width", "768"}},
      1,
      {.channels = 1, .height = 1, .width = 1024, .tokens = 50257},
      true,
      {{0}}},
     473,
     3}};

static qn_plan *plan_of(const struct network *network)
{
    qn_plan *plan = NULL;
    qn_facts facts;
    qn_facts_default(&facts, false);
    facts.max_alloc_bytes = INT64_C(8) << 30;
    facts.global_bytes = INT64_C(64) << 30;
    const qn_plan_params params = {.budget = INT64_C(64) << 30,
                                   .batch = {2 * network->batch},
                                   .micro_batch = network->batch,
                                   .recompute = QN_RECOMPUTE_NONE,
                                   .effort = QN_EFFORT_INSTANT,
                                   .optimizer = {.name = "adamw"}};
    qn_graph *graph = network_graph(network);
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    qn_graph_destroy(&graph);
    return plan;
}

static int launches(const struct network *network, const struct qn_phase_run *phase)
{
    struct qn_text text = {0};
    qn_launches_json(&text, phase);
    char *json = qn_text_take(&text);
    assert_non_null(json);
    printf("%s, %s: %s\n", network->title, phase->name, json);
    free(json);
    return qn_launches_of_phase(phase);
}

static void check(const struct bound *bound)
{
    qn_plan *plan = plan_of(&bound->network);
    const struct qn_program *program = &plan->program;
    assert_in_range(launches(&bound->network, qn_program_main(program)), 1, bound->micro);
    assert_in_range(launches(&bound->network, &program->phases[program->update]), 1, bound->update);
    qn_plan_destroy(&plan);
}

static void test_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        check(&bounds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
