/* SPDX-License-Identifier: MIT
 *
 * The update: gradient norm, optimizer, and what operators commit once per update.
 */
#include "base/log.h"
#include "op/optimizer.h"
#include "plan/lowering.h"

static struct qn_task *add_own_task(struct lowering *l, const char *op, const void *attr)
{
    struct qn_task *task = &l->problem->tasks[l->problem->n_tasks++];
    const struct qn_op *found = qn_op_find(op);
    *task =
        (struct qn_task){.node = -1, .name = op, .op = found, .attr = attr, .group = found->groups};
    return task;
}

static void own_read(struct lowering *l, struct qn_task *task, int value, uint8_t index)
{
    task->reads[task->n_reads++] =
        (struct qn_use){value, {QN_REF_IN, index}, l->problem->values[value].operand};
}

static void own_write(struct lowering *l, struct qn_task *task, int value, struct qn_ref ref,
                      bool accumulates)
{
    task->writes[task->n_writes++] =
        (struct qn_output_use){.value = value,
                               .ref = ref,
                               .operand = l->problem->values[value].operand,
                               .in_place = -1,
                               .accumulates = accumulates};
}

/* Sums of squares of every chunk of every block lie side by side in one value. */
static int add_partials(struct lowering *l, int *parts)
{
    const struct qn_persist *persist = l->problem->persist;
    const struct qn_block *last = &persist->blocks[persist->n_blocks - 1];
    struct qn_operand operand = {0};
    qn_shape_set(&operand, QN_F32, 1, &(int64_t){last->first_chunk + last->chunks});
    int whole = qn_lower_add_value(l, "gradient norm", &operand, QN_TAG_SCRATCH);
    for (int b = 0; b < persist->n_blocks; b++) {
        const struct qn_block *block = &persist->blocks[b];
        qn_shape_set(&operand, QN_F32, 1, &(int64_t){block->chunks});
        parts[b] = qn_lower_add_value(l, "gradient norm", &operand, QN_TAG_SCRATCH);
        l->problem->values[parts[b]].block = whole;
        l->problem->values[parts[b]].block_offset = block->first_chunk * (int64_t)sizeof(float);
    }
    return whole;
}

static void add_norm(struct lowering *l, const void *attr)
{
    const struct qn_persist *persist = l->problem->persist;
    int parts[QN_MAX_BLOCKS];
    int whole = add_partials(l, parts);
    for (int b = 0; b < persist->n_blocks; b++) {
        struct qn_task *task = add_own_task(l, "gradient_norm_partial", attr);
        own_read(l, task, persist->blocks[b].gradients, 0);
        own_read(l, task, persist->blocks[b].table, 1);
        own_write(l, task, parts[b], (struct qn_ref)QN_OUT(0), b > 0);
    }
    own_read(l, add_own_task(l, "gradient_norm", attr), whole, 0);
}

static void add_optimizer(struct lowering *l, const char *op, const void *attr)
{
    for (int b = 0; b < l->problem->persist->n_blocks; b++) {
        const struct qn_block *block = &l->problem->persist->blocks[b];
        struct qn_task *task = add_own_task(l, op, attr);
        own_read(l, task, block->parameters, 0);
        own_read(l, task, block->gradients, 1);
        own_read(l, task, block->table, 2);
        own_write(l, task, block->parameters, (struct qn_ref)QN_OUT(0), false);
        for (int s = 0; s < QN_MAX_SLOTS && block->slots[s] >= 0; s++)
            own_write(l, task, block->slots[s], (struct qn_ref)QN_STATE(s), false);
    }
}

qn_status qn_lower_add_update(struct lowering *l)
{
    static const char *const operators[] = {
        [QN_SGD] = "sgd", [QN_ADAM] = "adam", [QN_ADAMW] = "adamw"};
    struct qn_optimizer_attr *attr = qn_arena_new(l->how->arena, struct qn_optimizer_attr, 1);
    if (!attr)
        return qn_fail(l->how->log, QN_ERR_MEMORY, "plan: out of host memory");
    *attr = qn_optimizer_settings(&l->how->params->optimizer, l->graph->storage == QN_F16);
    if (l->problem->persist->n_blocks) {
        add_norm(l, attr);
        add_optimizer(l, operators[l->how->params->optimizer.kind], attr);
    }
    qn_lower_add_forward(l, QN_PHASE_UPDATE);
    return QN_OK;
}
