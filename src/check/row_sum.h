/* SPDX-License-Identifier: MIT
 *
 * What the checks of sum and mean share: both reduce the dimensions from `first` to the last.
 */
#ifndef QN_CHECK_ROW_SUM_H
#define QN_CHECK_ROW_SUM_H

#include "check/check.h"

extern const struct qn_check_case qn_check_row_sum_cases[], qn_check_row_sum_refused[];

/* The elements of a row, and into out[0] the sum of each. */
int64_t qn_check_row_sum(const struct qn_reference *r);

void qn_check_row_sum_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);

#endif
