/* SPDX-License-Identifier: MIT */
#include "check/rows.h"

extern const struct qn_op qn_op_zero;
extern const struct qn_check_op qn_check_zero;

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->out[0][i] = 0;
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = call->in[0];
}

#define TYPED(dtype_, n)                                                                           \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = (dtype_), .rank = 1, .dim = {(n) }                     \
        }                                                                                          \
    }
#define ARRAY(n) TYPED(QN_F32, n)

static const struct qn_check_case cases[] = {
    {"one element", ARRAY(1), .small = true},
    {"part of a work-group", ARRAY(37), .small = true},
    {"whole work-groups", ARRAY(4096)},
    {"and some more", ARRAY(4099)},
    {"two bytes an element", TYPED(QN_BF16, 4098), .small = true},
    {"an odd number of them", TYPED(QN_F16, 4099)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"whole numbers", {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}}, {0}};

const struct qn_check_op qn_check_zero = {.op = &qn_op_zero,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = refused,
                                          .flops = qn_check_no_flops,
                                          .outputs = outputs};
