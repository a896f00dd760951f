/* SPDX-License-Identifier: MIT
 *
 * From a graph at one batch size to values and tasks, for training, evaluation and the update.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/cost/price.h"
#include "plan/lowering/lowering.h"

#include <inttypes.h>
#include <string.h>

static int *new_numbers(struct qn_arena *arena, size_t count)
{
    int *numbers = qn_arena_new(arena, int, count + 1);
    for (size_t i = 0; numbers && i <= count; i++)
        numbers[i] = -1;
    return numbers;
}

/* Values that a node adds at most (outputs, their gradients, saved, temporaries; an input adds
 * one), those of them that may be parked, those that a parameter adds that is updated alone (parts
 * of the norms, of the table and of the states), or a range (of its block's values, too), and those
 * that a state of an operator adds. */
enum {
    VALUES_PER_NODE = 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP,
    PARKED_PER_NODE = QN_MAX_OUT + QN_MAX_SAVED,
    VALUES_PER_PARAMETER = 2 + QN_MAX_STATE,
    VALUES_PER_RANGE = 6 + QN_MAX_STATE,
    VALUES_PER_MOVING = 2
};

static size_t own_ranges(const struct qn_shard *shard)
{
    size_t count = 0;
    for (int r = 0; r < shard->n_ranges; r++)
        count += qn_range_is_own(shard, &shard->ranges[r]);
    return count;
}

static bool allocate(struct lowering *l)
{
    struct qn_arena *arena = l->how->arena;
    size_t nodes = (size_t)l->graph->n_nodes, tensors = (size_t)l->graph->n_tensors;
    const size_t parked = l->how->park ? nodes * PARKED_PER_NODE : 0;
    const struct qn_persist *persist = l->problem->persist;
    const size_t parameters = (size_t)persist->n_parameters, ranges = own_ranges(&persist->shard);
    size_t values = (size_t)persist->n_values + nodes * VALUES_PER_NODE +
                    parameters * VALUES_PER_PARAMETER + ranges * VALUES_PER_RANGE +
                    (size_t)persist->n_moving * VALUES_PER_MOVING + QN_MAX_BLOCKS + parked + 1;
    l->forward = new_numbers(arena, tensors);
    l->gradient = new_numbers(arena, tensors);
    l->first_reader = new_numbers(arena, nodes);
    l->saved = (int(*)[QN_MAX_SAVED])new_numbers(arena, nodes * QN_MAX_SAVED);
    l->temp = (int(*)[QN_MAX_TEMP])new_numbers(arena, nodes * QN_MAX_TEMP);
    l->written = qn_arena_new(arena, bool, values);
    l->backward_read = qn_arena_new(arena, bool, values);
    l->used = qn_arena_new(arena, bool, nodes + 1);
    l->wanted = qn_arena_new(arena, bool, tensors + 1);
    l->problem->values = qn_arena_new(arena, struct qn_value, values);
    l->problem->producer = new_numbers(arena, values);
    l->problem->tasks = qn_arena_new(arena, struct qn_task,
                                     nodes * (QN_MAX_GROUPS + QN_MAX_IN + 1) + 2 * parked +
                                         2 * QN_GRAPH_MAX_OUTPUTS + 3 * QN_MAX_BLOCKS + parameters +
                                         3 * ranges + (size_t)persist->n_moving + 2);
    return l->forward && l->gradient && l->first_reader && l->saved && l->temp && l->written &&
           l->backward_read && l->used && l->wanted && l->problem->values && l->problem->producer &&
           l->problem->tasks;
}

static qn_status begin(struct lowering *l, const struct qn_lowering *how,
                       const struct qn_persist *persist, int run, int graph, int64_t batch,
                       struct qn_problem *problem)
{
    const struct qn_bound *bound = &persist->graphs[graph];
    *problem = (struct qn_problem){.persist = persist,
                                   .bound = bound,
                                   .run = run,
                                   .facts = how->facts,
                                   .batch = batch,
                                   .n_values = persist->n_values};
    *l = (struct lowering){.how = how, .graph = bound->graph, .problem = problem};
    if (run >= 0)
        l->run = &persist->runs.run[run];
    if (!allocate(l))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    memcpy(problem->values, persist->values, (size_t)persist->n_values * sizeof *problem->values);
    qn_status status = qn_graph_shapes(l->graph, batch, how->arena, how->log, &l->shapes);
    if (status == QN_ERR_SHAPE && how->too_large)
        *how->too_large = true;
    QN_TRY(status);
    problem->shapes = l->shapes;
    problem->wanted = l->wanted;
    return QN_OK;
}

static qn_status check_values(const struct lowering *l)
{
    for (int v = 0; v < l->problem->n_values; v++) {
        const struct qn_value *value = &l->problem->values[v];
        if (value->bytes <= l->how->facts->max_alloc_bytes)
            continue;
        if (l->how->too_large)
            *l->how->too_large = true;
        return qn_fail(l->how->log, QN_ERR_MEMORY,
                       "%s: %" PRId64 " bytes at batch %" PRId64
                       " are more than the largest allocation, %" PRId64,
                       value->name, value->bytes, l->problem->batch,
                       l->how->facts->max_alloc_bytes);
    }
    return QN_OK;
}

static qn_status price_all(const struct lowering *l)
{
    for (int t = 0; t < l->problem->n_tasks; t++)
        QN_TRY(qn_task_price(l->how, l->problem, &l->problem->tasks[t]));
    return check_values(l);
}

/* Adds the groups of every used node that run in pass `phase`, in the order of the graph. */
static void add_forward(struct lowering *l, unsigned phase)
{
    for (int n = 0; n < l->graph->n_nodes; n++) {
        const struct qn_node *node = &l->graph->nodes[n];
        if (!l->used[n] || node->kind != QN_NODE_OPERATOR || node->op->view ||
            qn_lower_makes_table(l, n))
            continue;
        for (int g = 0; g < QN_MAX_GROUPS && node->op->groups[g].name; g++)
            if (node->op->groups[g].phase & phase)
                qn_lower_add_group(l, n, &node->op->groups[g], false);
        if (l->run)
            qn_lower_store_made(l, n);
    }
    l->problem->n_forward = l->problem->n_tasks;
}

static void add_downloads(struct lowering *l)
{
    for (int i = 0; i < l->graph->n_outputs; i++) {
        const uint32_t tensor = l->graph->outputs[i].tensor;
        const struct qn_cell_of *cell =
            qn_cell_named(&l->problem->persist->runs, l->graph->outputs[i].name);
        if (cell && (cell->kind == QN_CELL_APPEND || cell->kind == QN_CELL_TABLE))
            continue;
        const int value = qn_lower_forward_value(l, tensor);
        struct qn_task *task =
            qn_lower_add_task(l, QN_TASK_DOWNLOAD, (int)l->graph->tensors[tensor].node);
        task->output = i;
        task->reads[task->n_reads++] =
            (struct qn_use){.value = value, .operand = l->problem->values[value].operand};
    }
}

static bool is_read(const struct qn_problem *problem, const struct qn_task *maker)
{
    for (int t = (int)(maker - problem->tasks) + 1; t < problem->n_tasks; t++)
        for (int r = 0; r < problem->tasks[t].n_reads; r++)
            for (int w = 0; w < maker->n_writes; w++)
                if (problem->tasks[t].reads[r].value == maker->writes[w].value)
                    return true;
    return false;
}

static void remove_task(struct qn_problem *problem, int task)
{
    for (int t = task; t + 1 < problem->n_tasks; t++)
        problem->tasks[t] = problem->tasks[t + 1];
    for (int v = 0; v < problem->n_values; v++) {
        if (problem->producer[v] == task)
            problem->producer[v] = -1;
        problem->producer[v] -= problem->producer[v] > task;
    }
    problem->n_tasks--;
    problem->n_forward--;
}

/* Removes forward tasks whose results no task reads: a backward run need not compute its outputs,
 * which another run has computed. */
static void remove_unread(struct qn_problem *problem)
{
    for (int t = problem->n_forward - 1; t >= 0; t--)
        if (!is_read(problem, &problem->tasks[t]))
            remove_task(problem, t);
}

qn_status qn_lower_run(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                       int64_t batch, struct qn_problem *problem)
{
    const struct qn_run_of *of = &persist->runs.run[run];
    const bool evaluates = of->what == QN_RUN_EVALUATE;
    struct lowering l;
    QN_TRY(begin(&l, how, persist, run, of->graph, batch, problem));
    qn_run_mark(&persist->runs, of, l.graph, l.used);
    if (qn_run_trains(of))
        qn_graph_mark_gradients(l.graph, problem->bound->gradient, l.wanted);
    add_forward(&l, evaluates ? QN_PHASE_EVAL : QN_PHASE_TRAIN);
    if (evaluates)
        add_downloads(&l);
    if (qn_run_trains(of))
        qn_lower_add_backward(&l);
    if (of->what == QN_RUN_BACKWARD)
        remove_unread(problem);
    qn_lower_store_last(&l);
    if (how->park && !evaluates)
        qn_lower_add_parking(&l);
    QN_TRY(l.status);
    return price_all(&l);
}

/* Nothing of it is parked: phases share the host's memory, and those of other runs come between its
 * own. */
qn_status qn_lower_kept(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                        int64_t batch, struct qn_problem *problem)
{
    const struct qn_run_of *of = &persist->runs.run[run];
    struct qn_lowering unparked = *how;
    struct lowering l;
    unparked.park = false;
    QN_TRY(begin(&l, &unparked, persist, of->partner, of->graph, batch, problem));
    problem->kept = true;
    problem->run = run;
    qn_run_mark(&persist->runs, l.run, l.graph, l.used);
    qn_graph_mark_gradients(l.graph, problem->bound->gradient, l.wanted);
    add_forward(&l, QN_PHASE_TRAIN);
    qn_lower_store_last(&l);
    problem->n_forward = problem->n_tasks;
    l.run = of;
    memset(l.used, 0, (size_t)l.graph->n_nodes * sizeof *l.used);
    qn_run_mark(&persist->runs, of, l.graph, l.used);
    qn_lower_add_backward(&l);
    QN_TRY(l.status);
    return price_all(&l);
}

qn_status qn_lower_start(const struct qn_lowering *how, const struct qn_persist *persist,
                         struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, -1, 0, qn_one_group(how->params, persist->graphs[0].graph),
                 problem));
    qn_lower_add_zeros(&l);
    return price_all(&l);
}

qn_status qn_lower_norms(const struct qn_lowering *how, const struct qn_persist *persist,
                         struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, -1, 0, qn_one_group(how->params, persist->graphs[0].graph),
                 problem));
    qn_lower_add_norms(&l);
    QN_TRY(l.status);
    return price_all(&l);
}

qn_status qn_lower_update(const struct qn_lowering *how, const struct qn_persist *persist,
                          struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, -1, 0, qn_one_group(how->params, persist->graphs[0].graph),
                 problem));
    qn_lower_add_update(&l);
    qn_lower_add_commits(&l);
    QN_TRY(l.status);
    return price_all(&l);
}
