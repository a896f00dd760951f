/* SPDX-License-Identifier: MIT */
#include "check/rows.h"

extern const struct qn_op qn_op_cast;
extern const struct qn_check_op qn_check_cast;

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->out[0][i] = r->in[0][i];
}

static const struct qn_check_case cases[] = {
    {"one element", QN_CHECK_ROWS(QN_F32, 1, 1), .small = true},
    {"a tail behind the last vector", QN_CHECK_ROWS(QN_F32, 3, 11), .small = true},
    {"several work-groups", QN_CHECK_ROWS(QN_F32, 37, 131)},
    {"from bf16", QN_CHECK_ROWS(QN_BF16, 5, 67)},
    {0},
};

static const struct qn_check_case refused[] = {{"whole numbers", QN_CHECK_ROWS(QN_I32, 2, 2)}, {0}};

const struct qn_check_op qn_check_cast = {.op = &qn_op_cast,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = refused,
                                          .flops = qn_check_no_flops};
