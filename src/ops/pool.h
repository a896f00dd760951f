/* SPDX-License-Identifier: MIT
 *
 * What max and average pooling share: the shape rule and the windows of a launch. No operator.
 */
#ifndef QN_OPS_POOL_H
#define QN_OPS_POOL_H

#include "op/op.h"
#include "op/pool.h"

#include <quern/ops.h>

/* (b, c, h, w) -> out 0 (b, c, oh, ow) in the storage type. */
qn_status qn_pool_shape(struct qn_shape_call *call);

/* Planes h x w and oh x ow, from inputs or gradients, whichever are there. */
struct qn_pool_sizes {
    int64_t planes, h, w, oh, ow;
};
struct qn_pool_sizes qn_pool_sizes(const struct qn_operand *large, const struct qn_operand *small);

/* Appends the options QN_KH .. QN_PW. */
void qn_pool_options(struct qn_launch *launch, const struct qn_pool_attr *attr);

/* Sets global and local size of a kernel that makes planes of `size` elements: a work-item per
 * element (GPU), or per so many planes, which it gives (CPU). */
int64_t qn_pool_range(struct qn_launch *launch, const struct qn_call *call, int64_t planes,
                      int64_t size);

/* Costs of the groups 0 and 1: one launch that looks at every element of every window. */
void qn_pool_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_pool_backward_cost(const struct qn_call *call, struct qn_cost *cost);

/* The attributes with defaults filled in. */
struct qn_pool_attr qn_pool_attr_of(const qn_pool2d_params *params);

#endif
