/* SPDX-License-Identifier: MIT
 *
 * Walking (rows, n) in strips, and sums along columns: what bias and chain share, the launches of
 * cl_kernels/column_sum.cl. No operator.
 */
#ifndef QN_OPS_STRIP_H
#define QN_OPS_STRIP_H

#include "op/op.h"

/* As cl_kernels/lib/strip.clh walks them: a work-item takes blocks of `block` rows, on CPUs `wide`
 * vectors of each. */
struct qn_strip {
    int64_t rows, n, block, wide;
};

/* Work-items of a row block that have columns: numbers 0 to this in dimension 0. */
int64_t qn_strip_items(const struct qn_call *call, const struct qn_strip *strip);
/* Sets range, work-group and the options that go with them. */
void qn_strip_range(struct qn_launch *launch, const struct qn_call *call,
                    const struct qn_strip *strip);

/* What is summed: rows of a block, and vectors, of which memory likes many and the cache keeps so
 * many sums. */
enum { QN_SUM_BLOCK = 16, QN_SUM_WIDE = 256 };
/* Blocks of rows, each summed by itself. */
int64_t qn_strip_blocks(int64_t rows);

/* part = the sums of x (rows, n) over each block; part holds blocks * n f32. */
qn_status qn_strip_sum_blocks(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_operand *x, const struct qn_operand *part);
/* y = beta * y + the sums of part over the blocks. */
qn_status qn_strip_sum(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_operand *part, const struct qn_operand *y, float beta);

#endif
