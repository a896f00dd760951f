/* SPDX-License-Identifier: MIT
 *
 * Which chunks each member of a group updates: everything once, by all about equally much, in one
 * order for all members; a whole parameter by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"
#include <quern/ops.h>

#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, WIDTH = 1100 };

static qn_graph *make_graph(qn_dtype stored)
{
    const qn_graph_params how = {.parameter_storage = stored};
    const qn_init init = qn_init_fan_in(WIDTH), zero = {0};
    static const char *const names[2 * LAYERS] = {"a", "b", "c", "d", "e", "f"};
    const int64_t dim[] = {WIDTH, WIDTH};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &how), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    for (int l = 0; l < LAYERS; l++) {
        const qn_tensor weight = qn_parameter(graph, names[2 * l], 2, dim, &init);
        const qn_tensor bias = qn_parameter(graph, names[2 * l + 1], 1, dim, &zero);
        x = qn_relu(graph, qn_linear(graph, x, weight, bias));
    }
    const qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_loss(graph, qn_squared_error(graph, x, target), "loss", NULL);
    return graph;
}

static const double DECAY = 0.9;

static qn_plan *make_plan(const qn_graph *graph, const char *optimizer, int members, int member)
{
    const qn_plan_params params = {.budget = 1 << 28,
                                   .batch = {1},
                                   .effort = QN_EFFORT_INSTANT,
                                   .cache_dir = "",
                                   .optimizer = {.name = optimizer, .ema = DECAY},
                                   .members = members,
                                   .member = member};
    qn_facts facts;
    qn_plan *plan;
    qn_facts_default(&facts, true);
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    return plan;
}

/* Every chunk is one member's; ranges of a bucket lie side by side and buckets begin with the last
 * parameters. */
static void check_ranges(const struct qn_persist *persist)
{
    const struct qn_shard *shard = &persist->shard;
    int *times = calloc((size_t)persist->n_chunks, sizeof *times);
    for (int r = 0; r < shard->n_ranges; r++) {
        const struct qn_range *range = &shard->ranges[r], *before = range - 1;
        assert_in_range(range->owner, 0, shard->members - 1);
        for (int c = 0; c < range->chunks; c++)
            times[range->first_chunk + c]++;
        if (!r)
            continue;
        assert_in_range(range->bucket - before->bucket, 0, 1);
        if (range->bucket == before->bucket) {
            assert_int_equal(range->first_chunk, before->first_chunk + before->chunks);
            assert_int_equal(range->first, before->first + before->count);
            assert_true(range->owner > before->owner);
        }
    }
    for (int c = 0; c < persist->n_chunks; c++)
        assert_int_equal(times[c], 1);
    free(times);
}

/* Rows of the tables of all members together: all numbers of all parameters, each range's from 0.
 */
static int64_t numbers_of(const struct qn_persist *persist)
{
    int64_t numbers = 0;
    for (int b = 0; b < persist->n_blocks; b++) {
        struct qn_chunk *table = calloc((size_t)persist->blocks[b].chunks, sizeof *table);
        const int rows = qn_block_table(persist, &persist->blocks[b], table);
        assert_true(!rows || table[0].first == 0);
        for (int i = 0; i < rows; i++)
            numbers += table[i].count;
        free(table);
    }
    return numbers;
}

/* The numbers that a row of the table names lie in what the task updates. */
static void check_rows(const qn_plan *plan, const struct qn_problem *problem,
                       const struct qn_task *task)
{
    const struct qn_value *part = &problem->values[task->reads[2].value];
    const int64_t count = qn_operand_count(&task->reads[0].operand);
    const int64_t first = part->block_offset / (int64_t)sizeof(struct qn_chunk);
    const int64_t rows = part->bytes / (int64_t)sizeof(struct qn_chunk);
    for (int b = 0; b < plan->persist.n_blocks; b++) {
        const struct qn_block *block = &plan->persist.blocks[b];
        struct qn_chunk *table = calloc((size_t)block->chunks, sizeof *table);
        qn_block_table(&plan->persist, block, table);
        for (int64_t i = first; block->table == part->block && i < first + rows; i++)
            assert_true(table[i].count > 0 && table[i].first >= 0 &&
                        table[i].first + table[i].count <= count);
        free(table);
    }
}

static void check_update(const qn_plan *plan)
{
    const struct qn_phase_run *update = &plan->program.phases[plan->program.update];
    int updates = 0;
    for (int i = 0; i < update->n_steps; i++) {
        const struct qn_task *task = &update->problem->tasks[update->steps[i].task];
        if (strcmp(task->op->name, plan->persist.optimizer->name) != 0)
            continue;
        check_rows(plan, update->problem, task);
        updates++;
    }
    assert_true(updates > 0);
}

static int64_t bytes_of(const qn_plan *plan, qn_tag tag)
{
    return qn_plan_facts(plan)->bytes_by_tag[tag];
}

static void check_members(qn_dtype stored, const char *optimizer, int members, double most)
{
    qn_graph *graph = make_graph(stored);
    qn_plan *alone = make_plan(graph, optimizer, 1, 0);
    int64_t numbers = 0, largest = 0, averages = 0;
    for (int m = 0; m < members; m++) {
        qn_plan *plan = make_plan(graph, optimizer, members, m);
        check_ranges(&plan->persist);
        check_update(plan);
        numbers += numbers_of(&plan->persist);
        const int64_t own[] = {bytes_of(plan, QN_TAG_OPTIMIZER), bytes_of(plan, QN_TAG_AVERAGES)};
        largest = own[0] > largest ? own[0] : largest;
        averages = own[1] > averages ? own[1] : averages;
        qn_plan_destroy(&plan);
    }
    assert_int_equal(numbers, LAYERS * (WIDTH + 1) * WIDTH);
    const double all = (double)bytes_of(alone, QN_TAG_OPTIMIZER);
    const double all_averages = (double)bytes_of(alone, QN_TAG_AVERAGES);
    print_message("  %s of %s, %d members: %.3f, averages %.3f\n", optimizer, qn_dtype_name(stored),
                  members, (double)largest / all, (double)averages / all_averages);
    assert_true((double)largest < most / members * all);
    assert_true(averages > 0 && (double)averages < most / members * all_averages);
    qn_plan_destroy(&alone);
    qn_graph_destroy(&graph);
}

static void everything_once(void **state)
{
    (void)state;
    static const int counts[] = {2, 3, 4, 7, 16};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check_members(QN_F32, "adamw", counts[i], 1.1);
    check_members(QN_F32, "adamw", 60, 1.2); /* some 15 chunks for each */
    check_members(QN_BF16, "adamw8", 4, 1.1);
    check_members(QN_BF16, "flash_adamw", 5, 1.2);
}

/* As many members as there are large parameters, so that each has one. */
static void whole_parameters(void **state)
{
    (void)state;
    check_members(QN_F32, "apollo", LAYERS, 1.1);
    check_members(QN_BF16, "adafactor", LAYERS, 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_once),
        cmocka_unit_test(whole_parameters),
    };
    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
