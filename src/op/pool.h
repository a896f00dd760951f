/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators max_pool2d and avg_pool2d.
 */
#ifndef QN_OP_POOL_H
#define QN_OP_POOL_H

struct qn_pool_attr {
    int size[2], stride[2], padding[2]; /* height, width */
    int exclude_padding;                /* average: divide by the elements inside the image */
};

#endif
