/* SPDX-License-Identifier: MIT
 *
 * What optimizers share that see a parameter as a whole: adafactor and apollo. No operator.
 *
 * A parameter of two or more dimensions is a matrix: a row is dimension 0, in weights that of what
 * they give, and all others are its columns. So a convolution is the matrix that it multiplies
 * patches by, where PyTorch's Adafactor sees a matrix of the last two dimensions in each plane of
 * the first ones; of two dimensions both are the same.
 */
#ifndef QN_OPS_WHOLE_H
#define QN_OPS_WHOLE_H

#include "ops/strip.h"

struct qn_matrix {
    int64_t rows, n;
};
struct qn_matrix qn_matrix_of(const struct qn_operand *parameter);

/* Launches a team for each row of the matrix: sets the arguments rows, n, lanes and span, from
 * number `arg` on. */
qn_status qn_whole_rows(struct qn_emit *emit, const struct qn_call *call,
                        const struct qn_matrix *matrix, struct qn_launch *launch, int arg);
/* Launches a single work-group. */
qn_status qn_whole_group(struct qn_emit *emit, const struct qn_call *call,
                         struct qn_launch *launch);

/* How columns are walked: in at most QN_WHOLE_BLOCKS row blocks, so that the partial sums of all
 * take little memory. */
enum { QN_WHOLE_BLOCKS = 128 };
struct qn_strip qn_whole_strip(const struct qn_matrix *matrix);

/* Takes the next `count` floats of scratch, of which *taken are taken. */
struct qn_operand qn_whole_scratch(const struct qn_call *call, int64_t *taken, int64_t count);

#endif
