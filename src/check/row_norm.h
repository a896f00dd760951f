/* SPDX-License-Identifier: MIT
 *
 * What the checks of layer norm and group norm share.
 */
#ifndef QN_CHECK_ROW_NORM_H
#define QN_CHECK_ROW_NORM_H

#include "check/check.h"

/* One row: n neighbouring elements of x. Element i has element parameter + i / inner of weight and
 * bias. */
struct qn_check_norm_row {
    const struct qn_reference *r;
    int64_t first, n, parameter, inner;
    double eps;
};
void qn_check_norm_row(const struct qn_check_norm_row *row);

#endif
