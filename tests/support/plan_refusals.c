/* SPDX-License-Identifier: MIT
 *
 * A plan made in spite of a refused allocation is the same plan: run N refuses the Nth call of the
 * planner (see refusals.c, which goes through everything else), and each must give that plan or
 * QN_ERR_MEMORY with its line. No device.
 */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

static long calls, refused_call; /* 0: none */
static int lines;

static bool refuse(void)
{
    return ++calls == refused_call;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

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
static qn_status plan_hash(const qn_graph *graph, uint64_t *hash)
{
    qn_plan *plan;
    qn_facts facts;
    const qn_plan_params params = {
        .budget = 100000, .batch = {12}, .early_updates = true, .park = true};
    qn_facts_default(&facts, true);
    lines = 0;
    qn_status status = qn_plan_create(&plan, graph, &facts, &params, NULL);
    if (status == QN_OK)
        *hash = qn_plan_facts(plan)->hash;
    qn_plan_destroy(&plan);
    return status;
}

int main(int argc, char **argv)
{
    uint64_t first = 0, hash = 0;
    long passed = 0, failed = 0, runs = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    qn_graph *graph = make_graph();
    calls = 0;
    if (plan_hash(graph, &first) != QN_OK) {
        printf("nothing is refused, and yet there is no plan\n0 passed, 1 failed\n");
        return 1;
    }
    long total = calls, step = runs > 0 && total > runs ? total / runs : 1;
    for (long n = 1; n <= total; n += step) {
        calls = 0;
        refused_call = n;
        qn_status status = plan_hash(graph, &hash);
        bool good = status == QN_OK ? hash == first : status == QN_ERR_MEMORY && lines == 1;
        if (!good)
            printf("call %ld refused: %s, %d lines\n", n, qn_status_name(status), lines);
        passed += good;
        failed += !good;
    }
    qn_graph_destroy(&graph);
    printf("%ld calls, each %ldth refused\n%ld passed, %ld failed\n", total, step, passed, failed);
    return failed > 0;
}
