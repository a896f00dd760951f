/* SPDX-License-Identifier: MIT
 *
 * The update: gradient norms, optimizer, averages of parameters. Parameters are updated after the
 * whole norm is known, by the block, or one by one if the optimizer wants whole tensors; or early,
 * one by one in the micro-step, each as soon as its gradient is complete, so that the gradient can
 * go.
 */
#include "base/number.h"
#include "base/shape.h"
#include "plan/lowering/lowering.h"

/* The operand of an f32 value as an array of one dimension; other types keep their shape. */
static struct qn_operand as_array(const struct lowering *l, int value)
{
    struct qn_operand operand = l->problem->values[value].operand;
    int64_t count = qn_operand_count(&operand);
    if (qn_number_is_float(operand.dtype))
        qn_shape_set(&operand, operand.dtype, 1, &count);
    return operand;
}

static void read_as(struct qn_task *task, int value, const struct qn_operand *operand,
                    uint8_t index)
{
    task->reads[task->n_reads++] = (struct qn_use){value, {QN_REF_IN, index}, *operand};
}

static void own_read(struct lowering *l, struct qn_task *task, int value, uint8_t index)
{
    const struct qn_operand array = as_array(l, value);
    read_as(task, value, &array, index);
}

static void write_as(struct qn_task *task, int value, const struct qn_operand *operand,
                     struct qn_ref ref, bool accumulates)
{
    task->writes[task->n_writes++] = (struct qn_output_use){.value = value,
                                                            .ref = ref,
                                                            .operand = *operand,
                                                            .in_place = -1,
                                                            .accumulates = accumulates};
}

static void own_write(struct lowering *l, struct qn_task *task, int value, struct qn_ref ref,
                      bool accumulates)
{
    const struct qn_operand array = as_array(l, value);
    write_as(task, value, &array, ref, accumulates);
}

/* --- the steps --- */

/* Adds the task that writes the norms of the block's chunks into their part of value `norms`, which
 * has those of all chunks; gives the part. */
static int add_partial(struct lowering *l, const struct qn_block *block, int norms,
                       const char *name)
{
    const int part = qn_lower_add_slice(l, norms, block->first_chunk, block->chunks);
    struct qn_task *task =
        qn_lower_add_own(l, "gradient_norm_partial", name, l->problem->persist->settings);
    own_read(l, task, block->gradients, 0);
    own_read(l, task, block->table, 1);
    own_write(l, task, part, (struct qn_ref)QN_OUT(0), block->first_chunk > 0);
    return part;
}

/* Of a block of one parameter that the optimizer wants whole, operands have its shape. */
static void add_optimizer(struct lowering *l, const struct qn_block *block, const char *name)
{
    const bool whole = block->optimizer->whole;
    const struct qn_value *values = l->problem->values;
    const struct qn_operand parameters =
        whole ? values[block->parameters].operand : as_array(l, block->parameters);
    const struct qn_operand gradients =
        whole ? values[block->gradients].operand : as_array(l, block->gradients);
    struct qn_task *task =
        qn_lower_add_own(l, block->optimizer->name, name, l->problem->persist->settings);
    read_as(task, block->parameters, &parameters, 0);
    read_as(task, block->gradients, &gradients, 1);
    own_read(l, task, block->table, 2);
    write_as(task, block->parameters, &parameters, (struct qn_ref)QN_OUT(0), false);
    for (int s = 0; s < QN_MAX_STATE; s++)
        if (block->state[s] >= 0)
            own_write(l, task, block->state[s], (struct qn_ref)QN_STATE(s), false);
}

/* What is kept in f32 is followed by what operators read of it, if they read it. */
static void add_cast(struct lowering *l, int exact, int working, const char *name)
{
    if (working == exact || working < 0)
        return;
    struct qn_task *task = qn_lower_add_own(l, "cast", name, NULL);
    own_read(l, task, exact, 0);
    own_write(l, task, working, (struct qn_ref)QN_OUT(0), false);
}

static void add_average(struct lowering *l, const struct qn_block *block)
{
    struct qn_task *task =
        qn_lower_add_own(l, "weight_average", NULL, l->problem->persist->averaging);
    own_read(l, task, block->parameters, 0);
    own_read(l, task, block->average, 1);
    if (qn_block_correction(block) >= 0)
        own_read(l, task, block->state[qn_block_correction(block)], 2);
    own_write(l, task, block->average, (struct qn_ref)QN_OUT(0), false);
    add_cast(l, block->average, block->working_average, NULL);
}

/* --- after the cycle --- */

/* The value with the norms of all chunks: written now, or before. */
static int add_norms(struct lowering *l)
{
    const struct qn_persist *persist = l->problem->persist;
    struct qn_operand operand = {0};
    if (persist->norms >= 0)
        return persist->norms;
    qn_shape_set(&operand, QN_F32, 1, &(int64_t){persist->n_chunks});
    const int norms = qn_lower_add_value(l, "gradient norm", &operand, QN_TAG_SCRATCH);
    for (int b = 0; b < persist->n_blocks; b++)
        add_partial(l, &persist->blocks[b], norms, NULL);
    return norms;
}

/* The norms of groups, before gradient_norm changes the loss scale that the gradient has. */
static void add_groups(struct lowering *l, int norms)
{
    const struct qn_norm_groups *groups = &l->problem->persist->groups;
    if (!groups->count)
        return;
    struct qn_task *task = qn_lower_add_own(l, "gradient_norm_groups", NULL, groups->attr);
    own_read(l, task, norms, 0);
    own_read(l, task, groups->table, 1);
    own_write(l, task, groups->norms, (struct qn_ref)QN_OUT(0), false);
}

/* The block that one of this member's ranges would be by itself. */
static struct qn_block range_alone(struct lowering *l, const struct qn_range *range)
{
    const struct qn_persist *persist = l->problem->persist;
    const struct qn_block *block = &persist->blocks[range->block];
    struct qn_block alone = {.optimizer = block->optimizer,
                             .count = range->count,
                             .chunks = range->chunks,
                             .first_chunk = range->first_chunk,
                             .working_average = -1};
    alone.working = qn_lower_add_slice(l, block->working, range->first, range->count);
    alone.parameters = block->parameters == block->working
                           ? alone.working
                           : qn_lower_add_slice(l, block->parameters, range->kept, range->count);
    alone.average =
        block->average < 0 ? -1 : qn_lower_add_slice(l, block->average, range->kept, range->count);
    alone.gradients = qn_lower_add_slice(l, block->gradients, range->first, range->count);
    alone.table = qn_lower_add_slice(l, block->table, range->kept_chunk, range->chunks);
    for (int s = 0; s < QN_MAX_STATE; s++)
        alone.state[s] = block->state[s] < 0
                             ? -1
                             : qn_lower_add_slice(l, block->state[s], range->kept_state[s],
                                                  qn_range_part(persist, range, s).count);
    return alone;
}

/* The block that a parameter would be by itself, made of its parts of the block's values. */
static struct qn_block block_alone(struct lowering *l, const struct qn_parameter *parameter)
{
    const struct qn_block *block = &l->problem->persist->blocks[parameter->block];
    struct qn_block alone = {.optimizer = block->optimizer,
                             .parameters = parameter->value,
                             .working = parameter->working,
                             .gradients = parameter->gradient,
                             .chunks = parameter->chunks,
                             .first_chunk = parameter->first_chunk};
    alone.table =
        qn_lower_add_slice(l, block->table, alone.first_chunk - block->first_chunk, alone.chunks);
    for (int s = 0; s < QN_MAX_STATE; s++) {
        const struct qn_state_part part = parameter->part[s];
        alone.state[s] =
            part.count ? qn_lower_add_slice(l, block->state[s], part.first, part.count) : -1;
    }
    return alone;
}

/* Gives what a whole parameter is updated by its shape, without what pads it. */
static void shape_whole(struct lowering *l, const struct qn_block *alone,
                        const struct qn_parameter *parameter)
{
    const int values[] = {alone->working, alone->parameters, alone->gradients, alone->average};
    const struct qn_shape *shape = &parameter->node->leaf.shape;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i] < 0)
            continue;
        struct qn_value *value = &l->problem->values[values[i]];
        qn_shape_set(&value->operand, value->operand.dtype, shape->rank, shape->dim);
        value->bytes = qn_operand_bytes(&value->operand);
    }
}

/* Updates the parameters of block b. */
static void update_block(struct lowering *l, int b)
{
    const struct qn_persist *persist = l->problem->persist;
    const struct qn_block *block = &persist->blocks[b];
    if (!block->optimizer->whole)
        add_optimizer(l, block, NULL);
    for (int p = 0; block->optimizer->whole && p < persist->n_parameters; p++)
        if (persist->parameters[p].block == b) {
            const struct qn_block alone = block_alone(l, &persist->parameters[p]);
            add_optimizer(l, &alone, persist->parameters[p].node->name);
        }
    add_cast(l, block->parameters, block->working, NULL);
}

/* Updates a range of this member's. */
static void update_range(struct lowering *l, const struct qn_range *range)
{
    struct qn_block alone = range_alone(l, range);
    if (alone.optimizer->whole)
        shape_whole(l, &alone, &l->problem->persist->parameters[range->parameter]);
    add_optimizer(l, &alone, NULL);
    add_cast(l, alone.parameters, alone.working, NULL);
    if (alone.average >= 0)
        add_average(l, &alone);
}

void qn_lower_add_norms(struct lowering *l)
{
    const struct qn_persist *persist = l->problem->persist;
    for (int r = 0; r < persist->shard.n_ranges; r++) {
        const struct qn_range *range = &persist->shard.ranges[r];
        if (!qn_range_is_own(&persist->shard, range))
            continue;
        const struct qn_block alone = range_alone(l, range);
        add_partial(l, &alone, persist->norms, NULL);
    }
}

static void update_parameters(struct lowering *l)
{
    const struct qn_persist *persist = l->problem->persist;
    for (int b = 0; !persist->shard.members && b < persist->n_blocks; b++)
        update_block(l, b);
    for (int r = 0; r < persist->shard.n_ranges; r++)
        if (qn_range_is_own(&persist->shard, &persist->shard.ranges[r]))
            update_range(l, &persist->shard.ranges[r]);
}

void qn_lower_add_update(struct lowering *l)
{
    const struct qn_persist *persist = l->problem->persist;
    if (persist->n_blocks) {
        const int norms = add_norms(l);
        add_groups(l, norms);
        own_read(l, qn_lower_add_own(l, "gradient_norm", NULL, l->problem->persist->settings),
                 norms, 0);
        if (!persist->early)
            update_parameters(l);
        for (int b = 0; persist->averaging && !persist->shard.members && b < persist->n_blocks; b++)
            add_average(l, &persist->blocks[b]);
    }
}

/* --- early --- */

static void update_alone(struct lowering *l, const struct qn_parameter *parameter)
{
    const char *name = parameter->node->name;
    const struct qn_block alone = block_alone(l, parameter);
    const int part = add_partial(l, &alone, l->problem->persist->norms, name);
    own_read(l, qn_lower_add_own(l, "gradient_finite", name, l->problem->persist->settings), part,
             0);
    add_optimizer(l, &alone, name);
    add_cast(l, alone.parameters, alone.working, name);
}

/* Views do not count as readers: who reads a view reads its root tensor. */
void qn_lower_find_readers(struct lowering *l)
{
    for (int n = 0; n < l->graph->n_nodes; n++) {
        const struct qn_node *node = &l->graph->nodes[n];
        if (!l->used[n] || node->kind != QN_NODE_OPERATOR || node->op->view)
            continue;
        for (int i = 0; i < node->op->n_in; i++) {
            if (!node->in[i])
                continue;
            int *first = &l->first_reader[l->graph->tensors[qn_lower_root_of(l, node->in[i])].node];
            *first = *first < 0 ? n : *first;
        }
    }
}

/* After the backward pass of first_reader[p] the gradient of parameter p is complete, and nothing
 * reads the old parameter any more: tasks recomputed later are of earlier nodes, and an early
 * update has no later micro-step. */
void qn_lower_add_early(struct lowering *l, int n)
{
    const struct qn_persist *persist = l->problem->persist;
    for (int p = 0; p < n; p++)
        if (l->first_reader[p] == n && l->problem->bound->gradient[p] >= 0)
            update_alone(l, &persist->parameters[l->problem->bound->parameter[p]]);
}
