/* SPDX-License-Identifier: MIT
 *
 * Blocks: trainable parameters side by side, so that one launch of the optimizer updates them all.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/persist.h"

#include <inttypes.h>

static int64_t aligned_bytes(const struct qn_lowering *how, const struct qn_parameter *parameter)
{
    return qn_round_up(qn_operand_bytes(&parameter->node->leaf), how->facts->alignment);
}

static int chunks_of(const struct qn_parameter *parameter)
{
    return (int)qn_div_up(qn_operand_count(&parameter->node->leaf), QN_CHUNK);
}

/* Bytes of a block: one allocation, and the optimizer's table counts its elements in 32 bits. */
static int64_t largest_block(const struct qn_lowering *how)
{
    const int64_t counted = INT32_MAX * (int64_t)sizeof(float);
    return how->facts->max_alloc_bytes < counted ? how->facts->max_alloc_bytes : counted;
}

/* A slot of the optimizer. Its size is checked: checkpoints and early updates find a parameter's
 * part of it by per_chunk alone (qn_part_of_state). */
static qn_status add_state(const struct qn_lowering *how, struct qn_persist *persist,
                           struct qn_block *block, int s, const struct qn_operand *state)
{
    const struct qn_state_info *info = &persist->optimizer->state[s];
    const int64_t elements = qn_operand_count(&persist->values[block->parameters].operand);
    const int64_t count = info->per_chunk ? (int64_t)block->chunks * info->per_chunk : elements;
    if (qn_operand_count(state) != count)
        return qn_fail(how->log, QN_ERR_SHAPE,
                       "%s: %s has %" PRId64 " elements for a block of %" PRId64
                       " in %d chunks, not %" PRId64,
                       persist->optimizer->name, info->name, qn_operand_count(state), elements,
                       block->chunks, count);
    block->state[s] = qn_persist_add_array(persist, info->name, state->dtype, count,
                                           QN_TAG_OPTIMIZER, QN_LIFE_RUN);
    return QN_OK;
}

/* What the optimizer keeps for a block, by its own shape rule. */
static qn_status add_states(const struct qn_lowering *how, struct qn_persist *persist,
                            struct qn_block *block)
{
    const struct qn_op *op = persist->optimizer;
    const struct qn_operand *parameters = &persist->values[block->parameters].operand;
    struct qn_shape_call call = {.attr = persist->settings, .storage = QN_F32, .batch = 1};
    call.in[0] = call.in[1] = *parameters;
    qn_shape_set(&call.in[2], QN_I32, 2, (int64_t[]){block->chunks, 4});
    if (op->shape(&call) != QN_OK)
        return qn_fail(how->log, QN_ERR_SHAPE, "%s: %s", op->name, call.reason);
    for (int s = 0; s < QN_MAX_STATE; s++) {
        block->state[s] = -1;
        if (qn_present(&call.state[s]))
            QN_TRY(add_state(how, persist, block, s, &call.state[s]));
    }
    return QN_OK;
}

/* Values of a block whose members take `bytes` together. */
static qn_status open_block(const struct qn_lowering *how, struct qn_persist *persist,
                            int64_t bytes, int chunks)
{
    struct qn_block *block = &persist->blocks[persist->n_blocks++];
    const int64_t count = bytes / (int64_t)sizeof(float);
    block->chunks = chunks;
    block->first_chunk = persist->n_chunks;
    block->parameters =
        qn_persist_add_array(persist, "parameters", QN_F32, count, QN_TAG_PARAMETERS, QN_LIFE_RUN);
    block->gradients = persist->early ? -1
                                      : qn_persist_add_array(persist, "gradients", QN_F32, count,
                                                             QN_TAG_GRADIENTS, QN_LIFE_CYCLE);
    QN_TRY(add_states(how, persist, block));
    block->table = qn_persist_add_array(persist, "optimizer table", QN_I32, (int64_t)chunks * 4,
                                        QN_TAG_OPTIMIZER, QN_LIFE_RUN);
    persist->values[block->table].operand.shape = (struct qn_shape){2, {chunks, 4}};
    return QN_OK;
}

/* A parameter and its gradient at `offset` of the open block; of early updates the gradient lives
 * from its first write to its optimizer. */
static void add_member(struct qn_persist *persist, struct qn_parameter *parameter, int64_t offset)
{
    const struct qn_node *node = parameter->node;
    const struct qn_block *block = &persist->blocks[persist->n_blocks - 1];
    struct qn_value value = {.name = node->name,
                             .operand = node->leaf,
                             .bytes = qn_operand_bytes(&node->leaf),
                             .tag = QN_TAG_PARAMETERS,
                             .life = QN_LIFE_RUN,
                             .block = block->parameters,
                             .block_offset = offset};
    parameter->value = qn_persist_add(persist, &value);
    value.tag = QN_TAG_GRADIENTS;
    value.life = persist->early ? QN_LIFE_MICRO : QN_LIFE_CYCLE;
    value.block = block->gradients;
    value.block_offset = persist->early ? 0 : offset;
    parameter->gradient = qn_persist_add(persist, &value);
    parameter->block = persist->n_blocks - 1;
    parameter->first_chunk = persist->n_chunks;
    parameter->chunks = chunks_of(parameter);
    persist->n_chunks += parameter->chunks;
}

/* The trainable parameters from `first` on that fit one allocation: gives the parameter after them.
 */
static int block_end(const struct qn_lowering *how, const struct qn_persist *persist, int first,
                     int64_t *bytes, int *chunks)
{
    int p = first;
    *bytes = 0;
    *chunks = 0;
    for (; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (!parameter->trainable)
            continue;
        const int64_t size = aligned_bytes(how, parameter);
        if (*bytes && size > largest_block(how) - *bytes)
            break;
        *bytes += size;
        *chunks += chunks_of(parameter);
    }
    return p;
}

/* What is too large is named before it is added to anything. */
static qn_status check_parameters(const struct qn_lowering *how, const struct qn_persist *persist)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->trainable)
            QN_TRY(qn_persist_check_size(how, parameter->node->name, aligned_bytes(how, parameter),
                                         largest_block(how)));
    }
    return QN_OK;
}

qn_status qn_persist_lay_blocks(const struct qn_lowering *how, struct qn_persist *persist)
{
    QN_TRY(check_parameters(how, persist));
    for (int first = 0; first < persist->n_parameters;) {
        int64_t bytes, offset = 0;
        int chunks;
        const int end = block_end(how, persist, first, &bytes, &chunks);
        if (!bytes)
            break;
        if (persist->n_blocks == QN_MAX_BLOCKS)
            return qn_fail(how->log, QN_ERR_MEMORY,
                           "parameters: more than %d buffers of the largest allocation, %" PRId64
                           " bytes",
                           QN_MAX_BLOCKS, how->facts->max_alloc_bytes);
        QN_TRY(open_block(how, persist, bytes, chunks));
        for (struct qn_parameter *p = &persist->parameters[first]; p < &persist->parameters[end];
             p++)
            if (p->trainable) {
                add_member(persist, p, offset);
                offset += aligned_bytes(how, p);
            }
        first = end;
    }
    return QN_OK;
}

/* --- the parts of parameters --- */

struct qn_state_part qn_part_of_state(const struct qn_persist *persist,
                                      const struct qn_parameter *parameter, int state)
{
    const struct qn_block *block = &persist->blocks[parameter->block];
    const int64_t at = persist->values[parameter->value].block_offset / (int64_t)sizeof(float);
    const int each = persist->optimizer->state[state].per_chunk;
    if (!each)
        return (struct qn_state_part){at, qn_operand_count(&parameter->node->leaf)};
    return (struct qn_state_part){(int64_t)(parameter->first_chunk - block->first_chunk) * each,
                                  (int64_t)parameter->chunks * each};
}

static void add_rows(const struct qn_persist *persist, const struct qn_parameter *parameter,
                     int32_t (*table)[4])
{
    const int64_t offset = persist->early ? 0 : persist->values[parameter->value].block_offset;
    const int64_t first = offset / (int64_t)sizeof(float);
    const int64_t count = qn_operand_count(&parameter->node->leaf);
    for (int64_t done = 0; done < count; done += QN_CHUNK, table++) {
        const int64_t size = count - done < QN_CHUNK ? count - done : QN_CHUNK;
        (*table)[0] = (int32_t)(first + done);
        (*table)[1] = (int32_t)size;
        (*table)[2] = !parameter->node->no_decay;
        (*table)[3] = 0;
    }
}

void qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                    int32_t (*table)[4])
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->block >= 0 && &persist->blocks[parameter->block] == block)
            add_rows(persist, parameter, table + parameter->first_chunk - block->first_chunk);
    }
}
