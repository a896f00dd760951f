/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators sum and mean.
 */
#ifndef QN_OP_REDUCE_H
#define QN_OP_REDUCE_H

struct qn_reduce_attr {
    int first; /* the dimensions from this one to the last disappear; at least 1 */
};

#endif
