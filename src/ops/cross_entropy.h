/* SPDX-License-Identifier: MIT
 *
 * What the operators share that are cross entropies of the softmax of logits: attributes, labels
 * and class weights, and the launches of cl_kernels/softmax_cross_entropy.cl. No operator.
 */
#ifndef QN_OPS_CROSS_ENTROPY_H
#define QN_OPS_CROSS_ENTROPY_H

#include "op/cross_entropy.h"
#include "op/op.h"

#include <quern/ops.h>

struct qn_cross_entropy_attr qn_cross_entropy_attr_of(const qn_cross_entropy_params *params);
/* The class weights as a constant; none where there are none, or no such number of classes. */
qn_tensor qn_cross_entropy_weights(qn_graph *graph, const qn_cross_entropy_params *params,
                                   int64_t classes);

/* Checks smoothing, labels (of the shape `rows`) and class weights, which are inputs `labels` and
 * `labels` + 1, and sets output 0, the losses. */
qn_status qn_cross_entropy_shape(struct qn_shape_call *call, const struct qn_shape *rows,
                                 int64_t classes, int labels);
/* The sum of the weights of the labels, as qn_op.loss_weight. */
double qn_cross_entropy_weight(const struct qn_call *call, const void *const *host, int64_t classes,
                               int labels);

/* Operations for each logit. */
enum { QN_CROSS_ENTROPY_FORWARD = 12, QN_CROSS_ENTROPY_BACKWARD = 14 };

/* Rows of logits, or of a part of them: `n` of the `classes`, from class `first` on. Labels and
 * class weights as above; losses, their gradients and the statistic are output 0, its gradient and
 * saved 0 of the call. */
struct qn_cross_entropy_rows {
    const struct qn_operand *logits;
    int64_t rows, n, first, classes;
    int labels;
};
qn_status qn_cross_entropy_forward(struct qn_emit *emit, const struct qn_call *call,
                                   const struct qn_cross_entropy_rows *rows);
/* The same for a part, of which the first class is 0 in the first and which are taken in order.
 * `known` holds QN_CROSS_ENTROPY_KNOWN f32 a row. */
enum { QN_CROSS_ENTROPY_KNOWN = 4 };
qn_status qn_cross_entropy_forward_part(struct qn_emit *emit, const struct qn_call *call,
                                        const struct qn_cross_entropy_rows *rows,
                                        const struct qn_operand *known);
/* d = beta * d + the gradient of the logits; d may be the logits. */
qn_status qn_cross_entropy_backward(struct qn_emit *emit, const struct qn_call *call,
                                    const struct qn_cross_entropy_rows *rows,
                                    const struct qn_operand *d, float beta);

#endif
