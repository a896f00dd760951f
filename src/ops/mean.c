/* SPDX-License-Identifier: MIT
 *
 * The mean over the dimensions from `first` to the last.
 */
#include "op/reduce.h"
#include "ops/row_sum.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    return qn_row_sum_shape(call, ((const struct qn_reduce_attr *)call->attr)->first);
}

const struct qn_op qn_op_mean = {.name = "mean",
                                 .attr_size = sizeof(struct qn_reduce_attr),
                                 .n_in = 1,
                                 .n_required = 1,
                                 .n_out = 1,
                                 .batch = {QN_BATCH_MAY},
                                 .shape = shape,
                                 .groups = QN_ROW_SUM_GROUPS(qn_row_mean)};

qn_tensor qn_mean(qn_graph *graph, qn_tensor x, int first)
{
    const struct qn_reduce_attr attr = {first};
    return qn_op_apply(graph, &qn_op_mean, &x, &attr);
}
