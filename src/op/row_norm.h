/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators layer_norm, rms_norm and group_norm.
 */
#ifndef QN_OP_ROW_NORM_H
#define QN_OP_ROW_NORM_H

struct qn_layer_norm_attr {
    int dims; /* the last so many dimensions are normalised together */
    float eps;
};

struct qn_rms_norm_attr {
    float eps;
};

struct qn_group_norm_attr {
    int groups; /* of channels */
    float eps;
};

#endif
