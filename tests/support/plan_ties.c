/* SPDX-License-Identifier: MIT
 *
 * qsort may leave what compares equal in any order, and another C library, or this one when memory
 * is short, leaves it in another: the plans are the same. The linker (--wrap) puts a qsort before
 * the C library's that turns the array round first. No device.
 */
#include "base/text.h"
#include "plan/plan.h"
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 512 };

static bool turning;

typedef int compare_fn(const void *a, const void *b);

void __real_qsort(void *items, size_t count, size_t size, compare_fn *compare);
void __wrap_qsort(void *items, size_t count, size_t size, compare_fn *compare);

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
    unsigned char between[MOST_BYTES];
    if (size > sizeof between)
        abort();
    memcpy(between, a, size);
    memcpy(a, b, size);
    memcpy(b, between, size);
}

void __wrap_qsort(void *items, size_t count, size_t size, compare_fn *compare)
{
    unsigned char *bytes = items;
    for (size_t i = 0; turning && i < count / 2; i++)
        swap(bytes + i * size, bytes + (count - 1 - i) * size, size);
    __real_qsort(items, count, size, compare);
}

/* Of the plan and of the step lists of its whole frontier. */
static uint64_t hash_of(const qn_plan *plan)
{
    uint64_t hash = qn_hash(QN_HASH_START, &plan->info.hash, sizeof plan->info.hash);
    for (int i = 0; i < plan->frontier.count; i++) {
        const struct qn_point *point = &plan->frontier.points[i];
        const struct qn_steps *steps = &qn_choices_pick(point->choices, 0, point->choice)->steps;
        hash = qn_hash(hash, &point->bytes, sizeof point->bytes);
        hash = qn_hash(hash, &point->seconds, sizeof point->seconds);
        hash = qn_hash(hash, steps->task, (size_t)steps->count * sizeof *steps->task);
    }
    return hash;
}

static uint64_t plan_hash(const qn_graph *graph, const qn_plan_params *params)
{
    qn_facts facts;
    qn_plan *plan;
    qn_facts_default(&facts, true);
    if (qn_plan_create(&plan, graph, &facts, params, NULL) != QN_OK)
        abort();
    const uint64_t hash = hash_of(plan);
    qn_plan_destroy(&plan);
    return hash;
}

static qn_graph *make_graph(const char *name)
{
    qn_graph *graph = NULL;
    const qn_model_data data = {.channels = 1, .height = 28, .width = 28, .classes = 10};
    if (qn_graph_create(&graph, NULL) || qn_model_build(graph, name, &data, NULL, 0))
        abort();
    return graph;
}

/* Layers that are alike: it is the same which of them runs again. */
static qn_graph *make_chain(int length)
{
    enum { FEATURES = 64 };
    qn_graph *graph = NULL;
    if (qn_graph_create(&graph, NULL))
        abort();
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, FEATURES});
    for (int i = 0; i < length; i++) {
        const char name[] = {(char)('a' + i), 0};
        qn_tensor weight = qn_parameter(graph, name, 2, (int64_t[]){FEATURES, FEATURES}, NULL);
        x = qn_sigmoid(graph, qn_linear(graph, x, weight, (qn_tensor){0}));
    }
    qn_loss(graph, x, "mean", NULL);
    return graph;
}

static int passed, failed;

static void check(qn_graph *graph, const char *what, const qn_plan_params *params)
{
    turning = false;
    const uint64_t straight = plan_hash(graph, params);
    turning = true;
    const bool same = plan_hash(graph, params) == straight;
    if (!same)
        printf("%s: other plans where equals lie the other way round\n", what);
    passed += same;
    failed += !same;
    qn_graph_destroy(&graph);
}

int main(void)
{
    static const qn_plan_params search = {.batch = {60, 100}},
                                thrifty = {.batch = {16},
                                           .micro_batch = 16,
                                           .early_updates = true,
                                           .park = true},
                                simple = {.batch = {128}, .effort = QN_EFFORT_INSTANT};
    check(make_graph("cnn"), "cnn", &search);
    check(make_graph("cnn"), "cnn, early updates and parking", &thrifty);
    check(make_graph("mlp"), "mlp", &simple);
    for (int length = 2; length < 8; length++)
        check(make_chain(length), "chain", &simple);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
