/* SPDX-License-Identifier: MIT */
#include "check/update.h"

extern const struct qn_op qn_op_weight_average;
extern const struct qn_check_op qn_check_weight_average;

static double parameter(const struct qn_reference *r, int64_t i)
{
    return r->in[2] ? qn_check_corrected(r->in[0][i], (int)r->in[2][i]) : r->in[0][i];
}

static void reference(const struct qn_reference *r)
{
    const struct qn_average_attr *attr = r->call->attr;
    const double decay = r->control->skip ? 1 : attr->decay;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->out[0][i] = decay * r->in[1][i] + (1 - decay) * parameter(r, i);
}

static const struct qn_average_attr usual = {0.75}, slow = {0.999};

#define BLOCK(type, n)                                                                             \
    {                                                                                              \
        QN_CHECK_STORED(type, n), QN_CHECK_PARAMETERS(n),                                          \
        {                                                                                          \
            .rank = -1                                                                             \
        }                                                                                          \
    }
#define CODES(n)                                                                                   \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 1, .dim = {(n)}, .fill = QN_FILL_INTEGER,   \
        .a = 1, .b = 256                                                                           \
    }

static const struct qn_check_case cases[] = {
    {"one element", BLOCK(QN_F32, 1), &usual},
    {"a tail behind the last vector", BLOCK(QN_F32, 37), &usual, .small = true},
    {"several work-groups", BLOCK(QN_F32, 4437), &usual},
    {"slow", BLOCK(QN_F32, 67), &slow},
    {"of a skipped update", BLOCK(QN_F32, 37), &usual, .control = &qn_check_skipped_update,
     .small = true},
    {"bf16", BLOCK(QN_BF16, 1031), &usual, .small = true},
    {"f16", BLOCK(QN_F16, 1031), &usual},
    {"corrected",
     {QN_CHECK_STORED(QN_BF16, 1031), QN_CHECK_PARAMETERS(1031), CODES(1031)},
     &usual,
     .small = true},
    {0},
};

static const struct qn_check_case refused[] = {
    {"an average of another size",
     {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(9), {.rank = -1}},
     &usual},
    {"an average in 16 bits",
     {QN_CHECK_PARAMETERS(8), QN_CHECK_STORED(QN_BF16, 8), {.rank = -1}},
     &usual},
    {"corrections of f32", {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(8), CODES(8)}, &usual},
    {"corrections of another size",
     {QN_CHECK_STORED(QN_BF16, 8), QN_CHECK_PARAMETERS(8), CODES(9)},
     &usual},
    {0},
};

const struct qn_check_op qn_check_weight_average = {
    .op = &qn_op_weight_average, .cases = cases, .reference = reference, .refused = refused};
