/* SPDX-License-Identifier: MIT
 *
 * The reverse walk over the graph: which backward groups are needed, and in which order.
 */
#include "plan/lowering/lowering.h"

struct backward_groups {
    const struct qn_group *group[QN_MAX_GROUPS];
    int count;
};

static bool reads_temp(const struct qn_group *group, int index)
{
    for (int i = 0; i < QN_MAX_READS && group->read[i].ref.kind; i++)
        if (group->read[i].ref.kind == QN_REF_TEMP && group->read[i].ref.index == index)
            return true;
    return false;
}

static bool write_needed(struct lowering *l, int n, struct qn_ref ref,
                         const struct backward_groups *later)
{
    if (ref.kind != QN_REF_TEMP)
        return qn_lower_value_of(l, n, ref) >= 0;
    for (int i = 0; i < later->count; i++)
        if (reads_temp(later->group[i], ref.index))
            return true;
    return false;
}

static bool group_needed(struct lowering *l, int n, const struct qn_group *group,
                         const struct backward_groups *later)
{
    for (int i = 0; i < QN_MAX_WRITES && group->write[i].ref.kind; i++)
        if (write_needed(l, n, group->write[i].ref, later))
            return true;
    return false;
}

/* The backward groups of node n whose results are wanted or read, last one first. */
static struct backward_groups needed_groups(struct lowering *l, int n)
{
    const struct qn_op *op = l->graph->nodes[n].op;
    struct backward_groups needed = {.count = 0};
    for (int g = QN_MAX_GROUPS - 1; g >= 0; g--)
        if (op->groups[g].name && op->groups[g].phase & QN_PHASE_BACKWARD &&
            group_needed(l, n, &op->groups[g], &needed))
            needed.group[needed.count++] = &op->groups[g];
    return needed;
}

/* Whether the group may run before the other open ones: it reads no temporary that they write. */
static bool ready(const struct qn_group *group, const struct backward_groups *open)
{
    for (int i = 0; i < open->count; i++)
        for (int w = 0; open->group[i] != group && w < QN_MAX_WRITES; w++) {
            struct qn_ref ref = open->group[i]->write[w].ref;
            if (ref.kind == QN_REF_TEMP && reads_temp(group, ref.index))
                return false;
        }
    return true;
}

static bool writes_activation_gradient(struct lowering *l, int n, const struct qn_group *group)
{
    for (int i = 0; i < QN_MAX_WRITES && group->write[i].ref.kind; i++) {
        struct qn_ref ref = group->write[i].ref;
        int value = ref.kind == QN_REF_DIN ? qn_lower_value_of(l, n, ref) : -1;
        if (value >= 0 && l->problem->values[value].tag == QN_TAG_ACTIVATION_GRADIENTS)
            return true;
    }
    return false;
}

/* Index of the open group that runs next: a ready group that writes no gradient of an activation,
 * if there is one. The values that it reads may then die before the gradient of the input is
 * written. */
static int next_group(struct lowering *l, int n, const struct backward_groups *open)
{
    int best = -1;
    for (int i = open->count - 1; i >= 0; i--) {
        if (!ready(open->group[i], open))
            continue;
        if (!writes_activation_gradient(l, n, open->group[i]))
            return i;
        if (best < 0)
            best = i;
    }
    return best;
}

static void add_node_backward(struct lowering *l, int n)
{
    struct backward_groups open = needed_groups(l, n);
    while (open.count) {
        int i = next_group(l, n, &open);
        qn_lower_add_group(l, n, open.group[i], true);
        for (int j = i; j + 1 < open.count; j++)
            open.group[j] = open.group[j + 1];
        open.count--;
    }
}

/* Sets l->backward_read, on which resolve() decides. */
static void note_backward_reads(struct lowering *l)
{
    for (int n = 0; n < l->graph->n_nodes; n++) {
        if (!l->used[n] || l->graph->nodes[n].kind != QN_NODE_OPERATOR)
            continue;
        struct backward_groups needed = needed_groups(l, n);
        for (int g = 0; g < needed.count; g++)
            for (int i = 0; i < QN_MAX_READS && needed.group[g]->read[i].ref.kind; i++) {
                const struct qn_read *read = &needed.group[g]->read[i];
                bool sure =
                    !read->or_.kind && qn_group_reads(needed.group[g], l->graph->nodes[n].attr, i);
                int value = sure ? qn_lower_value_of(l, n, read->ref) : -1;
                if (value >= 0)
                    l->backward_read[value] = true;
            }
    }
}

void qn_lower_add_backward(struct lowering *l)
{
    note_backward_reads(l);
    if (l->problem->persist->early)
        qn_lower_find_readers(l);
    qn_lower_load_gradients(l);
    for (int n = l->graph->n_nodes - 1; n >= 0; n--) {
        const struct qn_node *node = &l->graph->nodes[n];
        if (!l->used[n] || node->kind != QN_NODE_OPERATOR || node->op->view)
            continue;
        add_node_backward(l, n);
        if (l->problem->persist->early)
            qn_lower_add_early(l, n);
    }
}
