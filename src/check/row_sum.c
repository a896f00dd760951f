/* SPDX-License-Identifier: MIT */
#include "check/row_sum.h"

#include "op/reduce.h"

int64_t qn_check_row_sum(const struct qn_reference *r)
{
    const int64_t rows = qn_operand_count(&r->call->out[0]);
    const int64_t n = qn_operand_count(&r->call->in[0]) / rows;
    for (int64_t row = 0; row < rows; row++) {
        r->out[0][row] = 0;
        for (int64_t i = 0; i < n; i++)
            r->out[0][row] += r->in[0][row * n + i];
    }
    return n;
}

void qn_check_row_sum_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_reduce_attr *attr = call->attr;
    out[0].shape = (struct qn_shape){.rank = attr->first};
    for (int i = 0; i < attr->first; i++)
        out[0].shape.dim[i] = call->in[0].shape.dim[i];
}

#define FIRST(n)                                                                                   \
    &(const struct qn_reduce_attr)                                                                 \
    {                                                                                              \
        (n)                                                                                        \
    }

const struct qn_check_case qn_check_row_sum_cases[] = {
    {"matrix", {{.rank = 2, .dim = {3, 37}}}, FIRST(1), .small = true},
    {"images", {{.rank = 4, .dim = {2, 5, 7, 9}}}, FIRST(2)},
    {"last dimension", {{.rank = 3, .dim = {5, 7, 3}}}, FIRST(2), .small = true},
    {"all but the batch", {{.rank = 4, .dim = {3, 2, 11, 13}}}, FIRST(1)},
    {"rows of one", {{.rank = 2, .dim = {131, 1}}}, FIRST(1)},
    {"one element", {{.rank = 2, .dim = {1, 1}}}, FIRST(1)},
    {"many short rows", {{.rank = 3, .dim = {9, 173, 5}}}, FIRST(2)},
    {"a long row", {{.rank = 2, .dim = {2, 8209}}}, FIRST(1)},
    {0},
};

const struct qn_check_case qn_check_row_sum_refused[] = {
    {"over the batch", {{.rank = 2, .dim = {3, 4}}}, FIRST(0)},
    {"a dimension too many", {{.rank = 2, .dim = {3, 4}}}, FIRST(2)},
    {"a negative dimension", {{.rank = 2, .dim = {3, 4}}}, FIRST(-1)},
    {"integers", {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {3, 4}}}, FIRST(1)},
    {0},
};
