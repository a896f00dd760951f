/* SPDX-License-Identifier: MIT
 *
 * Layer norm over the last dimensions (Ba, Kiros and Hinton 2016), as PyTorch has it.
 */
#include "base/shape.h"
#include "op/row_norm.h"
#include "ops/common.h"
#include "ops/row_norm.h"

#include <quern/ops.h>

/* The first dimension that is normalised. */
static int first_of(const struct qn_layer_norm_attr *attr, const struct qn_operand *x)
{
    return x->shape.rank - attr->dims;
}

static bool is_parameter_of(const struct qn_operand *operand, const struct qn_operand *x, int dims)
{
    if (!qn_is_float(operand) || operand->shape.rank != dims)
        return false;
    for (int i = 0; i < dims; i++)
        if (operand->shape.dim[i] != x->shape.dim[x->shape.rank - dims + i])
            return false;
    return true;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_layer_norm_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x))
        return qn_shape_error(call, "layer norm takes x of a float type");
    if (attr->dims < 1 || attr->dims >= x->shape.rank)
        return qn_shape_error(call,
                              "%d of %d dimensions cannot be normalised: 1 to all but the "
                              "batch",
                              attr->dims, x->shape.rank);
    if (!(attr->eps > 0))
        return qn_shape_error(call, "eps is %g", (double)attr->eps);
    for (int i = 1; i <= 2; i++)
        if (qn_present(&call->in[i]) && !is_parameter_of(&call->in[i], x, attr->dims))
            return qn_shape_error(call, "weight and bias must have the last %d dimensions of x",
                                  attr->dims);
    qn_row_norm_set(call, first_of(attr, x), x->shape.dim);
    qn_row_norm_set_mean(call, first_of(attr, x), x->shape.dim);
    return QN_OK;
}

static struct qn_row_norm norm_of(const struct qn_call *call)
{
    const struct qn_layer_norm_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    const int first = first_of(attr, x);
    return (struct qn_row_norm){.samples = qn_shape_span(&x->shape, 0, first),
                                .groups = 1,
                                .channels = qn_shape_span(&x->shape, first, x->shape.rank),
                                .inner = 1,
                                .eps = attr->eps};
}

QN_ROW_NORM_VARIANTS

const struct qn_op qn_op_layer_norm = {.name = "layer_norm",
                                       .attr_size = sizeof(struct qn_layer_norm_attr),
                                       .n_in = 3,
                                       .n_required = 1,
                                       .n_out = 1,
                                       .batch = {QN_BATCH_MAY},
                                       .shape = shape,
                                       .groups = QN_ROW_NORM_GROUPS};

qn_tensor qn_layer_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                        const qn_layer_norm_params *params)
{
    const qn_layer_norm_params none = {0};
    params = params ? params : &none;
    const struct qn_layer_norm_attr attr = {.dims = params->dims ? params->dims : 1,
                                            .eps = (float)(params->eps != 0 ? params->eps : 1e-5)};
    return qn_op_apply(graph, &qn_op_layer_norm, (const qn_tensor[]){x, weight, bias}, &attr);
}
