/* SPDX-License-Identifier: MIT
 *
 * What a trainer's memory holds before the first update.
 */
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "op/optimizer.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

static const float F16_LOSS_SCALE = 65536.0f;

/* --- parameters --- */

static float draw(const struct qn_init *init, uint64_t seed, uint64_t stream, uint64_t element)
{
    switch (init->kind) {
    case QN_INIT_UNIFORM:
        return (float)(init->a + (init->b - init->a) * qn_random_uniform(seed, stream, element));
    case QN_INIT_NORMAL:
        return (float)(init->a + init->b * qn_random_normal(seed, stream, element));
    default:
        return (float)init->a;
    }
}

static qn_status init_leaf(struct qn_trainer *trainer, const struct qn_node *node, int value)
{
    int64_t count = qn_operand_count(&node->leaf);
    uint64_t stream = qn_hash(QN_HASH_START, node->name, strlen(node->name));
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "%s: out of host memory", node->name);
    for (int64_t i = 0; i < count; i++)
        values[i] = node->values ? node->values[i]
                                 : draw(&node->init, trainer->params.seed, stream, (uint64_t)i);
    qn_status status = qn_trainer_write_numbers(trainer, value, values, count);
    free(values);
    return status;
}

/* --- what optimizers work on --- */

static qn_status write_table(struct qn_trainer *trainer, const struct qn_block *block)
{
    struct qn_chunk *table = malloc((size_t)block->chunks * sizeof *table);
    if (!table)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "optimizer table: out of host memory");
    const int64_t rows = qn_block_table(&trainer->plan->persist, block, table);
    qn_status status = rows ? qn_trainer_write_value(trainer, block->table, 0, table,
                                                     rows * (int64_t)sizeof *table)
                            : QN_OK;
    free(table);
    return status;
}

static qn_status write_groups(struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const size_t bytes = (size_t)persist->n_chunks * sizeof(int32_t);
    int32_t *table = malloc(bytes);
    if (!table)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "groups of chunks: out of host memory");
    qn_norm_groups_table(persist, table);
    qn_status status =
        qn_trainer_write_value(trainer, persist->groups.table, 0, table, (int64_t)bytes);
    free(table);
    return status;
}

qn_status qn_trainer_write_tables(struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int b = 0; b < persist->n_blocks; b++)
        QN_TRY(write_table(trainer, &persist->blocks[b]));
    return persist->groups.count ? write_groups(trainer) : QN_OK;
}

static qn_status init_block(struct qn_trainer *trainer, const struct qn_block *block)
{
    QN_TRY(qn_trainer_fill_value(trainer, block->parameters, 0));
    if (block->working != block->parameters)
        QN_TRY(qn_trainer_fill_value(trainer, block->working, 0));
    if (block->average >= 0)
        QN_TRY(qn_trainer_fill_value(trainer, block->average, 0));
    if (block->working_average >= 0 && block->working_average != block->average)
        QN_TRY(qn_trainer_fill_value(trainer, block->working_average, 0));
    for (int s = 0; s < QN_MAX_STATE; s++)
        if (block->state[s] >= 0)
            QN_TRY(qn_trainer_fill_value(trainer, block->state[s],
                                         block->optimizer->state[s].initial));
    return QN_OK;
}

/* Parameters and constants. What several graphs share starts as the first of them says. */
static qn_status init_leaves(struct qn_trainer *trainer, const struct qn_bound *bound)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int n = 0; n < bound->graph->n_nodes; n++) {
        const struct qn_node *node = &bound->graph->nodes[n];
        const int parameter = bound->parameter[n];
        const bool own = parameter < 0 || persist->parameters[parameter].node == node;
        const int value = parameter < 0 ? bound->leaf[n] : persist->parameters[parameter].value;
        const bool filled = node->kind == QN_NODE_PARAMETER || node->kind == QN_NODE_CONSTANT;
        if (value >= 0 && filled && own)
            QN_TRY(init_leaf(trainer, node, value));
    }
    return QN_OK;
}

static qn_status init_moving(struct qn_trainer *trainer, const struct qn_moving *moving)
{
    return moving->value < 0
               ? QN_OK
               : qn_trainer_fill_value(trainer, moving->value,
                                       moving->node->op->state[moving->index].initial);
}

static qn_status init_control(struct qn_trainer *trainer)
{
    const struct qn_control control = {
        .loss_scale = trainer->plan->persist.settings->dynamic ? F16_LOSS_SCALE : 1.0f};
    return qn_trainer_write_value(trainer, trainer->plan->persist.control, 0, &control,
                                  sizeof control);
}

qn_status qn_trainer_initialise(struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    QN_TRY(init_control(trainer));
    for (int b = 0; b < persist->n_blocks; b++)
        QN_TRY(init_block(trainer, &persist->blocks[b]));
    QN_TRY(qn_trainer_write_tables(trainer));
    for (int g = 0; g < persist->n_graphs; g++)
        QN_TRY(init_leaves(trainer, &persist->graphs[g]));
    for (int i = 0; i < persist->n_moving; i++)
        QN_TRY(init_moving(trainer, &persist->moving[i]));
    for (int c = 0; c < persist->runs.n_cells; c++)
        QN_TRY(qn_cells_clear(trainer, c));
    return qn_device_finish(trainer->device);
}
