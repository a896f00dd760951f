/* SPDX-License-Identifier: MIT
 *
 * What the norms share: the gradients of weight (in 1) and bias (in 2), by cl_kernels/affine.cl. No
 * operator.
 */
#ifndef QN_OPS_AFFINE_H
#define QN_OPS_AFFINE_H

#include "op/op.h"

/* x (in 0) seen as (samples, groups, channels, inner); a weight and a bias belong to each (group,
 * channel). The sums over each part of the samples are (parts, parameters) in f32. */
struct qn_affine {
    int64_t samples, groups, channels, inner;
    int64_t each; /* samples of a part; the last one may be short */
    bool by_part; /* saved 0 and 1 are a mean and 1 / deviation for each (part, parameter); else two
                     floats of a mean and 1 / deviation for each (sample, group) */
    bool relu; /* dout 0 is that of a ReLU behind the norm; only by_part, and then weight and bias
                  are read */
    bool rms;  /* the norm takes off no mean and has no bias: saved 0 is not there */
    struct qn_operand dy_sum, dy_xhat_sum; /* one that is not there is not made */
    float beta_dy, beta_dy_xhat; /* where there is one part, and the sums are the gradients: how
                                    much of what was there stays; else 0 */
};

int64_t qn_affine_parts(const struct qn_affine *affine);

/* Whether work-items take vectors of neighbouring parameters (GPU); else teams take one each, whose
 * members do not read side by side. */
bool qn_affine_in_columns(const struct qn_call *call, int64_t channels, int64_t inner);

/* One launch that makes the sums, from dout 0. */
qn_status qn_affine_sums(struct qn_emit *emit, const struct qn_call *call,
                         const struct qn_affine *affine);
/* One that adds them up in order and writes those of din 1 and din 2 that are there. */
qn_status qn_affine_gradient(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_affine *affine);

/* Work-items that share the rows of a channel where there are no planes (GPU). */
enum { QN_SAMPLE_LANES = 8 };
/* A launch in which a work-item takes neighbouring channels of some rows (CPU): how many. `rows`
 * counts the sets of rows. */
int64_t qn_channel_tile(const struct qn_facts *facts, int64_t channels, int64_t inner,
                        int64_t rows);

#endif
