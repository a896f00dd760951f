/* SPDX-License-Identifier: MIT
 *
 * What the norms share: the gradients of weight (in 1) and bias (in 2). No operator.
 */
#ifndef QN_OPS_AFFINE_H
#define QN_OPS_AFFINE_H

#include "op/op.h"

/* f32 sums of dy and of dy * xhat, (parts, channels) each. */
struct qn_affine_sums {
    const struct qn_operand *sum0, *sum1;
    int64_t parts, channels;
};

/* One launch that adds the parts in order and writes those of din 1 and din 2 that are there. */
qn_status qn_affine_gradient(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_affine_sums *sums);

#endif
