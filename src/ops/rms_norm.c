/* SPDX-License-Identifier: MIT
 *
 * RMS norm over the last dimension (Zhang and Sennrich 2019), as PyTorch has it.
 */
#include "base/shape.h"
#include "op/row_norm.h"
#include "ops/common.h"
#include "ops/row_norm.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_rms_norm_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0], *weight = &call->in[1];
    if (!qn_is_float(x) || x->shape.rank < 2)
        return qn_shape_error(call, "RMS norm takes x (b, ..., n) of a float type");
    const int last = x->shape.rank - 1;
    if (!(attr->eps > 0))
        return qn_shape_error(call, "eps is %g", (double)attr->eps);
    if (qn_present(weight) && !qn_is_row_of(weight, x->shape.dim[last]))
        return qn_shape_error(call, "weight must have %lld elements, as the last dimension of x",
                              (long long)x->shape.dim[last]);
    qn_row_norm_set(call, last, x->shape.dim);
    return QN_OK;
}

static struct qn_row_norm norm_of(const struct qn_call *call)
{
    const struct qn_rms_norm_attr *attr = call->attr;
    const struct qn_shape *x = &call->in[0].shape;
    return (struct qn_row_norm){.samples = qn_shape_span(x, 0, x->rank - 1),
                                .groups = 1,
                                .channels = x->dim[x->rank - 1],
                                .inner = 1,
                                .eps = attr->eps,
                                .rms = true};
}

QN_ROW_NORM_VARIANTS

const struct qn_op qn_op_rms_norm = {.name = "rms_norm",
                                     .attr_size = sizeof(struct qn_rms_norm_attr),
                                     .n_in = 2,
                                     .n_required = 1,
                                     .n_out = 1,
                                     .batch = {QN_BATCH_MAY},
                                     .shape = shape,
                                     .groups = QN_ROW_NORM_GROUPS};

qn_tensor qn_rms_norm(qn_graph *graph, qn_tensor x, qn_tensor weight,
                      const qn_rms_norm_params *params)
{
    const double eps = params ? params->eps : 0;
    const struct qn_rms_norm_attr attr = {.eps = (float)(eps != 0 ? eps : 1e-6)};
    return qn_op_apply(graph, &qn_op_rms_norm, (const qn_tensor[]){x, weight}, &attr);
}
