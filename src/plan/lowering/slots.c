/* SPDX-License-Identifier: MIT
 *
 * Slots: what optimizers keep of the parameters of a block.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/persist.h"

#include <inttypes.h>

bool qn_kind_has_master(const struct qn_lowering *how, struct qn_kind kind)
{
    return kind.dtype != QN_F32 && !how->params->optimizer.no_master &&
           !qn_optimizer_corrects(kind.optimizer, kind.dtype);
}

int qn_chunks_of(const struct qn_parameter *parameter)
{
    return (int)qn_div_up(qn_operand_count(&parameter->node->leaf), QN_CHUNK);
}

/* Asks an optimizer for the slots of parameters of that kind and shape, in so many chunks. */
static qn_status ask(const struct qn_lowering *how, const struct qn_persist *persist,
                     struct qn_kind kind, const struct qn_shape *shape, int chunks,
                     struct qn_shape_call *call)
{
    const qn_dtype dtype = qn_kind_has_master(how, kind) ? QN_F32 : kind.dtype;
    *call = (struct qn_shape_call){.attr = persist->settings, .storage = QN_F32, .batch = 1};
    qn_shape_set(&call->in[0], dtype, shape->rank, shape->dim);
    qn_shape_set(&call->in[1], QN_F32, shape->rank, shape->dim);
    qn_shape_set(&call->in[2], QN_I32, 2, (int64_t[]){chunks, QN_CHUNK_NUMBERS});
    return kind.optimizer->shape(call);
}

qn_status qn_slots_of_block(const struct qn_lowering *how, const struct qn_persist *persist,
                            struct qn_kind kind, int64_t count, int chunks, struct qn_slots *slots)
{
    const struct qn_op *op = kind.optimizer;
    struct qn_shape_call call;
    if (ask(how, persist, kind, &(struct qn_shape){1, {count}}, chunks, &call) != QN_OK)
        return qn_fail(how->log, QN_ERR_SHAPE, "%s: %s", op->name, call.reason);
    for (int s = 0; s < QN_MAX_STATE; s++) {
        const int64_t elements = qn_operand_count(&call.state[s]);
        const int64_t wanted =
            op->state[s].per_chunk ? (int64_t)chunks * op->state[s].per_chunk : count;
        if (qn_present(&call.state[s]) && elements != wanted)
            return qn_fail(how->log, QN_ERR_SHAPE,
                           "%s: %s has %" PRId64 " elements for a block of %" PRId64
                           " in %d chunks, not %" PRId64,
                           op->name, op->state[s].name, elements, count, chunks, wanted);
        slots->dtype[s] = call.state[s].dtype;
        slots->count[s] = elements;
    }
    return QN_OK;
}

void qn_slots_find_parts(const struct qn_persist *persist, struct qn_parameter *parameter)
{
    const struct qn_block *block = &persist->blocks[parameter->block];
    const int64_t chunk = parameter->first_chunk - block->first_chunk;
    for (int s = 0; s < QN_MAX_STATE; s++) {
        const int each = block->optimizer->state[s].per_chunk;
        if (block->state[s] >= 0)
            parameter->part[s] =
                each ? (struct qn_state_part){chunk * each, (int64_t)parameter->chunks * each}
                     : (struct qn_state_part){parameter->first,
                                              qn_operand_count(&parameter->node->leaf)};
    }
}

qn_status qn_slots_add(const struct qn_lowering *how, const struct qn_persist *persist,
                       struct qn_kind kind, struct qn_parameter *parameter, struct qn_slots *slots)
{
    const struct qn_node *node = parameter->node;
    struct qn_shape_call call;
    if (ask(how, persist, kind, &node->leaf.shape, qn_chunks_of(parameter), &call) != QN_OK)
        return qn_fail(how->log, QN_ERR_SHAPE, "%s: %s: %s", node->name, kind.optimizer->name,
                       call.reason);
    for (int s = 0; s < QN_MAX_STATE; s++) {
        const int64_t elements = qn_operand_count(&call.state[s]);
        parameter->part[s] = (struct qn_state_part){slots->count[s], elements};
        slots->count[s] += elements;
        if (elements)
            slots->dtype[s] = call.state[s].dtype;
    }
    return QN_OK;
}

void qn_slots_place(struct qn_persist *persist, struct qn_block *block,
                    const struct qn_slots *slots)
{
    for (int s = 0; s < QN_MAX_STATE; s++)
        block->state[s] =
            slots->dtype[s] == QN_DTYPE_NONE
                ? -1
                : qn_persist_add_array(persist, block->optimizer->state[s].name, slots->dtype[s],
                                       slots->count[s], QN_TAG_OPTIMIZER, QN_LIFE_TRAINING);
}

int64_t qn_slots_bytes(const struct qn_lowering *how, const struct qn_persist *persist,
                       struct qn_kind kind, const struct qn_parameter *parameter, int64_t count)
{
    const struct qn_shape row = {1, {count}};
    const struct qn_shape *shape = kind.optimizer->whole ? &parameter->node->leaf.shape : &row;
    struct qn_shape_call call;
    int64_t bytes = 0;
    if (ask(how, persist, kind, shape, qn_chunks_of(parameter), &call) == QN_OK)
        for (int s = 0; s < QN_MAX_STATE; s++)
            bytes += qn_present(&call.state[s]) ? qn_operand_bytes(&call.state[s]) : 0;
    return bytes;
}
