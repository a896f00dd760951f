/* SPDX-License-Identifier: MIT */
#include "check/check.h"

extern const struct qn_op qn_op_global_avg_pool2d;
extern const struct qn_check_op qn_check_global_avg_pool2d;

static void reference(const struct qn_reference *r)
{
    const int64_t *dim = r->call->in[0].shape.dim, n = dim[2] * dim[3];
    for (int64_t row = 0; row < dim[0] * dim[1]; row++) {
        r->out[0][row] = 0;
        for (int64_t i = 0; i < n; i++)
            r->out[0][row] += r->in[0][row * n + i] / (double)n;
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const int64_t *dim = call->in[0].shape.dim;
    out[0].shape = (struct qn_shape){.rank = 2, .dim = {dim[0], dim[1]}};
}

static const struct qn_check_case cases[] = {
    {"small", {{.rank = 4, .dim = {2, 3, 3, 5}}}, .small = true},
    {"seven by seven", {{.rank = 4, .dim = {5, 13, 7, 7}}}},
    {"images of one", {{.rank = 4, .dim = {7, 19, 1, 1}}}},
    {"one element", {{.rank = 4, .dim = {1, 1, 1, 1}}}},
    {"large images", {{.rank = 4, .dim = {1, 3, 61, 67}}}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 3, 5}}}},
    {"integers", {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {1, 1, 4, 4}}}},
    {0},
};

const struct qn_check_op qn_check_global_avg_pool2d = {.op = &qn_op_global_avg_pool2d,
                                                       .cases = cases,
                                                       .reference = reference,
                                                       .refused = refused,
                                                       .outputs = outputs};
