/* SPDX-License-Identifier: MIT
 *
 * What a trainer's memory holds before the first update.
 */
#include "base/log.h"
#include "base/random.h"
#include "base/shape.h"
#include "base/text.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

static const float F16_LOSS_SCALE = 65536.0f;

qn_status qn_trainer_write_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 const void *host, int64_t bytes)
{
    struct qn_place_of place = qn_trainer_place(trainer, value);
    return qn_trainer_check(trainer, qn_slab_write(trainer->slab, place.buffer,
                                                   place.offset + offset_bytes, host, bytes, NULL));
}

qn_status qn_trainer_read_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                void *host, int64_t bytes)
{
    struct qn_place_of place = qn_trainer_place(trainer, value);
    return qn_trainer_check(trainer, qn_slab_read(trainer->slab, place.buffer,
                                                  place.offset + offset_bytes, host, bytes, NULL));
}

static qn_status fill_value(struct qn_trainer *trainer, int value, float with)
{
    struct qn_place_of place = qn_trainer_place(trainer, value);
    uint32_t word;
    memcpy(&word, &with, sizeof word);
    return qn_slab_fill(trainer->slab, place.buffer, place.offset,
                        trainer->plan->persist.values[value].bytes, word);
}

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

static qn_status init_parameter(struct qn_trainer *trainer, int n)
{
    const struct qn_node *node = &trainer->plan->graph->nodes[n];
    int64_t count = qn_operand_count(&node->leaf);
    uint64_t stream = qn_hash(QN_HASH_START, node->name, strlen(node->name));
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "%s: out of host memory", node->name);
    for (int64_t i = 0; i < count; i++)
        values[i] = node->values ? node->values[i]
                                 : draw(&node->init, trainer->params.seed, stream, (uint64_t)i);
    qn_status status = qn_trainer_write_value(trainer, trainer->plan->persist.leaf[n], 0, values,
                                              count * (int64_t)sizeof *values);
    free(values);
    return status;
}

/* --- what optimizers work on --- */

static qn_status write_table(struct qn_trainer *trainer, const struct qn_block *block)
{
    size_t bytes = (size_t)block->chunks * 4 * sizeof(int32_t);
    int32_t(*table)[4] = malloc(bytes);
    if (!table)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "optimizer table: out of host memory");
    qn_block_table(&trainer->plan->persist, block, table);
    qn_status status = qn_trainer_write_value(trainer, block->table, 0, table, (int64_t)bytes);
    free(table);
    return status;
}

qn_status qn_trainer_write_tables(struct qn_trainer *trainer)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int b = 0; b < persist->n_blocks; b++)
        QN_TRY(write_table(trainer, &persist->blocks[b]));
    return QN_OK;
}

static qn_status init_block(struct qn_trainer *trainer, const struct qn_block *block)
{
    QN_TRY(fill_value(trainer, block->parameters, 0));
    for (int s = 0; s < QN_MAX_SLOTS && block->slots[s] >= 0; s++)
        QN_TRY(fill_value(trainer, block->slots[s], 0));
    return QN_OK;
}

static qn_status init_state(struct qn_trainer *trainer, int n)
{
    const struct qn_node *node = &trainer->plan->graph->nodes[n];
    for (int i = 0; i < QN_MAX_STATE; i++)
        if (trainer->plan->persist.state[n][i] >= 0)
            QN_TRY(fill_value(trainer, trainer->plan->persist.state[n][i],
                              node->op->state[i].initial));
    return QN_OK;
}

static qn_status init_control(struct qn_trainer *trainer)
{
    const struct qn_control control = {
        .loss_scale = trainer->plan->graph->storage == QN_F16 ? F16_LOSS_SCALE : 1.0f};
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
    for (int n = 0; n < persist->graph->n_nodes; n++)
        QN_TRY(persist->leaf[n] >= 0 ? init_parameter(trainer, n) : init_state(trainer, n));
    return qn_device_finish(trainer->device);
}
