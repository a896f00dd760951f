/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators that are matrix products.
 */
#ifndef QN_OP_MATMUL_H
#define QN_OP_MATMUL_H

#include <stdint.h>

struct qn_linear_activation_attr {
    int32_t activation; /* qn_activation */
    float slope;        /* of leaky ReLU, in (0, 1] */
};

struct qn_batch_matmul_attr {
    int32_t transpose_a, transpose_b; /* 0 or 1 */
};

#endif
