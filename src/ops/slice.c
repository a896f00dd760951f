/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "op/part.h"
#include "ops/common.h"
#include "ops/part.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    char text[96];
    const struct qn_slice_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x))
        return qn_shape_error(call, "wants numbers of floating point, not %s",
                              qn_dtype_name(x->dtype));
    if (attr->axis < 1 || attr->axis >= x->shape.rank)
        return qn_shape_error(call, "there is no dimension %lld behind that of the batch",
                              (long long)attr->axis);
    const int64_t size = x->shape.dim[attr->axis];
    if (attr->start < 0 || attr->length < 1 || attr->start > size - attr->length)
        return qn_shape_error(call, "%s has not %lld elements from %lld on in dimension %lld",
                              qn_shape_text(&x->shape, text, sizeof text), (long long)attr->length,
                              (long long)attr->start, (long long)attr->axis);
    call->out[0] = *x;
    call->out[0].shape.dim[attr->axis] = attr->length;
    return QN_OK;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, 1, &call->in[0], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, 1, &call->din[0], cost);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_slice_attr *attr = call->attr;
    const struct qn_part p = {&call->in[0], &call->out[0], (int)attr->axis, attr->start, .beta = 0};
    return qn_part_take(emit, call, &p);
}

/* Where a gradient is added, nothing is around the slice. */
static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_slice_attr *attr = call->attr;
    const float beta = call->beta_in[0];
    const struct qn_part p = {&call->din[0], &call->dout[0], (int)attr->axis, attr->start,
                              .beta = beta};
    return beta == 1 ? qn_part_put(emit, call, &p) : qn_part_spread(emit, call, &p);
}

const struct qn_op qn_op_slice = {
    .name = "slice",
    .attr_size = sizeof(struct qn_slice_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}},
                .write = {{QN_OUT(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, forward_cost, forward)},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_DOUT(0)}},
                .write = {{QN_DIN(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, backward_cost, backward)}}};

qn_tensor qn_slice(qn_graph *graph, qn_tensor x, int axis, int64_t start, int64_t length)
{
    const struct qn_slice_attr attr = {axis, start, length};
    return qn_op_apply(graph, &qn_op_slice, &x, &attr);
}
