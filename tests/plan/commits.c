/* SPDX-License-Identifier: MIT
 *
 * Which states the launches of an update commit: each that was gathered once, those that lie side
 * by side and move alike together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shape.h"
#include "support.h"
#include <quern/ops.h>

#include <string.h>

enum { MOST = 5, GROUP = 2 };

/* Batch norms in a row: their channels, how far an update moves their averages, and the one behind
 * which the loss is; those after it only an evaluation runs. */
struct norms {
    int count, channels[MOST];
    double momentum[MOST];
    int loss_behind;
};

static qn_graph *graph_of(const struct norms *norms)
{
    const qn_tensor none = {0};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    for (int i = 0; i < norms->count; i++) {
        const int64_t weight[] = {norms->channels[i], qn_shape_of(graph, x).dim[1]};
        const char name[] = {'w', (char)('0' + i), 0};
        x = qn_linear(graph, x, qn_parameter(graph, name, 2, weight, NULL), none);
        x = qn_batch_norm(graph, x, none, none,
                          &(qn_batch_norm_params){.group = GROUP, .momentum = norms->momentum[i]});
        if (i == norms->loss_behind)
            qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    }
    qn_output(graph, x, "y");
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static qn_plan *plan_of(const struct norms *norms, int64_t max_alloc)
{
    qn_plan *plan;
    qn_facts facts = test_facts();
    facts.max_alloc_bytes = max_alloc;
    const qn_plan_params params = {.budget = 1 << 24, .batch = {2 * GROUP}, .micro_batch = GROUP};
    qn_graph *graph = graph_of(norms);
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    qn_graph_destroy(&graph);
    return plan;
}

static bool covers(const struct qn_problem *problem, int value, int part)
{
    const struct qn_value *v = &problem->values[value], *p = &problem->values[part];
    return v->block == p->block && v->block_offset <= p->block_offset &&
           p->block_offset + p->bytes <= v->block_offset + v->bytes;
}

/* Whether the state of index i is committed by the task; what is gathered for it must then lie as
 * far from the beginning of what the task reads. */
static bool commits(const struct qn_problem *problem, const struct qn_task *task,
                    const struct qn_moving *moving)
{
    const struct qn_value *values = problem->values;
    const int state = task->writes[moving->index].value, gather = task->reads[moving->index].value;
    assert_int_equal(task->writes[moving->index].ref.kind, QN_REF_STATE);
    assert_int_equal(task->reads[moving->index].ref.kind, QN_REF_GATHER);
    if (!covers(problem, state, moving->value))
        return false;
    assert_true(covers(problem, gather, moving->gather));
    assert_int_equal(values[moving->value].block_offset - values[state].block_offset,
                     values[moving->gather].block_offset - values[gather].block_offset);
    return true;
}

/* The tasks of the update that commit states; every state that is gathered is committed by one of
 * them, as far as its own momentum says. */
static int count_commits(const struct norms *norms, int64_t max_alloc)
{
    qn_plan *plan = plan_of(norms, max_alloc);
    const struct qn_phase_run *update = &plan->program.phases[plan->program.update];
    const struct qn_persist *persist = &plan->persist;
    int tasks = 0, done[2 * MOST] = {0};
    for (int i = 0; i < update->n_steps; i++) {
        const struct qn_task *task = &update->problem->tasks[update->steps[i].task];
        if (strcmp(task->op->name, "batch_norm") != 0)
            continue;
        tasks++;
        for (int m = 0; m < persist->n_moving; m++)
            if (commits(update->problem, task, &persist->moving[m])) {
                assert_true(task->op->commits_like(task->attr, persist->moving[m].node->attr));
                done[m]++;
            }
    }
    assert_int_equal(persist->n_moving, 2 * norms->count);
    for (int m = 0; m < persist->n_moving; m++)
        assert_int_equal(done[m], m / 2 <= norms->loss_behind);
    test_invariants(plan);
    test_interpret(plan);
    qn_plan_destroy(&plan);
    return tasks;
}

static const int64_t ROOMY = 1 << 20;

static void those_that_move_alike_commit_together(void **state)
{
    (void)state;
    const struct norms one = {1, {5}, {0}, 0}, all = {5, {3, 128, 5, 129, 64}, {0}, 4};
    assert_int_equal(count_commits(&one, ROOMY), 1);
    assert_int_equal(count_commits(&all, ROOMY), 1);
}

static void another_momentum_commits_apart(void **state)
{
    (void)state;
    const struct norms middle = {5, {3, 4, 5, 6, 7}, {0, 0, 0.5, 0, 0}, 4};
    const struct norms last = {3, {3, 4, 5}, {0.2, 0.2, 0.1}, 2};
    assert_int_equal(count_commits(&middle, ROOMY), 3);
    assert_int_equal(count_commits(&last, ROOMY), 2);
}

static void what_nobody_gathered_is_not_committed(void **state)
{
    (void)state;
    const struct norms norms = {4, {3, 4, 5, 6}, {0}, 1};
    assert_int_equal(count_commits(&norms, ROOMY), 1);
}

/* Of arrays no longer than the largest allocation, each commits by itself. */
static void arrays_end_where_an_allocation_does(void **state)
{
    (void)state;
    const struct norms norms = {5, {1024, 1, 1024, 1, 1}, {0}, 4};
    const int64_t largest = GROUP * 1024 * (int64_t)sizeof(float);
    assert_int_equal(count_commits(&norms, largest), 2);
    assert_int_equal(count_commits(&norms, 2 * largest), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_move_alike_commit_together),
        cmocka_unit_test(another_momentum_commits_apart),
        cmocka_unit_test(what_nobody_gathered_is_not_committed),
        cmocka_unit_test(arrays_end_where_an_allocation_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
