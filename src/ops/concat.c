/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "op/part.h"
#include "ops/common.h"
#include "ops/part.h"

#include <quern/ops.h>

static qn_status check_inputs(struct qn_shape_call *call)
{
    const struct qn_concat_attr *attr = call->attr;
    if (attr->count < 2 || attr->count > QN_CONCAT_INPUTS)
        return qn_shape_error(call, "joins 2 to %d tensors, not %d", QN_CONCAT_INPUTS, attr->count);
    for (int i = 0; i < attr->count; i++) {
        if (!qn_present(&call->in[i]))
            return qn_shape_error(call, "tensor %d of %d is not there", i, attr->count);
        if (!qn_is_float(&call->in[i]) || call->in[i].dtype != call->in[0].dtype)
            return qn_shape_error(call, "tensor %d is of %s, where all must be of one float type",
                                  i, qn_dtype_name(call->in[i].dtype));
    }
    return QN_OK;
}

/* The shape of in 0 with the sizes of all along the axis added up. */
static qn_status join(struct qn_shape_call *call, struct qn_shape *joined)
{
    char text[96], first[96];
    const struct qn_concat_attr *attr = call->attr;
    *joined = call->in[0].shape;
    for (int i = 1; i < attr->count; i++) {
        const struct qn_shape *own = &call->in[i].shape;
        struct qn_shape same = *own;
        same.dim[attr->axis] = call->in[0].shape.dim[attr->axis];
        if (!qn_shape_equal(&same, &call->in[0].shape))
            return qn_shape_error(call, "cannot join %s to %s along dimension %d",
                                  qn_shape_text(own, text, sizeof text),
                                  qn_shape_text(&call->in[0].shape, first, sizeof first),
                                  attr->axis);
        joined->dim[attr->axis] = qn_sum_of(joined->dim[attr->axis], own->dim[attr->axis]);
        if (joined->dim[attr->axis] < 0)
            return qn_shape_error(call, "the result is too large to count");
    }
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_concat_attr *attr = call->attr;
    struct qn_shape joined;
    QN_TRY(check_inputs(call));
    if (attr->axis < 1 || attr->axis >= call->in[0].shape.rank)
        return qn_shape_error(call, "there is no dimension %d behind that of the batch",
                              attr->axis);
    QN_TRY(join(call, &joined));
    qn_shape_set(&call->out[0], call->in[0].dtype, joined.rank, joined.dim);
    return QN_OK;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_concat_attr *attr = call->attr;
    cost->flops = (double)qn_operand_count(&call->out[0]);
    cost->bytes = qn_group_bytes(call, 0);
    cost->launches = attr->count;
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost->flops = (double)qn_operand_count(&call->dout[0]);
    cost->bytes = qn_group_bytes(call, 1);
    for (int i = 0; i < QN_CONCAT_INPUTS; i++)
        cost->launches += qn_present(&call->din[i]);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_concat_attr *attr = call->attr;
    struct qn_part p = {.whole = &call->out[0], .axis = attr->axis};
    for (int i = 0; i < attr->count; i++) {
        p.part = &call->in[i];
        QN_TRY(qn_part_put(emit, call, &p));
        p.start += p.part->shape.dim[attr->axis];
    }
    return QN_OK;
}

/* A gradient that nobody wants is not there; its input is, to say how long it is. */
static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_concat_attr *attr = call->attr;
    struct qn_part p = {.whole = &call->dout[0], .axis = attr->axis};
    for (int i = 0; i < attr->count; i++) {
        p.part = &call->din[i];
        p.beta = call->beta_in[i];
        if (qn_present(p.part))
            QN_TRY(qn_part_take(emit, call, &p));
        p.start += call->in[i].shape.dim[attr->axis];
    }
    return QN_OK;
}

const struct qn_op qn_op_concat = {
    .name = "concat",
    .attr_size = sizeof(struct qn_concat_attr),
    .n_in = QN_CONCAT_INPUTS,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY},
    .shape = shape,
    .groups = {
        {.name = "forward",
         .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
         .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_IN(3)}, {QN_IN(4)}, {QN_IN(5)}},
         .write = {{QN_OUT(0)}},
         .variant = QN_BOTH_SHAPES(qn_fits_row_group, forward_cost, forward)},
        {.name = "input gradients",
         .phase = QN_PHASE_BACKWARD,
         .read = {{QN_DOUT(0)}},
         .write = {{QN_DIN(0)}, {QN_DIN(1)}, {QN_DIN(2)}, {QN_DIN(3)}, {QN_DIN(4)}, {QN_DIN(5)}},
         .variant = QN_BOTH_SHAPES(qn_fits_row_group, backward_cost, backward)}}};

qn_tensor qn_concat(qn_graph *graph, int count, const qn_tensor *tensors, int axis)
{
    const struct qn_concat_attr attr = {axis, tensors ? count : 0};
    qn_tensor in[QN_CONCAT_INPUTS] = {{0}};
    for (int i = 0; i < attr.count && i < QN_CONCAT_INPUTS; i++)
        in[i] = tensors[i];
    return qn_op_apply(graph, &qn_op_concat, in, &attr);
}
