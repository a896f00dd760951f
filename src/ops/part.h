/* SPDX-License-Identifier: MIT
 *
 * What concat and slice share: launches of cl_kernels/blocks.cl, which move a part of a tensor
 * along one dimension. No operator.
 */
#ifndef QN_OPS_PART_H
#define QN_OPS_PART_H

#include "op/op.h"

/* `part` is what `whole` has at start, start + 1, .. of dimension `axis`, as often as its own
 * dimension says. */
struct qn_part {
    const struct qn_operand *whole, *part;
    int axis;
    int64_t start;
    float beta;
};

/* part = beta * part + those of whole. */
qn_status qn_part_take(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p);
/* Those of whole = beta * those + part. What lies around them stays as it is. */
qn_status qn_part_put(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p);
/* The same, where what lies around them becomes beta times what it is. */
qn_status qn_part_spread(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p);

#endif
