/* SPDX-License-Identifier: MIT
 *
 * From a graph at one batch size to values and tasks, for training, evaluation and the update.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering.h"

#include <inttypes.h>
#include <string.h>

static int *new_numbers(struct qn_arena *arena, size_t count)
{
    int *numbers = qn_arena_new(arena, int, count + 1);
    for (size_t i = 0; numbers && i <= count; i++)
        numbers[i] = -1;
    return numbers;
}

/* Values that a node can add at most: outputs, their gradients, saved, temporaries; an input one;
 * and of them those that may be parked. */
enum {
    VALUES_PER_NODE = 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP,
    PARKED_PER_NODE = QN_MAX_OUT + QN_MAX_SAVED
};

static bool allocate(struct lowering *l)
{
    struct qn_arena *arena = l->how->arena;
    size_t nodes = (size_t)l->graph->n_nodes, tensors = (size_t)l->graph->n_tensors;
    const size_t parked = l->how->park ? nodes * PARKED_PER_NODE : 0;
    size_t values = (size_t)l->problem->persist->n_values + nodes * VALUES_PER_NODE +
                    QN_MAX_BLOCKS + parked + 1;
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
                                     nodes * (QN_MAX_GROUPS + 1) + 2 * parked +
                                         QN_GRAPH_MAX_OUTPUTS + 2 * QN_MAX_BLOCKS + 1);
    return l->forward && l->gradient && l->first_reader && l->saved && l->temp && l->written &&
           l->backward_read && l->used && l->wanted && l->problem->values && l->problem->producer &&
           l->problem->tasks;
}

static qn_status begin(struct lowering *l, const struct qn_lowering *how,
                       const struct qn_persist *persist, int64_t batch, struct qn_problem *problem)
{
    *problem = (struct qn_problem){
        .persist = persist, .facts = how->facts, .batch = batch, .n_values = persist->n_values};
    struct qn_optimizer_attr *optimizer = qn_arena_new(how->arena, struct qn_optimizer_attr, 1);
    *l = (struct lowering){
        .how = how, .graph = persist->graph, .problem = problem, .optimizer = optimizer};
    if (!optimizer || !allocate(l))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    *optimizer = qn_optimizer_settings(&how->params->optimizer, l->graph->storage == QN_F16);
    memcpy(problem->values, persist->values, (size_t)persist->n_values * sizeof *problem->values);
    qn_status status = qn_graph_shapes(persist->graph, batch, how->arena, how->log, &l->shapes);
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

qn_status qn_lower_training(const struct qn_lowering *how, const struct qn_persist *persist,
                            int64_t batch, struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, batch, problem));
    qn_graph_mark_training(l.graph, l.used);
    qn_graph_mark_gradients(l.graph, l.wanted);
    qn_lower_add_forward(&l, QN_PHASE_TRAIN);
    qn_lower_add_backward(&l);
    if (how->park)
        qn_lower_add_parking(&l);
    return price_all(&l);
}

qn_status qn_lower_evaluation(const struct qn_lowering *how, const struct qn_persist *persist,
                              int64_t batch, struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, batch, problem));
    qn_graph_mark_evaluation(l.graph, l.used);
    qn_lower_add_forward(&l, QN_PHASE_EVAL);
    for (int i = 0; i < l.graph->n_outputs; i++) {
        uint32_t tensor = l.graph->outputs[i].tensor;
        int value = qn_lower_forward_value(&l, tensor);
        struct qn_task *task =
            qn_lower_add_task(&l, QN_TASK_DOWNLOAD, (int)l.graph->tensors[tensor].node);
        task->output = i;
        task->reads[task->n_reads++] =
            (struct qn_use){.value = value, .operand = l.problem->values[value].operand};
    }
    return price_all(&l);
}

qn_status qn_lower_update(const struct qn_lowering *how, const struct qn_persist *persist,
                          struct qn_problem *problem)
{
    struct lowering l;
    QN_TRY(begin(&l, how, persist, qn_one_group(how->params, persist->graph), problem));
    qn_graph_mark_training(l.graph, l.used);
    qn_lower_add_update(&l);
    return price_all(&l);
}
