/* SPDX-License-Identifier: MIT
 *
 * Attributes of the elementwise operators, of the view reshape and of transpose.
 */
#ifndef QN_OP_ELEMENTWISE_H
#define QN_OP_ELEMENTWISE_H

#include <quern/tensor.h>
#include <stdbool.h>

struct qn_leaky_relu_attr {
    float slope; /* in (0, 1] */
};

struct qn_gelu_attr {
    int form; /* enum qn_gelu_form */
};

struct qn_gated_attr {
    int form; /* enum qn_gate_form */
};

struct qn_scale_attr {
    float factor;
};

struct qn_dropout_attr {
    float rate; /* in [0, 1) */
};

/* The means and deviations themselves are inputs 1 and 2. */
struct qn_normalize_attr {
    bool usable; /* all means are finite, all deviations above 0 */
};

/* Dimension 0 may be negative, a multiple of the batch; one dimension may be 0: it is worked out.
 */
struct qn_reshape_attr {
    int64_t dim[QN_MAX_DIMS];
    int rank;
    int refused; /* the numbers of elements differ as multiples of the batch */
};

/* Dimension i of the result is dimension axis[i] of the argument. */
struct qn_transpose_attr {
    int axis[QN_MAX_DIMS];
    int rank;
    int moves_batch; /* dimension 0 is a multiple of the batch and would go elsewhere */
};

#endif
