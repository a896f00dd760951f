/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator upsample2d.
 */
#ifndef QN_OP_UPSAMPLE2D_H
#define QN_OP_UPSAMPLE2D_H

struct qn_upsample2d_attr {
    int factor[2], size[2]; /* height, width; of each pair one is 0 and does not count */
    int mode;               /* enum qn_upsample_mode */
    int align_corners;
};

#endif
