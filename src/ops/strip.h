/* SPDX-License-Identifier: MIT
 *
 * Walking (rows, n) in strips, and sums along columns: what bias and chain share, the launches of
 * cl_kernels/column_sum.cl. No operator.
 */
#ifndef QN_OPS_STRIP_H
#define QN_OPS_STRIP_H

#include "op/op.h"

/* As cl_kernels/lib/strip.clh walks them: on CPUs a work-item takes `wide` vectors of a row. */
struct qn_strip {
    int64_t rows, n, wide;
    bool cpu;
};

/* Sets range, work-group and the options that go with them. */
void qn_strip_range(struct qn_launch *launch, const struct qn_facts *facts,
                    const struct qn_strip *strip);
/* Blocks of rows, each summed by itself. */
int64_t qn_strip_blocks(int64_t rows);

/* Vectors of a strip that is summed: memory likes long rows, the cache keeps the sums. */
enum { QN_STRIP_SUMS = 256 };

/* part = the sums of x (rows, n) over each block; part holds blocks * n f32. */
qn_status qn_strip_sum_blocks(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_operand *x, const struct qn_operand *part, bool cpu);
/* y = beta * y + the sums of part over the blocks. */
qn_status qn_strip_sum(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_operand *part, const struct qn_operand *y, float beta,
                       bool cpu);

#endif
