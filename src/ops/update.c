/* SPDX-License-Identifier: MIT */
#include "ops/update.h"

#include "base/log.h"
#include "base/shape.h"

#include <math.h>
#include <string.h>

bool qn_is_table(const struct qn_operand *operand)
{
    return operand->dtype == QN_I32 && operand->shape.rank == 2 && operand->shape.dim[0] > 0 &&
           operand->shape.dim[1] == QN_CHUNK_NUMBERS;
}

qn_status qn_no_table(struct qn_shape_call *call)
{
    return qn_shape_error(call, "the table must be (chunks, 5) of i32");
}

qn_status qn_update_inputs(struct qn_shape_call *call)
{
    const struct qn_operand *parameters = &call->in[0], *gradients = &call->in[1];
    if (!qn_is_float(parameters) || gradients->dtype != QN_F32 ||
        !qn_shape_equal(&parameters->shape, &gradients->shape))
        return qn_shape_error(call, "parameters and f32 gradients must be of one shape");
    if (qn_operand_count(parameters) > INT32_MAX || !qn_is_table(&call->in[2]))
        return qn_no_table(call);
    call->out[0] = *parameters;
    return QN_OK;
}

qn_status qn_update_shape(struct qn_shape_call *call, int states)
{
    const struct qn_shape *block = &call->in[0].shape;
    QN_TRY(qn_update_inputs(call));
    if (block->rank != 1)
        return qn_shape_error(call, "parameters must be an array");
    for (int i = 0; i < states; i++)
        qn_shape_set(&call->state[i], QN_F32, 1, block->dim);
    return QN_OK;
}

void qn_update_cost(const struct qn_call *call, double flops_per_element, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, flops_per_element, &call->in[0], cost);
}

qn_status qn_update_launch(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_operand *table, struct qn_launch *launch)
{
    struct qn_walk walk = qn_walk_rows(call, QN_CHUNK);
    launch->global[0] = table->shape.dim[0] * walk.group;
    launch->local[0] = walk.group;
    qn_launch_type(launch, "P", &call->in[0]);
    qn_walk_options(launch, &walk);
    qn_launch_aligned(launch, call, walk.vector, call->facts->alignment / (int64_t)sizeof(float));
    return qn_emit_launch(emit, launch);
}

qn_status qn_update_norms_shape(struct qn_shape_call *call)
{
    if (call->in[0].dtype != QN_F32 || call->in[0].shape.rank != 1)
        return qn_shape_error(call, "the norms of chunks must be an f32 array");
    return QN_OK;
}

qn_status qn_update_norms_launch(struct qn_emit *emit, const struct qn_call *call,
                                 struct qn_launch *launch)
{
    const struct qn_optimizer_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->in[0]);
    const struct qn_arg args[QN_UPDATE_NORMS_ARGS] = {
        QN_BUF(&call->in[0]), QN_BUF(&call->control), QN_LONG(count),
        QN_FLOAT((float)log(attr->beta1)), QN_FLOAT((float)log(attr->beta2))};
    struct qn_walk walk = qn_walk_rows(call, count);
    launch->program = "gradient_norm";
    launch->global[0] = launch->local[0] = walk.group;
    memcpy(launch->args, args, sizeof args);
    qn_walk_options(launch, &walk);
    qn_launch_aligned(launch, call, walk.vector, 0);
    return qn_emit_launch(emit, launch);
}

qn_status qn_update_adam_shape(struct qn_shape_call *call)
{
    return qn_update_shape(call, 2);
}

void qn_update_adam_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_update_cost(call, 15, cost);
}

qn_status qn_update_adam(struct qn_emit *emit, const struct qn_call *call, bool decoupled)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {
        .program = "update",
        .kernel = "adam",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->control), QN_BUF(&call->state[0]), QN_BUF(&call->state[1]),
                 QN_BUF(&call->out[0]), QN_FLOAT((float)attr->beta1), QN_FLOAT((float)attr->beta2),
                 QN_FLOAT((float)(1 - attr->beta1)), QN_FLOAT((float)(1 - attr->beta2)),
                 QN_FLOAT((float)attr->eps), QN_INT(decoupled)}};
    return qn_update_launch(emit, call, &call->in[2], &launch);
}
