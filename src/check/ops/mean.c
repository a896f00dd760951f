/* SPDX-License-Identifier: MIT */
#include "check/row_sum.h"

extern const struct qn_op qn_op_mean;
extern const struct qn_check_op qn_check_mean;

static void reference(const struct qn_reference *r)
{
    const int64_t n = qn_check_row_sum(r);
    for (int64_t row = 0; row < qn_operand_count(&r->call->out[0]); row++)
        r->out[0][row] /= (double)n;
}

const struct qn_check_op qn_check_mean = {.op = &qn_op_mean,
                                          .cases = qn_check_row_sum_cases,
                                          .reference = reference,
                                          .refused = qn_check_row_sum_refused,
                                          .outputs = qn_check_row_sum_outputs};
