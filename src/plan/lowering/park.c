/* SPDX-License-Identifier: MIT
 *
 * Parking: for every value that the forward pass makes, a copy in host memory, the store that
 * writes the copy, and the fetch that makes the value again from it, bit by bit. The copy is a
 * value with 0 bytes on the device: since the fetch reads it, a step list with a fetch needs the
 * store too.
 */
#include "plan/lowering/lowering.h"

/* Kept values and inputs; values that one group leaves for the next are not worth parking. */
static bool may_park(const struct qn_problem *problem, int value)
{
    const enum qn_tag tag = problem->values[value].tag;
    return problem->producer[value] >= 0 && (tag == QN_TAG_KEPT || tag == QN_TAG_INPUTS);
}

static int add_copy(struct lowering *l, int value)
{
    const struct qn_value of = l->problem->values[value];
    const int copy = qn_lower_add_value(l, of.name, &of.operand, of.tag);
    l->problem->values[copy].bytes = 0;
    l->problem->values[copy].host_bytes = of.bytes;
    return copy;
}

static void add_transfer(struct lowering *l, enum qn_task_kind kind, int from, int to)
{
    const struct qn_operand *operand = &l->problem->values[from].operand;
    const int maker = l->problem->producer[kind == QN_TASK_STORE ? from : to];
    struct qn_task *task = qn_lower_add_task(l, kind, l->problem->tasks[maker].node);
    task->name = l->problem->values[from].name;
    task->reads[task->n_reads++] = (struct qn_use){.value = from, .operand = *operand};
    task->writes[task->n_writes++] =
        (struct qn_output_use){.value = to, .operand = *operand, .in_place = -1};
}

void qn_lower_add_parking(struct lowering *l)
{
    const int tasks = l->problem->n_tasks, values = l->problem->n_values;
    for (int v = l->problem->persist->n_values; v < values; v++) {
        if (!may_park(l->problem, v))
            continue;
        const int copy = add_copy(l, v);
        add_transfer(l, QN_TASK_STORE, v, copy);
        add_transfer(l, QN_TASK_FETCH, copy, v);
    }
    l->problem->n_parking = l->problem->n_tasks - tasks;
}
