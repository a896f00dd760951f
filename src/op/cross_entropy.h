/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators softmax_cross_entropy and linear_cross_entropy, which has no
 * dimension of classes.
 */
#ifndef QN_OP_CROSS_ENTROPY_H
#define QN_OP_CROSS_ENTROPY_H

struct qn_cross_entropy_attr {
    float smoothing; /* in [0, 1) */
    int ignore;      /* rows whose label is ignored_label count nothing */
    int ignored_label;
    int class_dim; /* dimension of the logits that holds the classes; 0: the last */
};

#endif
