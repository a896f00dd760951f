/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "op/control.h"
#include "plan/problem.h"

#include <inttypes.h>
#include <stdio.h>

int64_t qn_largest_batch(const struct qn_plan_params *params)
{
    int64_t largest = 0;
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        largest = params->batch[i] > largest ? params->batch[i] : largest;
    return largest;
}

int64_t qn_one_group(const struct qn_plan_params *params, const struct qn_graph *graph)
{
    int64_t group = qn_graph_batch_group(graph), batch = qn_largest_batch(params);
    return group < batch ? group : batch;
}

static int add_value(struct qn_persist *persist, const struct qn_value *value)
{
    int number = persist->n_values++;
    persist->values[number] = *value;
    return number;
}

/* A persistent value of its own; dimension list {count}. */
static int add_plain(struct qn_persist *persist, const char *name, qn_dtype dtype, int64_t count,
                     enum qn_tag tag, enum qn_life life)
{
    struct qn_value value = {.name = name, .tag = tag, .life = life, .block = -1};
    qn_shape_set(&value.operand, dtype, 1, &count);
    value.bytes = qn_operand_bytes(&value.operand);
    return add_value(persist, &value);
}

static int slot_count(const struct qn_optimizer *optimizer)
{
    return optimizer->kind == QN_SGD ? optimizer->momentum != 0 : 2;
}

/* --- blocks of parameters --- */

/* A parameter that no loss reaches is held like a frozen one: nobody would write its gradient. */
static void mark_trainable(struct qn_persist *persist)
{
    const struct qn_graph *graph = persist->graph;
    qn_graph_mark_training(graph, persist->trainable);
    for (int n = 0; n < graph->n_nodes; n++)
        persist->trainable[n] &=
            graph->nodes[n].kind == QN_NODE_PARAMETER && !graph->nodes[n].frozen;
}

static int64_t aligned_bytes(const struct qn_lowering *how, const struct qn_operand *operand)
{
    return qn_round_up(qn_operand_bytes(operand), how->facts->alignment);
}

/* Bytes of a block: one allocation, and the optimizer's table counts its elements in 32 bits. */
static int64_t largest_block(const struct qn_lowering *how)
{
    const int64_t counted = INT32_MAX * (int64_t)sizeof(float);
    return how->facts->max_alloc_bytes < counted ? how->facts->max_alloc_bytes : counted;
}

/* Values of a block whose members take `bytes` together. */
static void open_block(const struct qn_lowering *how, struct qn_persist *persist, int64_t bytes,
                       int chunks)
{
    struct qn_block *block = &persist->blocks[persist->n_blocks];
    int64_t count = bytes / (int64_t)sizeof(float);
    block->chunks = chunks;
    block->first_chunk = persist->n_chunks;
    block->parameters =
        add_plain(persist, "parameters", QN_F32, count, QN_TAG_PARAMETERS, QN_LIFE_RUN);
    block->gradients = persist->early ? -1
                                      : add_plain(persist, "gradients", QN_F32, count,
                                                  QN_TAG_GRADIENTS, QN_LIFE_CYCLE);
    for (int s = 0; s < QN_MAX_SLOTS; s++)
        block->slots[s] = s < slot_count(&how->params->optimizer)
                              ? add_plain(persist, s ? "second moments" : "first moments", QN_F32,
                                          count, QN_TAG_OPTIMIZER, QN_LIFE_RUN)
                              : -1;
    block->table = add_plain(persist, "optimizer table", QN_I32, (int64_t)chunks * 4,
                             QN_TAG_OPTIMIZER, QN_LIFE_RUN);
    persist->values[block->table].operand.shape = (struct qn_shape){2, {chunks, 4}};
    persist->n_blocks++;
}

/* A parameter and its gradient at `offset` of the open block; of early updates the gradient lives
 * from its first write to its optimizer. */
static void add_member(struct qn_persist *persist, int n, int64_t offset)
{
    const struct qn_node *node = &persist->graph->nodes[n];
    const struct qn_block *block = &persist->blocks[persist->n_blocks - 1];
    struct qn_value value = {.name = node->name,
                             .operand = node->leaf,
                             .bytes = qn_operand_bytes(&node->leaf),
                             .tag = QN_TAG_PARAMETERS,
                             .life = QN_LIFE_RUN,
                             .block = block->parameters,
                             .block_offset = offset};
    persist->leaf[n] = add_value(persist, &value);
    value.tag = QN_TAG_GRADIENTS;
    value.life = persist->early ? QN_LIFE_MICRO : QN_LIFE_CYCLE;
    value.block = block->gradients;
    value.block_offset = persist->early ? 0 : offset;
    persist->gradient[n] = add_value(persist, &value);
    persist->chunk[n] = persist->n_chunks;
    persist->n_chunks += qn_chunks_of(persist, n);
}

/* The run of trainable nodes from `first` on that fits one allocation: gives the node after it. */
static int block_end(const struct qn_lowering *how, const struct qn_persist *persist, int first,
                     int64_t *bytes, int *chunks)
{
    const struct qn_graph *graph = persist->graph;
    *bytes = 0;
    *chunks = 0;
    int n = first;
    for (; n < graph->n_nodes; n++) {
        if (!persist->trainable[n])
            continue;
        int64_t size = aligned_bytes(how, &graph->nodes[n].leaf);
        if (*bytes && size > largest_block(how) - *bytes)
            break;
        *bytes += size;
        *chunks += qn_chunks_of(persist, n);
    }
    return n;
}

static qn_status check_size(const struct qn_lowering *how, const char *name, int64_t bytes,
                            int64_t most)
{
    if (bytes < 0 || bytes > most)
        return qn_fail(how->log, QN_ERR_MEMORY,
                       "%s: %" PRId64 " bytes are more than the largest allocation, %" PRId64, name,
                       bytes, most);
    return QN_OK;
}

/* What is too large is named before it is added to anything. */
static qn_status check_parameters(const struct qn_lowering *how, const struct qn_persist *persist)
{
    for (int n = 0; n < persist->graph->n_nodes; n++) {
        const struct qn_node *node = &persist->graph->nodes[n];
        if (persist->trainable[n])
            QN_TRY(
                check_size(how, node->name, aligned_bytes(how, &node->leaf), largest_block(how)));
    }
    return QN_OK;
}

static qn_status lay_blocks(const struct qn_lowering *how, struct qn_persist *persist)
{
    const struct qn_graph *graph = persist->graph;
    for (int first = 0; first < graph->n_nodes;) {
        int64_t bytes, offset = 0;
        int chunks;
        int end = block_end(how, persist, first, &bytes, &chunks);
        if (!bytes)
            break;
        if (persist->n_blocks == QN_MAX_BLOCKS)
            return qn_fail(how->log, QN_ERR_MEMORY,
                           "parameters: more than %d buffers of the largest allocation, %" PRId64
                           " bytes",
                           QN_MAX_BLOCKS, how->facts->max_alloc_bytes);
        open_block(how, persist, bytes, chunks);
        for (int n = first; n < end; n++)
            if (persist->trainable[n]) {
                add_member(persist, n, offset);
                offset += aligned_bytes(how, &graph->nodes[n].leaf);
            }
        first = end;
    }
    return QN_OK;
}

/* What the norm of the whole gradient needs when no gradient is there any more. */
static void add_norms(struct qn_persist *persist)
{
    if (persist->early && persist->n_chunks)
        persist->norms = add_plain(persist, "gradient norm", QN_F32, persist->n_chunks,
                                   QN_TAG_SCRATCH, QN_LIFE_CYCLE);
}

/* --- everything else --- */

static void add_untrained(struct qn_persist *persist, int n)
{
    const struct qn_node *node = &persist->graph->nodes[n];
    struct qn_value value = {.name = node->name,
                             .operand = node->leaf,
                             .bytes = qn_operand_bytes(&node->leaf),
                             .tag = QN_TAG_PARAMETERS,
                             .life = QN_LIFE_RUN,
                             .block = -1};
    persist->leaf[n] = add_value(persist, &value);
}

static void add_state(struct qn_persist *persist, int n, const struct qn_shape_call *call)
{
    const char *name = persist->graph->nodes[n].name;
    for (int i = 0; i < QN_MAX_STATE; i++) {
        struct qn_value value = {.name = name, .tag = QN_TAG_STATE, .block = -1};
        if (qn_present(&call->state[i])) {
            value.operand = call->state[i];
            value.bytes = qn_operand_bytes(&value.operand);
            value.life = QN_LIFE_RUN;
            persist->state[n][i] = add_value(persist, &value);
        }
        if (qn_present(&call->gather[i])) {
            value.operand = call->gather[i];
            value.bytes = qn_operand_bytes(&value.operand);
            value.life = QN_LIFE_CYCLE;
            persist->gather[n][i] = add_value(persist, &value);
        }
    }
}

static bool allocate(const struct qn_lowering *how, struct qn_persist *persist)
{
    size_t nodes = (size_t)persist->graph->n_nodes;
    size_t capacity = nodes * (2 + 2 * QN_MAX_STATE) + QN_MAX_BLOCKS * 5 + 2;
    persist->values = qn_arena_new(how->arena, struct qn_value, capacity);
    persist->trainable = qn_arena_new(how->arena, bool, nodes);
    persist->leaf = qn_arena_new(how->arena, int, nodes);
    persist->gradient = qn_arena_new(how->arena, int, nodes);
    persist->chunk = qn_arena_new(how->arena, int, nodes);
    persist->state = qn_arena_alloc(how->arena, nodes, sizeof *persist->state);
    persist->gather = qn_arena_alloc(how->arena, nodes, sizeof *persist->gather);
    if (!persist->values || !persist->trainable || !persist->leaf || !persist->gradient ||
        !persist->chunk || !persist->state || !persist->gather)
        return false;
    for (size_t n = 0; n < nodes; n++) {
        persist->leaf[n] = persist->gradient[n] = -1;
        for (int i = 0; i < QN_MAX_STATE; i++)
            persist->state[n][i] = persist->gather[n][i] = -1;
    }
    return true;
}

static qn_status check_sizes(const struct qn_lowering *how, const struct qn_persist *persist)
{
    for (int v = 0; v < persist->n_values; v++)
        QN_TRY(check_size(how, persist->values[v].name, persist->values[v].bytes,
                          how->facts->max_alloc_bytes));
    return QN_OK;
}

qn_status qn_persist_make(const struct qn_lowering *how, const struct qn_graph *graph,
                          struct qn_persist *persist)
{
    *persist = (struct qn_persist){.graph = graph, .early = how->early, .norms = -1};
    struct qn_shapes shapes;
    QN_TRY(qn_graph_shapes(graph, qn_one_group(how->params, graph), how->arena, how->log, &shapes));
    if (!allocate(how, persist))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    persist->control =
        add_plain(persist, "control block", QN_F32,
                  (int64_t)(sizeof(struct qn_control) / sizeof(float)), QN_TAG_STATE, QN_LIFE_RUN);
    mark_trainable(persist);
    QN_TRY(check_parameters(how, persist));
    QN_TRY(lay_blocks(how, persist));
    add_norms(persist);
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind == QN_NODE_OPERATOR)
            add_state(persist, n, &shapes.calls[n]);
        else if (node->kind != QN_NODE_INPUT && persist->leaf[n] < 0)
            add_untrained(persist, n);
    }
    return check_sizes(how, persist);
}

/* --- chunks --- */

const struct qn_block *qn_block_of(const struct qn_persist *persist, int node)
{
    const struct qn_block *block = persist->blocks;
    while (block->parameters != persist->values[persist->leaf[node]].block)
        block++;
    return block;
}

int qn_chunks_of(const struct qn_persist *persist, int node)
{
    return (int)qn_div_up(qn_operand_count(&persist->graph->nodes[node].leaf), QN_CHUNK);
}

static int add_chunks(const struct qn_persist *persist, int n, int32_t (*table)[4])
{
    const struct qn_node *node = &persist->graph->nodes[n];
    int64_t offset = persist->early ? 0 : persist->values[persist->leaf[n]].block_offset;
    int64_t first = offset / (int64_t)sizeof(float);
    int64_t count = qn_operand_count(&node->leaf);
    int chunks = 0;
    for (int64_t done = 0; done < count; done += QN_CHUNK) {
        int64_t size = count - done < QN_CHUNK ? count - done : QN_CHUNK;
        table[chunks][0] = (int32_t)(first + done);
        table[chunks][1] = (int32_t)size;
        table[chunks][2] = !node->no_decay;
        table[chunks][3] = 0;
        chunks++;
    }
    return chunks;
}

void qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                    int32_t (*table)[4])
{
    int chunks = 0;
    for (int n = 0; n < persist->graph->n_nodes; n++)
        if (persist->gradient[n] >= 0 &&
            persist->values[persist->leaf[n]].block == block->parameters)
            chunks += add_chunks(persist, n, table + chunks);
}
