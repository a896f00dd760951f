/* SPDX-License-Identifier: MIT
 *
 * Group norm over groups of channels (Wu and He 2018), as PyTorch has it.
 */
#include "base/shape.h"
#include "op/row_norm.h"
#include "ops/common.h"
#include "ops/row_norm.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_group_norm_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x) || x->shape.rank < 2)
        return qn_shape_error(call, "group norm takes (b, c, ...) of a float type");
    const int64_t channels = x->shape.dim[1];
    if (attr->groups < 1 || channels % attr->groups)
        return qn_shape_error(call, "%lld channels cannot be divided into %d groups",
                              (long long)channels, attr->groups);
    if (!(attr->eps > 0))
        return qn_shape_error(call, "eps is %g", (double)attr->eps);
    for (int i = 1; i <= 2; i++)
        if (qn_present(&call->in[i]) && !qn_is_row_of(&call->in[i], channels))
            return qn_shape_error(call, "weight and bias must have %lld elements, one a channel",
                                  (long long)channels);
    qn_row_norm_set(call, 2, (const int64_t[]){x->shape.dim[0], attr->groups});
    qn_row_norm_set_mean(call, 2, (const int64_t[]){x->shape.dim[0], attr->groups});
    return QN_OK;
}

static struct qn_row_norm norm_of(const struct qn_call *call)
{
    const struct qn_group_norm_attr *attr = call->attr;
    const struct qn_shape *x = &call->in[0].shape;
    return (struct qn_row_norm){.samples = x->dim[0],
                                .groups = attr->groups,
                                .channels = x->dim[1] / attr->groups,
                                .inner = qn_shape_span(x, 2, x->rank),
                                .eps = attr->eps};
}

QN_ROW_NORM_VARIANTS

const struct qn_op qn_op_group_norm = {.name = "group_norm",
                                       .attr_size = sizeof(struct qn_group_norm_attr),
                                       .n_in = 3,
                                       .n_required = 1,
                                       .n_out = 1,
                                       .batch = {QN_BATCH_MAY},
                                       .shape = shape,
                                       .groups = QN_ROW_NORM_GROUPS};

qn_tensor qn_group_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                        const qn_group_norm_params *params)
{
    const qn_group_norm_params none = {0};
    params = params ? params : &none;
    const struct qn_group_norm_attr attr = {.groups = params->groups ? params->groups : 1,
                                            .eps = (float)(params->eps != 0 ? params->eps : 1e-5)};
    return qn_op_apply(graph, &qn_op_group_norm, (const qn_tensor[]){x, weight, bias}, &attr);
}
