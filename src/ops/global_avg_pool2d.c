/* SPDX-License-Identifier: MIT
 *
 * The mean of each channel: (b, c, h, w) -> (b, c).
 */
#include "ops/row_sum.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    if (call->in[0].shape.rank != 4)
        return qn_shape_error(call, "pooling takes (b, c, h, w)");
    return qn_row_sum_shape(call, 2);
}

const struct qn_op qn_op_global_avg_pool2d = {.name = "global_avg_pool2d",
                                              .n_in = 1,
                                              .n_required = 1,
                                              .n_out = 1,
                                              .batch = {QN_BATCH_MAY},
                                              .shape = shape,
                                              .groups = QN_ROW_SUM_GROUPS(qn_row_mean)};

qn_tensor qn_global_avg_pool2d(qn_graph *graph, qn_tensor x)
{
    return qn_op_apply(graph, &qn_op_global_avg_pool2d, &x, NULL);
}
