/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators concat and slice.
 */
#ifndef QN_OP_PART_H
#define QN_OP_PART_H

#include <stdint.h>

struct qn_concat_attr {
    int axis, count; /* the first so many inputs must be there */
};

struct qn_slice_attr {
    int64_t axis, start, length;
};

#endif
