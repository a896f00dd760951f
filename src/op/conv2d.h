/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators conv2d and conv_transpose2d.
 */
#ifndef QN_OP_CONV2D_H
#define QN_OP_CONV2D_H

struct qn_conv2d_attr {
    int stride[2], padding[2], dilation[2]; /* height, width */
    int groups;
};

struct qn_conv_transpose2d_attr {
    struct qn_conv2d_attr conv; /* of the convolution whose image this makes */
    int output_padding[2];      /* elements more of that image, at the end */
};

#endif
