/* SPDX-License-Identifier: MIT
 *
 * Blocks: trainable parameters side by side in one array, which one optimizer launch updates.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/persist.h"

#include <inttypes.h>

/* Elements from one member of a block to the next: whole units of alignment in the parameter's own
 * type, and so in f32 too. */
static int64_t aligned_count(const struct qn_lowering *how, const struct qn_parameter *parameter)
{
    const struct qn_operand *leaf = &parameter->node->leaf;
    return qn_round_up(qn_operand_bytes(leaf), how->facts->alignment) / qn_dtype_size(leaf->dtype);
}

static int chunks_of(const struct qn_parameter *parameter)
{
    return (int)qn_div_up(qn_operand_count(&parameter->node->leaf), QN_CHUNK);
}

/* Elements of a block: one allocation of f32, the gradients; the optimizer's table counts them in
 * 32 bits. */
static int64_t largest_block(const struct qn_lowering *how)
{
    const int64_t allocated = how->facts->max_alloc_bytes / (int64_t)sizeof(float);
    return allocated < INT32_MAX ? allocated : INT32_MAX;
}

/* Adds slot s of the optimizer for a block. Checks that it has per_chunk elements for each chunk,
 * or (per_chunk 0) as many as the block: qn_part_of_state takes that for granted. */
static qn_status add_state(const struct qn_lowering *how, struct qn_persist *persist,
                           struct qn_block *block, int s, const struct qn_operand *state)
{
    const struct qn_state_info *info = &block->optimizer->state[s];
    const int64_t elements = qn_operand_count(&persist->values[block->parameters].operand);
    const int64_t count = info->per_chunk ? (int64_t)block->chunks * info->per_chunk : elements;
    if (qn_operand_count(state) != count)
        return qn_fail(how->log, QN_ERR_SHAPE,
                       "%s: %s has %" PRId64 " elements for a block of %" PRId64
                       " in %d chunks, not %" PRId64,
                       block->optimizer->name, info->name, qn_operand_count(state), elements,
                       block->chunks, count);
    block->state[s] = qn_persist_add_array(persist, info->name, state->dtype, count,
                                           QN_TAG_OPTIMIZER, QN_LIFE_TRAINING);
    return QN_OK;
}

/* Asks an optimizer for the slots of `count` elements of what it updates, in so many chunks. */
static qn_status ask_states(const struct qn_op *op, const struct qn_persist *persist,
                            qn_dtype dtype, int64_t count, int chunks, struct qn_shape_call *call)
{
    *call = (struct qn_shape_call){.attr = persist->settings, .storage = QN_F32, .batch = 1};
    qn_shape_set(&call->in[0], dtype, 1, &count);
    qn_shape_set(&call->in[1], QN_F32, 1, &count);
    qn_shape_set(&call->in[2], QN_I32, 2, (int64_t[]){chunks, QN_CHUNK_NUMBERS});
    return op->shape(call);
}

/* Adds the optimizer's slots for a block, of the shapes that the optimizer's rule gives. */
static qn_status add_states(const struct qn_lowering *how, struct qn_persist *persist,
                            struct qn_block *block)
{
    const struct qn_op *op = block->optimizer;
    const struct qn_operand *parameters = &persist->values[block->parameters].operand;
    struct qn_shape_call call;
    if (ask_states(op, persist, parameters->dtype, qn_operand_count(parameters), block->chunks,
                   &call) != QN_OK)
        return qn_fail(how->log, QN_ERR_SHAPE, "%s: %s", op->name, call.reason);
    for (int s = 0; s < QN_MAX_STATE; s++) {
        block->state[s] = -1;
        if (qn_present(&call.state[s]))
            QN_TRY(add_state(how, persist, block, s, &call.state[s]));
    }
    return QN_OK;
}

/* Whether parameters of the type have masters. */
static bool has_master(const struct qn_lowering *how, const struct qn_op *optimizer, qn_dtype dtype)
{
    return dtype != QN_F32 && !how->params->optimizer.no_master &&
           !qn_optimizer_corrects(optimizer, dtype);
}

/* The block's parameters, and what operators read of them. */
static void add_parameters(const struct qn_lowering *how, struct qn_persist *persist,
                           struct qn_block *block, qn_dtype dtype, int64_t count)
{
    const bool master = has_master(how, block->optimizer, dtype);
    block->working = qn_persist_add_array(persist, "parameters", dtype, count, QN_TAG_PARAMETERS,
                                          QN_LIFE_TRAINING);
    block->parameters = master ? qn_persist_add_array(persist, "master parameters", QN_F32, count,
                                                      QN_TAG_OPTIMIZER, QN_LIFE_TRAINING)
                               : block->working;
}

/* What the block's parameters are on average, if that is wanted. */
static void add_average(struct qn_persist *persist, struct qn_block *block, qn_dtype dtype,
                        int64_t count)
{
    block->average = block->working_average = -1;
    if (!persist->averaging)
        return;
    block->average = qn_persist_add_array(persist, "average parameters", QN_F32, count,
                                          QN_TAG_AVERAGES, QN_LIFE_TRAINING);
    block->working_average = dtype == QN_F32
                                 ? block->average
                                 : qn_persist_add_array(persist, "average parameters", dtype, count,
                                                        QN_TAG_AVERAGES, QN_LIFE_TRAINING);
}

/* What parameters of a block have in common. */
struct kind {
    qn_dtype dtype;
    const struct qn_op *optimizer;
};

/* Values of a block whose members are `count` elements together. */
static qn_status open_block(const struct qn_lowering *how, struct qn_persist *persist,
                            struct kind kind, int64_t count, int chunks)
{
    struct qn_block *block = &persist->blocks[persist->n_blocks++];
    block->optimizer = kind.optimizer;
    block->chunks = chunks;
    block->first_chunk = persist->n_chunks;
    add_parameters(how, persist, block, kind.dtype, count);
    add_average(persist, block, kind.dtype, count);
    block->gradients = persist->early ? -1
                                      : qn_persist_add_array(persist, "gradients", QN_F32, count,
                                                             QN_TAG_GRADIENTS, QN_LIFE_CYCLE);
    QN_TRY(add_states(how, persist, block));
    block->table =
        qn_persist_add_array(persist, "optimizer table", QN_I32, (int64_t)chunks * QN_CHUNK_NUMBERS,
                             QN_TAG_OPTIMIZER, QN_LIFE_TRAINING);
    persist->values[block->table].operand.shape = (struct qn_shape){2, {chunks, QN_CHUNK_NUMBERS}};
    return QN_OK;
}

/* The part of the block's array `whole` (-1: there is none) that is a parameter's, `first` elements
 * from the start. */
static int add_part(struct qn_persist *persist, const struct qn_node *node, int whole,
                    int64_t first)
{
    if (whole < 0)
        return -1;
    struct qn_value value = persist->values[whole];
    value.name = node->name;
    qn_shape_set(&value.operand, value.operand.dtype, node->leaf.shape.rank, node->leaf.shape.dim);
    value.bytes = qn_operand_bytes(&value.operand);
    value.block = whole;
    value.block_offset = first * qn_dtype_size(value.operand.dtype);
    return qn_persist_add(persist, &value);
}

/* The gradient of early updates: it lives from its first write to its optimizer. */
static int add_early_gradient(struct qn_persist *persist, const struct qn_node *node)
{
    struct qn_value value = {
        .name = node->name, .tag = QN_TAG_GRADIENTS, .life = QN_LIFE_MICRO, .block = -1};
    qn_shape_set(&value.operand, QN_F32, node->leaf.shape.rank, node->leaf.shape.dim);
    value.bytes = qn_operand_bytes(&value.operand);
    return qn_persist_add(persist, &value);
}

/* A parameter and its gradient, `first` elements from the start of the open block. */
static void add_member(struct qn_persist *persist, struct qn_parameter *parameter, int64_t first)
{
    const struct qn_node *node = parameter->node;
    const struct qn_block *block = &persist->blocks[persist->n_blocks - 1];
    parameter->value = add_part(persist, node, block->parameters, first);
    parameter->working = block->working == block->parameters
                             ? parameter->value
                             : add_part(persist, node, block->working, first);
    parameter->average = add_part(persist, node, block->average, first);
    parameter->working_average = block->working_average == block->average
                                     ? parameter->average
                                     : add_part(persist, node, block->working_average, first);
    parameter->gradient = persist->early ? add_early_gradient(persist, node)
                                         : add_part(persist, node, block->gradients, first);
    parameter->block = persist->n_blocks - 1;
    parameter->first_chunk = persist->n_chunks;
    parameter->chunks = chunks_of(parameter);
    persist->n_chunks += parameter->chunks;
}

static bool is_member(const struct qn_persist *persist, const struct qn_parameter *parameter,
                      struct kind kind)
{
    const struct qn_operand *leaf = &parameter->node->leaf;
    return parameter->trainable && leaf->dtype == kind.dtype &&
           qn_optimizer_of(persist->optimizer, qn_operand_count(leaf)) == kind.optimizer;
}

/* The trainable parameters of the kind from `first` on that fit one allocation: gives the parameter
 * after them. */
static int block_end(const struct qn_lowering *how, const struct qn_persist *persist,
                     struct kind kind, int first, int64_t *count, int *chunks)
{
    int p = first;
    *count = 0;
    *chunks = 0;
    for (; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (!is_member(persist, parameter, kind))
            continue;
        const int64_t size = aligned_count(how, parameter);
        if (*count && size > largest_block(how) - *count)
            break;
        *count += size;
        *chunks += chunks_of(parameter);
    }
    return p;
}

/* QN_ERR_MEMORY names a parameter that is larger than any block. */
static qn_status check_parameters(const struct qn_lowering *how, const struct qn_persist *persist)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->trainable)
            QN_TRY(qn_persist_check_size(how, parameter->node->name,
                                         aligned_count(how, parameter) * (int64_t)sizeof(float),
                                         largest_block(how) * (int64_t)sizeof(float)));
    }
    return QN_OK;
}

static qn_status lay_blocks_of(const struct qn_lowering *how, struct qn_persist *persist,
                               struct kind kind)
{
    for (int first = 0; first < persist->n_parameters;) {
        int64_t count, at = 0;
        int chunks;
        const int end = block_end(how, persist, kind, first, &count, &chunks);
        if (!count)
            break;
        if (persist->n_blocks == QN_MAX_BLOCKS)
            return qn_fail(how->log, QN_ERR_MEMORY,
                           "parameters: more than %d buffers of the largest allocation, %" PRId64
                           " bytes",
                           QN_MAX_BLOCKS, how->facts->max_alloc_bytes);
        QN_TRY(open_block(how, persist, kind, count, chunks));
        for (struct qn_parameter *p = &persist->parameters[first]; p < &persist->parameters[end];
             p++)
            if (is_member(persist, p, kind)) {
                add_member(persist, p, at);
                at += aligned_count(how, p);
            }
        first = end;
    }
    return QN_OK;
}

/* --- frozen ones --- */

/* Bytes of gradient, master, average and slots that the parameter would have if it were trained. */
static int64_t spared_bytes(const struct qn_lowering *how, const struct qn_persist *persist,
                            const struct qn_parameter *parameter)
{
    const qn_dtype dtype = parameter->node->leaf.dtype;
    const struct qn_op *optimizer =
        qn_optimizer_of(persist->optimizer, qn_operand_count(&parameter->node->leaf));
    const bool master = has_master(how, optimizer, dtype);
    const int64_t count = aligned_count(how, parameter), numbers = (!persist->early) + master;
    int64_t bytes = count * numbers * (int64_t)sizeof(float);
    if (persist->averaging)
        bytes += count * ((int64_t)sizeof(float) + (dtype == QN_F32 ? 0 : qn_dtype_size(dtype)));
    struct qn_shape_call call;
    if (ask_states(optimizer, persist, master ? QN_F32 : dtype, count, chunks_of(parameter),
                   &call) == QN_OK)
        for (int s = 0; s < QN_MAX_STATE; s++)
            bytes += qn_present(&call.state[s]) ? qn_operand_bytes(&call.state[s]) : 0;
    return bytes;
}

static void count_frozen(const struct qn_lowering *how, struct qn_persist *persist)
{
    for (int p = 0; p < persist->n_parameters && qn_runs_train(&persist->runs); p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (!parameter->node->frozen)
            continue;
        persist->frozen.tensors++;
        persist->frozen.parameters += qn_operand_count(&parameter->node->leaf);
        persist->frozen.bytes += spared_bytes(how, persist, parameter);
    }
}

qn_status qn_persist_lay_blocks(const struct qn_lowering *how, struct qn_persist *persist)
{
    static const qn_dtype types[] = {QN_F32, QN_F16, QN_BF16};
    const struct qn_op *usual = persist->optimizer, *small = qn_optimizer_of(usual, 1);
    QN_TRY(check_parameters(how, persist));
    count_frozen(how, persist);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        QN_TRY(lay_blocks_of(how, persist, (struct kind){types[i], usual}));
        if (small != usual)
            QN_TRY(lay_blocks_of(how, persist, (struct kind){types[i], small}));
    }
    return QN_OK;
}

/* --- parameters within blocks --- */

/* In its block. */
static int64_t first_element(const struct qn_persist *persist, const struct qn_parameter *parameter)
{
    const struct qn_value *value = &persist->values[parameter->value];
    return value->block_offset / qn_dtype_size(value->operand.dtype);
}

struct qn_state_part qn_part_of_state(const struct qn_persist *persist,
                                      const struct qn_parameter *parameter, int state)
{
    const struct qn_block *block = &persist->blocks[parameter->block];
    const int64_t at = first_element(persist, parameter);
    const int each = block->optimizer->state[state].per_chunk;
    if (!each)
        return (struct qn_state_part){at, qn_operand_count(&parameter->node->leaf)};
    return (struct qn_state_part){(int64_t)(parameter->first_chunk - block->first_chunk) * each,
                                  (int64_t)parameter->chunks * each};
}

int qn_block_correction(const struct qn_block *block)
{
    const int slot = block->optimizer->correction;
    return slot && block->state[slot] >= 0 ? slot : -1;
}

int qn_correction_of(const struct qn_persist *persist, const struct qn_parameter *parameter)
{
    return parameter->block < 0 ? -1 : qn_block_correction(&persist->blocks[parameter->block]);
}

static void add_rows(const struct qn_persist *persist, const struct qn_parameter *parameter,
                     struct qn_chunk *table)
{
    const struct qn_node *node = parameter->node;
    const int64_t first = persist->early ? 0 : first_element(persist, parameter);
    const int64_t count = qn_operand_count(&parameter->node->leaf);
    int32_t number = parameter->first_chunk;
    for (int64_t done = 0; done < count; done += QN_CHUNK, table++) {
        const int64_t size = count - done < QN_CHUNK ? count - done : QN_CHUNK;
        *table = (struct qn_chunk){.first = (int32_t)(first + done),
                                   .count = (int32_t)size,
                                   .number = number++,
                                   .rate = node->rate,
                                   .decay = node->decay};
    }
}

void qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                    struct qn_chunk *table)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->block >= 0 && &persist->blocks[parameter->block] == block)
            add_rows(persist, parameter, table + parameter->first_chunk - block->first_chunk);
    }
}
