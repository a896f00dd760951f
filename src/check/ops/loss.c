/* SPDX-License-Identifier: MIT */
#include "op/loss.h"
#include "check/check.h"

extern const struct qn_op qn_op_loss;
extern const struct qn_check_op qn_check_loss;

static void reference(const struct qn_reference *r)
{
    const struct qn_loss_attr *attr = r->call->attr;
    double sum = (double)r->control->loss[attr->index];
    if (r->eval)
        return;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        sum += r->in[0][i] * (r->in[1] ? r->in[1][i] : 1);
    r->new_control->loss[attr->index] = (float)sum;
}

#define INDEX(n)                                                                                   \
    &(const struct qn_loss_attr)                                                                   \
    {                                                                                              \
        (n)                                                                                        \
    }
#define ROWS(...)                                                                                  \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define WEIGHTS(...)                                                                               \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32,                                                    \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_POSITIVE                                                                   \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }

/* The step of the central differences is long: the loss is linear, and the control block holds it
 * in f32. */
static const struct qn_check_case cases[] = {
    {"rows", {ROWS(7), NONE}, INDEX(0), .small = true, .difference = 1},
    {"weights", {ROWS(5, 9), WEIGHTS(5, 9)}, INDEX(3), .small = true, .difference = 1},
    {"one row", {ROWS(1), NONE}, INDEX(7), .difference = 1},
    {"several vectors", {ROWS(3, 67), WEIGHTS(3, 67)}, INDEX(1), .difference = 1},
    {"several work-groups", {ROWS(1031), NONE}, INDEX(2), .difference = 1},
    {0},
};

static const struct qn_check_case refused[] = {
    {"weights of another shape", {ROWS(7), WEIGHTS(6)}, INDEX(0)},
    {"integers", {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}, NONE}, INDEX(0)},
    {"an index too many", {ROWS(7), NONE}, INDEX(8)},
    {"a negative index", {ROWS(7), NONE}, INDEX(-1)},
    {0},
};

const struct qn_check_op qn_check_loss = {
    .op = &qn_op_loss, .cases = cases, .reference = reference, .refused = refused};
