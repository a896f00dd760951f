/* SPDX-License-Identifier: MIT
 *
 * The gradient of the bias of a convolution: sums of channels.
 */
#include "ops/conv2d_product.h"

void qn_conv2d_bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, QN_CONV2D_BIAS, 1, &call->dout[0], cost);
}

qn_status qn_conv2d_bias(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t *dim = call->dout[0].shape.dim, positions = dim[2] * dim[3];
    const struct qn_walk walk = qn_walk_rows(call, positions);
    struct qn_launch launch = {.program = "conv2d",
                               .kernel = "conv2d_bias",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->din[2]),
                                        QN_FLOAT(call->beta_in[2]), QN_INT(dim[0]), QN_INT(dim[1]),
                                        QN_LONG(positions), QN_INT(walk.lanes)},
                               .global = {dim[1] * walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_type(&launch, "D", &call->dout[0]);
    qn_launch_type(&launch, "G", &call->din[2]);
    return qn_emit_launch(emit, &launch);
}
