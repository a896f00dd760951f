/* SPDX-License-Identifier: MIT
 *
 * States of operators (running averages): those of all nodes side by side in arrays, so that one
 * launch moves them.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/persist.h"

#include <string.h>

static struct qn_moving *find_moving(const struct qn_persist *persist, const char *name, int index)
{
    for (int i = 0; i < persist->n_moving; i++)
        if (persist->moving[i].index == index && strcmp(persist->moving[i].node->name, name) == 0)
            return &persist->moving[i];
    return NULL;
}

/* The array of the last node before that has such a state; -1: there is none. */
static int last_array(const struct qn_persist *persist, const struct qn_moving *moving,
                      enum qn_life life)
{
    for (int i = persist->n_moving - 1; i >= 0; i--) {
        const struct qn_moving *before = &persist->moving[i];
        const int value = life == QN_LIFE_TRAINING ? before->value : before->gather;
        if (before->node->op == moving->node->op && before->index == moving->index && value >= 0)
            return persist->values[value].block;
    }
    return -1;
}

/* The array that the part joins: the last one, unless it would become too large. */
static int array_for(const struct qn_lowering *how, struct qn_persist *persist,
                     const struct qn_moving *moving, const struct qn_value *part)
{
    const int last = last_array(persist, moving, part->life);
    const struct qn_value *array = &persist->values[last < 0 ? 0 : last];
    if (last >= 0 && array->operand.dtype == part->operand.dtype &&
        part->bytes <= how->facts->max_alloc_bytes - array->bytes)
        return last;
    return qn_persist_add_array(persist, moving->node->op->state[moving->index].name,
                                part->operand.dtype, 0, part->tag, part->life);
}

/* Adds the value of a state, or of what is gathered for it, at the end of an array. */
static int add_part(const struct qn_lowering *how, struct qn_persist *persist,
                    const struct qn_moving *moving, const struct qn_operand *operand,
                    enum qn_life life)
{
    struct qn_value part = {.name = moving->node->name,
                            .operand = *operand,
                            .bytes = qn_operand_bytes(operand),
                            .tag = QN_TAG_STATE,
                            .life = life};
    if (!qn_present(operand))
        return -1;
    part.block = array_for(how, persist, moving, &part);
    struct qn_value *array = &persist->values[part.block];
    part.block_offset = array->bytes;
    array->bytes += qn_round_up(part.bytes, how->facts->alignment);
    array->operand.shape.dim[0] = array->bytes / qn_dtype_size(operand->dtype);
    return qn_persist_add(persist, &part);
}

static struct qn_moving *add_moving(const struct qn_lowering *how, struct qn_persist *persist,
                                    const struct qn_node *node, int index,
                                    const struct qn_shape_call *call)
{
    struct qn_moving moving = {node, index, -1, -1};
    moving.value = add_part(how, persist, &moving, &call->state[index], QN_LIFE_TRAINING);
    moving.gather = add_part(how, persist, &moving, &call->gather[index], QN_LIFE_CYCLE);
    persist->moving[persist->n_moving] = moving;
    return &persist->moving[persist->n_moving++];
}

static bool is_described(const struct qn_persist *persist, const struct qn_moving *moving,
                         const struct qn_node *node, const struct qn_shape_call *call)
{
    return moving->node->op == node->op &&
           qn_shape_equal(&persist->values[moving->value].operand.shape,
                          &call->state[moving->index].shape);
}

qn_status qn_persist_bind_states(const struct qn_lowering *how, struct qn_persist *persist,
                                 struct qn_bound *bound, int n, const struct qn_shape_call *call)
{
    const struct qn_node *node = &bound->graph->nodes[n];
    for (int i = 0; i < QN_MAX_STATE; i++) {
        struct qn_moving *moving = find_moving(persist, node->name, i);
        if (!qn_present(&call->state[i]) && !qn_present(&call->gather[i]))
            continue;
        if (!moving && bound != persist->graphs)
            return qn_fail(how->log, QN_ERR_ARGUMENT,
                           "%s: its running averages are not in the first graph of the plan",
                           node->name);
        if (!moving)
            moving = add_moving(how, persist, node, i, call);
        else if (!is_described(persist, moving, node, call))
            return qn_fail(how->log, QN_ERR_SHAPE,
                           "%s: two graphs of the plan describe its state differently", node->name);
        bound->state[n][i] = moving->value;
        bound->gather[n][i] = moving->gather;
    }
    return QN_OK;
}
