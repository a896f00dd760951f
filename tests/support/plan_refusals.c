/* SPDX-License-Identifier: MIT
 *
 * A plan made in spite of a refused allocation is the same plan: run N refuses the Nth call of the
 * planner (see refusals.c, which goes through everything else), and each must give that plan or
 * QN_ERR_MEMORY with its line; so with what tuning found, whose table decides kernels and costs. No
 * device.
 */
#include "plan/plan.h"
#include "plan/cost/tuning.h"
#include "refuse.h"
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lines;

static void count_line(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)text;
    lines += level == QN_LOG_ERROR;
}

static qn_graph *make_graph(void)
{
    qn_graph *graph = NULL;
    const qn_graph_params params = {.log = {count_line, NULL, QN_LOG_ERROR}};
    const qn_model_data data = {.channels = 1, .height = 8, .width = 8, .classes = 3};
    const qn_model_option options[] = {{"width", "4"}, {"group", "4"}};
    if (qn_graph_create(&graph, &params) || qn_model_build(graph, "cnn", &data, options, 2))
        abort();
    return graph;
}

/* A budget that recomputation alone can meet; more than one micro-batch is tried, early updates and
 * parking. */
static const qn_plan_params small = {
    .budget = 100000, .batch = {12}, .early_updates = true, .park = true, .norm_groups = "auto"};

static qn_status make_plan(const qn_graph *graph, const qn_plan_params *params, qn_plan **plan)
{
    qn_facts facts;
    qn_facts_default(&facts, true);
    lines = 0;
    return qn_plan_create(plan, graph, &facts, params, NULL);
}

static qn_status plan_hash(const qn_graph *graph, const qn_plan_params *params, uint64_t *hash)
{
    qn_plan *plan;
    const qn_status status = make_plan(graph, params, &plan);
    if (status == QN_OK)
        *hash = qn_plan_facts(plan)->hash;
    qn_plan_destroy(&plan);
    return status;
}

/* --- tuned --- */

static bool has_variant(const struct qn_task *task, int variant)
{
    return variant < QN_MAX_VARIANTS && task->group->variant[variant].name;
}

/* The kernels that nobody would take, each slower by another factor. */
static void tune(struct qn_tuning *table, const struct qn_problem *problem)
{
    char key[QN_TASK_KEY];
    for (int t = 0; t < problem->n_tasks; t++) {
        const struct qn_task *task = &problem->tasks[t];
        if (task->kind != QN_TASK_GROUP)
            continue;
        const int variant =
            has_variant(task, task->variant + 1) ? task->variant + 1 : task->variant;
        const struct qn_tuned choice = {.task = qn_task_key(problem, task, key),
                                        .batch = problem->batch,
                                        .variant = task->group->variant[variant].name,
                                        .setting =
                                            qn_setting_name(&task->group->variant[variant], 0),
                                        .seconds = task->seconds * (2 + t % 5),
                                        .flops = task->flops,
                                        .bytes = task->bytes,
                                        .launches = 1};
        if (!qn_tuning_add_choice(table, &choice))
            abort();
    }
}

/* Of the first micro-step of the plan without it. */
static char *make_tuning(const qn_graph *graph)
{
    qn_plan *plan;
    struct qn_tuning table = {0};
    if (make_plan(graph, &small, &plan) != QN_OK)
        abort();
    tune(&table, plan->program.phases[0].problem);
    char *text = qn_tuning_text(&table);
    qn_tuning_free(&table);
    qn_plan_destroy(&plan);
    return text;
}

/* --- refusals --- */

static long passed, failed;

/* Each call in turn, but for some where there are more than `runs` (0: of all). */
static void refuse_calls(const qn_graph *graph, const qn_plan_params *params, long runs)
{
    uint64_t first = 0, hash = 0;
    refuse_call(0);
    if (plan_hash(graph, params, &first) != QN_OK) {
        printf("nothing is refused, and yet there is no plan\n");
        failed++;
    }
    const long total = calls_made(), step = runs > 0 && total > runs ? total / runs : 1;
    for (long n = 1; n <= total; n += step) {
        refuse_call(n);
        const qn_status status = plan_hash(graph, params, &hash);
        const bool good = status == QN_OK ? hash == first : status == QN_ERR_MEMORY && lines == 1;
        if (!good)
            printf("call %ld refused: %s, %d lines\n", n, qn_status_name(status), lines);
        passed += good;
        failed += !good;
    }
    refuse_call(0);
    printf("%ld calls, each %ldth refused\n", total, step);
}

/* A table that could not grow is as it was, and grows when there is memory. */
static void refuse_growth(void)
{
    enum { ROOM = 32, REASON = 1 << 17 };
    static char reason[REASON];
    struct qn_self_test test = {"linear", "cpu", "", "f32", "first"};
    struct qn_tuning table = {0};
    bool good = qn_tuning_add_test(&table, &test);
    memset(reason, 'x', REASON - 1);
    test.reason = reason; /* leaves no room in the last block of memory */
    for (int i = 1; i < ROOM; i++)
        good &= qn_tuning_add_test(&table, &test);
    refuse_call(1);
    good &= !qn_tuning_add_test(&table, &test);
    refuse_call(0);
    good &= qn_tuning_add_test(&table, &test) && table.n_tests == ROOM + 1 &&
            strcmp(table.tests[0].op, "linear") == 0 && strcmp(table.tests[0].reason, "first") == 0;
    qn_tuning_free(&table);
    if (!good)
        printf("a table of self-tests that could not grow is spoilt\n");
    passed += good;
    failed += !good;
}

int main(int argc, char **argv)
{
    const long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    qn_graph *graph = make_graph();
    qn_plan_params tuned = small;
    char *tuning = make_tuning(graph);
    tuned.tuning = tuning;
    tuned.effort = QN_EFFORT_INSTANT;
    refuse_calls(graph, &small, runs);
    refuse_calls(graph, &tuned, runs);
    refuse_growth();
    free(tuning);
    qn_graph_destroy(&graph);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
