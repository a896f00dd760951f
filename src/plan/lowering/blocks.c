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

/* Elements of a block: one allocation of f32, the gradients; the optimizer's table counts them in
 * 32 bits. */
static int64_t largest_block(const struct qn_lowering *how)
{
    const int64_t allocated = how->facts->max_alloc_bytes / (int64_t)sizeof(float);
    return allocated < INT32_MAX ? allocated : INT32_MAX;
}

/* The block's parameters, and what operators read of them; masters of `kept` elements. */
static void add_parameters(const struct qn_lowering *how, struct qn_persist *persist,
                           struct qn_block *block, qn_dtype dtype, int64_t kept)
{
    const bool master = qn_kind_has_master(how, (struct qn_kind){dtype, block->optimizer});
    block->working = qn_persist_add_array(persist, "parameters", dtype, block->count,
                                          QN_TAG_PARAMETERS, QN_LIFE_TRAINING);
    block->parameters = master ? qn_persist_add_array(persist, "master parameters", QN_F32, kept,
                                                      QN_TAG_OPTIMIZER, QN_LIFE_TRAINING)
                               : block->working;
}

/* What `kept` elements of the block's parameters are on average, if that is wanted, and what
 * evaluations read of it: they need all of them, and where members have parts read the parameters,
 * in whose place the averages of all are put for that time. */
static void add_average(struct qn_persist *persist, struct qn_block *block, qn_dtype dtype,
                        int64_t kept)
{
    block->average = block->working_average = -1;
    if (!persist->averaging)
        return;
    block->average = qn_persist_add_array(persist, "average parameters", QN_F32, kept,
                                          QN_TAG_AVERAGES, QN_LIFE_TRAINING);
    if (persist->shard.members)
        return;
    block->working_average = dtype == QN_F32
                                 ? block->average
                                 : qn_persist_add_array(persist, "average parameters", dtype, kept,
                                                        QN_TAG_AVERAGES, QN_LIFE_TRAINING);
}

/* Values of a block. */
static void add_values(const struct qn_lowering *how, struct qn_persist *persist,
                       struct qn_block *block, qn_dtype dtype, const struct qn_kept *kept,
                       const struct qn_slots *slots)
{
    add_parameters(how, persist, block, dtype, kept->count);
    add_average(persist, block, dtype, kept->count);
    block->gradients = persist->early
                           ? -1
                           : qn_persist_add_array(persist, "gradients", QN_F32, block->count,
                                                  QN_TAG_GRADIENTS, QN_LIFE_CYCLE);
    qn_slots_place(persist, block, slots);
    block->table = qn_persist_add_array(persist, "optimizer table", QN_I32,
                                        (int64_t)kept->chunks * QN_CHUNK_NUMBERS, QN_TAG_OPTIMIZER,
                                        QN_LIFE_TRAINING);
    persist->values[block->table].operand.shape =
        (struct qn_shape){2, {kept->chunks, QN_CHUNK_NUMBERS}};
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

/* A parameter and its gradient as values. */
static void add_member(struct qn_persist *persist, struct qn_parameter *parameter)
{
    const struct qn_node *node = parameter->node;
    const struct qn_block *block = &persist->blocks[parameter->block];
    const int64_t first = parameter->first;
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
    if (!block->optimizer->whole)
        qn_slots_find_parts(persist, parameter);
}

static bool is_member(const struct qn_persist *persist, const struct qn_parameter *parameter,
                      struct qn_kind kind)
{
    const struct qn_operand *leaf = &parameter->node->leaf;
    return parameter->trainable && leaf->dtype == kind.dtype &&
           qn_optimizer_of(persist->optimizer, &leaf->shape) == kind.optimizer;
}

/* The trainable parameters of the kind from `first` on that fit one allocation: gives the parameter
 * after them. */
static int block_end(const struct qn_lowering *how, const struct qn_persist *persist,
                     struct qn_kind kind, int first, int64_t *count)
{
    int p = first;
    *count = 0;
    for (; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (!is_member(persist, parameter, kind))
            continue;
        const int64_t size = aligned_count(how, parameter);
        if (*count && size > largest_block(how) - *count)
            break;
        *count += size;
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

/* Opens a block of the parameters of the kind from `first` to before `end`, and gives them their
 * places in it. */
static int open_block(const struct qn_lowering *how, struct qn_persist *persist,
                      struct qn_kind kind, int first, int end)
{
    const int number = persist->n_blocks++;
    struct qn_block *block = &persist->blocks[number];
    *block = (struct qn_block){.optimizer = kind.optimizer, .first_chunk = persist->n_chunks};
    for (int p = first; p < end; p++) {
        struct qn_parameter *parameter = &persist->parameters[p];
        if (!is_member(persist, parameter, kind))
            continue;
        parameter->block = number;
        parameter->first = block->count;
        parameter->first_chunk = persist->n_chunks;
        parameter->chunks = qn_chunks_of(parameter);
        block->count += aligned_count(how, parameter);
        block->chunks += parameter->chunks;
        persist->n_chunks += parameter->chunks;
    }
    return number;
}

/* Slots of a block, of which `kept` elements are this member's. */
static qn_status find_slots(const struct qn_lowering *how, struct qn_persist *persist,
                            struct qn_kind kind, int block, const struct qn_kept *kept,
                            struct qn_slots *slots)
{
    if (!kind.optimizer->whole)
        QN_TRY(qn_slots_of_block(how, persist, kind, kept->count, kept->chunks, slots));
    for (int p = 0; kind.optimizer->whole && p < persist->n_parameters; p++)
        if (persist->parameters[p].block == block)
            QN_TRY(qn_slots_add(how, persist, kind, &persist->parameters[p], slots));
    qn_shard_states(persist, block, slots);
    return QN_OK;
}

static qn_status lay_block(const struct qn_lowering *how, struct qn_persist *persist,
                           struct qn_kind kind, int first, int end)
{
    const int block = open_block(how, persist, kind, first, end);
    struct qn_slots slots = {0};
    struct qn_kept kept;
    QN_TRY(qn_shard_block(how, persist, block, &kept));
    QN_TRY(find_slots(how, persist, kind, block, &kept, &slots));
    add_values(how, persist, &persist->blocks[block], kind.dtype, &kept, &slots);
    for (int p = first; p < end; p++)
        if (persist->parameters[p].block == block)
            add_member(persist, &persist->parameters[p]);
    return QN_OK;
}

static qn_status lay_blocks_of(const struct qn_lowering *how, struct qn_persist *persist,
                               struct qn_kind kind)
{
    for (int first = 0; first < persist->n_parameters;) {
        int64_t count;
        const int end = block_end(how, persist, kind, first, &count);
        if (!count)
            break;
        if (persist->n_blocks == QN_MAX_BLOCKS)
            return qn_fail(how->log, QN_ERR_MEMORY,
                           "parameters: more than %d buffers of the largest allocation, %" PRId64
                           " bytes",
                           QN_MAX_BLOCKS, how->facts->max_alloc_bytes);
        QN_TRY(lay_block(how, persist, kind, first, end));
        first = end;
    }
    return QN_OK;
}

/* --- frozen ones --- */

/* Bytes of gradient, master, average and slots that the parameter would have if it were trained. */
static int64_t spared_bytes(const struct qn_lowering *how, const struct qn_persist *persist,
                            const struct qn_parameter *parameter)
{
    const struct qn_operand *leaf = &parameter->node->leaf;
    const struct qn_kind kind = {leaf->dtype, qn_optimizer_of(persist->optimizer, &leaf->shape)};
    const int64_t count = aligned_count(how, parameter);
    const int64_t numbers = (!persist->early) + qn_kind_has_master(how, kind);
    int64_t bytes = count * numbers * (int64_t)sizeof(float);
    if (persist->averaging)
        bytes += count *
                 ((int64_t)sizeof(float) + (kind.dtype == QN_F32 ? 0 : qn_dtype_size(kind.dtype)));
    return bytes + qn_slots_bytes(how, persist, kind, parameter, count);
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
    const struct qn_op *usual = persist->optimizer, *small = qn_optimizer_small(usual);
    QN_TRY(check_parameters(how, persist));
    count_frozen(how, persist);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        QN_TRY(lay_blocks_of(how, persist, (struct qn_kind){types[i], usual}));
        if (small != usual)
            QN_TRY(lay_blocks_of(how, persist, (struct qn_kind){types[i], small}));
    }
    return qn_shard_order(how, persist);
}

/* --- parameters within blocks --- */

int qn_block_correction(const struct qn_block *block)
{
    const int slot = block->optimizer->correction;
    return slot && block->state[slot] >= 0 ? slot : -1;
}

int qn_correction_of(const struct qn_persist *persist, const struct qn_parameter *parameter)
{
    return parameter->block < 0 ? -1 : qn_block_correction(&persist->blocks[parameter->block]);
}

struct qn_chunk qn_chunk_row(const struct qn_parameter *parameter, int index, int64_t first)
{
    const struct qn_node *node = parameter->node;
    const int64_t done = (int64_t)index * QN_CHUNK, left = qn_operand_count(&node->leaf) - done;
    return (struct qn_chunk){.first = (int32_t)(first + done),
                             .count = (int32_t)(left < QN_CHUNK ? left : QN_CHUNK),
                             .number = parameter->first_chunk + index,
                             .rate = node->rate,
                             .decay = node->decay};
}

void qn_block_rows(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (parameter->block < 0 || &persist->blocks[parameter->block] != block)
            continue;
        for (int c = 0; c < parameter->chunks; c++)
            *table++ = qn_chunk_row(parameter, c, persist->early ? 0 : parameter->first);
    }
}

int qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table)
{
    if (persist->shard.members)
        return qn_shard_table(persist, block, table);
    qn_block_rows(persist, block, table);
    return block->chunks;
}
