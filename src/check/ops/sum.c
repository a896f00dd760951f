/* SPDX-License-Identifier: MIT */
#include "check/row_sum.h"

extern const struct qn_op qn_op_sum;
extern const struct qn_check_op qn_check_sum;

static void reference(const struct qn_reference *r)
{
    qn_check_row_sum(r);
}

const struct qn_check_op qn_check_sum = {.op = &qn_op_sum,
                                         .cases = qn_check_row_sum_cases,
                                         .reference = reference,
                                         .refused = qn_check_row_sum_refused,
                                         .outputs = qn_check_row_sum_outputs};
