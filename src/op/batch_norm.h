/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator batch_norm.
 */
#ifndef QN_OP_BATCH_NORM_H
#define QN_OP_BATCH_NORM_H

struct qn_batch_norm_attr {
    int group; /* samples normalised together */
    float eps, momentum;
    int relu; /* 1: the result goes through max(0, y) */
};

#endif
