/* SPDX-License-Identifier: MIT
 *
 * From launch groups to tasks: what they read and write, what may run in place, when inputs arrive.
 */
#include "base/shape.h"
#include "plan/lowering/lowering.h"

struct qn_task *qn_lower_add_task(struct lowering *l, enum qn_task_kind kind, int n)
{
    struct qn_task *task = &l->problem->tasks[l->problem->n_tasks++];
    *task = (struct qn_task){.kind = kind, .node = n, .name = l->graph->nodes[n].name};
    if (l->graph->nodes[n].kind == QN_NODE_OPERATOR) {
        task->op = l->graph->nodes[n].op;
        task->attr = l->graph->nodes[n].attr;
    }
    return task;
}

struct qn_task *qn_lower_add_own(struct lowering *l, const char *op, const char *name,
                                 const void *attr)
{
    struct qn_task *task = &l->problem->tasks[l->problem->n_tasks++];
    const struct qn_op *found = qn_op_find(op);
    *task = (struct qn_task){
        .node = -1, .name = name ? name : op, .op = found, .attr = attr, .group = found->groups};
    return task;
}

/* The shape under which node n sees the operand. The gradient of a 16-bit parameter is f32. */
static struct qn_operand seen_as(const struct lowering *l, int n, struct qn_ref ref, int value)
{
    const struct qn_node *node = &l->graph->nodes[n];
    struct qn_operand operand;
    if (ref.kind == QN_REF_IN || ref.kind == QN_REF_DIN) {
        operand = l->shapes.tensors[node->in[ref.index]];
        operand.dtype = l->problem->values[value].operand.dtype;
        return operand;
    }
    if (ref.kind == QN_REF_OUT || ref.kind == QN_REF_DOUT)
        return l->shapes.tensors[node->out + ref.index];
    return l->problem->values[value].operand;
}

/* Of two operands that give the same bits: the one that a backward group reads in any case, else
 * the node's output, so that its input may be written over in place. */
static struct qn_ref resolve(struct lowering *l, int n, const struct qn_read *read)
{
    if (read->or_.kind == QN_REF_NONE)
        return read->ref;
    int a = qn_lower_value_of(l, n, read->ref), b = qn_lower_value_of(l, n, read->or_);
    if (a < 0 || b < 0)
        return a < 0 ? read->or_ : read->ref;
    if (l->backward_read[a] != l->backward_read[b])
        return l->backward_read[a] ? read->ref : read->or_;
    return read->or_.kind == QN_REF_OUT ? read->or_ : read->ref;
}

/* Of several outputs some may lead to no loss: nobody has written their gradients. */
static bool has_no_gradient(const struct lowering *l, const struct qn_task *task, struct qn_ref ref,
                            int value)
{
    return ref.kind == QN_REF_DOUT && task->op->n_out > 1 && !l->written[value];
}

static void add_reads(struct lowering *l, struct qn_task *task)
{
    for (int i = 0; i < QN_MAX_READS && task->group->read[i].ref.kind; i++) {
        if (!qn_group_reads(task->group, task->attr, i))
            continue;
        struct qn_ref ref = resolve(l, task->node, &task->group->read[i]);
        int value = qn_lower_value_of(l, task->node, ref);
        if (value >= 0 && !has_no_gradient(l, task, ref, value))
            task->reads[task->n_reads++] =
                (struct qn_use){value, ref, seen_as(l, task->node, ref, value)};
    }
}

static bool same_layout(const struct qn_operand *a, const struct qn_operand *b)
{
    return a->dtype == b->dtype && qn_operand_count(a) == qn_operand_count(b);
}

static bool writes_value(const struct qn_task *task, int value)
{
    for (int i = 0; i < task->n_writes; i++)
        if (task->writes[i].value == value)
            return true;
    return false;
}

/* Adds those writes of the group whose bit is in `open`. Gives the bits of writes left for another
 * task: a tensor that a node has as two inputs has one gradient, which a task writes once. */
static unsigned add_writes(struct lowering *l, struct qn_task *task, unsigned open)
{
    unsigned left = 0;
    for (int i = 0; i < QN_MAX_WRITES && task->group->write[i].ref.kind; i++) {
        struct qn_ref ref = task->group->write[i].ref, place = task->group->write[i].in_place;
        int value = open >> i & 1u ? qn_lower_value_of(l, task->node, ref) : -1;
        if (value >= 0 && writes_value(task, value))
            left |= 1u << i;
        if (value < 0 || left >> i & 1u)
            continue;
        struct qn_output_use write = {.value = value, .ref = ref, .in_place = -1};
        write.operand = seen_as(l, task->node, ref, value);
        if (ref.kind == QN_REF_DIN || ref.kind == QN_REF_GATHER) {
            write.accumulates = l->written[value];
            l->written[value] = true;
        }
        int over = place.kind && !write.accumulates ? qn_lower_value_of(l, task->node, place) : -1;
        if (over >= 0 && l->problem->values[over].life == QN_LIFE_MICRO &&
            same_layout(&l->problem->values[over].operand, &l->problem->values[value].operand))
            write.in_place = over;
        task->writes[task->n_writes++] = write;
    }
    return left;
}

static void set_producers(struct lowering *l, const struct qn_task *task)
{
    for (int i = 0; i < task->n_writes; i++)
        if (l->problem->values[task->writes[i].value].life == QN_LIFE_MICRO)
            l->problem->producer[task->writes[i].value] = (int)(task - l->problem->tasks);
}

/* Inputs are uploaded right before their first reader. */
static void upload_inputs(struct lowering *l, int n, const struct qn_group *group)
{
    const struct qn_node *node = &l->graph->nodes[n];
    for (int i = 0; i < QN_MAX_READS && group->read[i].ref.kind; i++) {
        struct qn_ref ref = group->read[i].ref;
        uint32_t root = ref.kind == QN_REF_IN && node->in[ref.index]
                            ? qn_lower_root_of(l, node->in[ref.index])
                            : 0;
        int source = root ? (int)l->graph->tensors[root].node : -1;
        if (source < 0 || l->graph->nodes[source].kind != QN_NODE_INPUT ||
            l->problem->bound->leaf[source] >= 0 || !qn_group_reads(group, node->attr, i) ||
            l->problem->producer[qn_lower_forward_value(l, root)] >= 0)
            continue;
        int value = qn_lower_forward_value(l, root);
        struct qn_task *task = qn_lower_add_task(l, QN_TASK_UPLOAD, source);
        task->writes[task->n_writes++] = (struct qn_output_use){
            .value = value, .in_place = -1, .operand = l->problem->values[value].operand};
        set_producers(l, task);
    }
}

void qn_lower_add_group(struct lowering *l, int n, const struct qn_group *group, bool backward)
{
    upload_inputs(l, n, group);
    unsigned open = (1u << QN_MAX_WRITES) - 1;
    while (open) {
        struct qn_task *task = qn_lower_add_task(l, QN_TASK_GROUP, n);
        task->group = group;
        task->backward = backward;
        task->repeatable = !backward && !group->once;
        add_reads(l, task);
        open = add_writes(l, task, open);
        if (!backward)
            set_producers(l, task);
    }
}
