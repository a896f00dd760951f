/* SPDX-License-Identifier: MIT */
#include "check/pair.h"

extern const struct qn_op qn_op_squared_error;
extern const struct qn_check_op qn_check_squared_error;

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->out[0]); i++)
        r->out[0][i] = (r->in[0][i] - r->in[1][i]) * (r->in[0][i] - r->in[1][i]);
}

#define BOTH(...)                                                                                  \
    {                                                                                              \
        {.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}},        \
        {                                                                                          \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }     \
        }                                                                                          \
    }

static const struct qn_check_case cases[] = {
    {"matrix", BOTH(3, 7), .small = true},
    {"one element", BOTH(1)},
    {"full vectors", BOTH(4, 16)},
    {"rank 4", BOTH(2, 3, 5, 7)},
    {"several work-groups", BOTH(5, 911)},
    {"f32 targets",
     {{.rank = 2, .dim = {5, 7}},
      {.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {5, 7}}},
     .small = true},
    {0},
};

const struct qn_check_op qn_check_squared_error = {.op = &qn_op_squared_error,
                                                   .cases = cases,
                                                   .reference = reference,
                                                   .refused = qn_pair_refused,
                                                   .outputs = qn_pair_outputs};
