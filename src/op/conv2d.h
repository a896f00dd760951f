/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator conv2d.
 */
#ifndef QN_OP_CONV2D_H
#define QN_OP_CONV2D_H

struct qn_conv2d_attr {
    int stride[2], padding[2], dilation[2]; /* height, width */
    int groups;
};

#endif
