/* SPDX-License-Identifier: MIT */
#include "check/binary.h"

extern const struct qn_op qn_op_multiply;
extern const struct qn_check_op qn_check_multiply;

static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = r->in[0][i] * r->in[1][i];
}

const struct qn_check_op qn_check_multiply = {.op = &qn_op_multiply,
                                              .cases = qn_check_binary_cases,
                                              .reference = reference,
                                              .refused = qn_check_binary_refused};
