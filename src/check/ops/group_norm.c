/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/row_norm.h"
#include "op/row_norm.h"

extern const struct qn_op qn_op_group_norm;
extern const struct qn_check_op qn_check_group_norm;

static void reference(const struct qn_reference *r)
{
    const struct qn_group_norm_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t inner = qn_shape_span(x, 2, x->rank), channels = x->dim[1] / attr->groups;
    for (int64_t row = 0; row < x->dim[0] * attr->groups; row++)
        qn_check_norm_row(&(struct qn_check_norm_row){r, row * channels * inner, channels * inner,
                                                      row % attr->groups * channels, inner,
                                                      attr->eps});
}

#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define FAR(far, ...)                                                                              \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .b = (far)                                                                                 \
    }
#define P(count)                                                                                   \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(count)}, .fill = QN_FILL_POSITIVE           \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define GROUPS(n)                                                                                  \
    &(const struct qn_group_norm_attr)                                                             \
    {                                                                                              \
        .groups = (n), .eps = 1e-5f                                                                \
    }

static const struct qn_check_case cases[] = {
    {"small", {X(2, 4, 2, 3), P(4), P(4)}, GROUPS(2), .small = true},
    {"one group", {X(3, 5, 3, 7), P(5), P(5)}, GROUPS(1)},
    {"a group a channel", {X(3, 5, 3, 7), P(5), P(5)}, GROUPS(5)},
    {"few features", {X(5, 21), P(21), P(21)}, GROUPS(3), .small = true},
    {"features", {X(37, 21), P(21), P(21)}, GROUPS(3), .small = true, .f32_only = true},
    {"wide features", {X(19, 38), P(38), P(38)}, GROUPS(2)},
    {"rows of one", {X(5, 3), P(3), P(3)}, GROUPS(3)},
    {"no weight, no bias", {X(3, 6, 17), NONE, NONE}, GROUPS(2)},
    {"weight alone", {X(3, 6, 17), P(6), NONE}, GROUPS(3)},
    {"bias alone", {X(3, 6, 17), NONE, P(6)}, GROUPS(2)},
    {"whole vectors", {X(3, 4, 4, 8), P(4), P(4)}, GROUPS(2)},
    {"whole vectors of features", {X(5, 48), P(48), P(48)}, GROUPS(3)},
    {"rank 5", {X(4, 6, 2, 5, 3), P(6), P(6)}, GROUPS(2)},
    {"far from 0", {FAR(1000, 3, 4, 31), P(4), P(4)}, GROUPS(2)},
    {"many samples", {X(83, 4, 5), P(4), P(4)}, GROUPS(2)},
    {"large images", {X(2, 2, 71, 73), P(2), P(2)}, GROUPS(1)},
    {"more channels than a work-group", {X(3, 131, 3), P(131), P(131)}, GROUPS(1)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 1", {X(8), NONE, NONE}, GROUPS(1)},
    {"channels that cannot be divided", {X(4, 6, 5), NONE, NONE}, GROUPS(4)},
    {"no group", {X(4, 3, 5), NONE, NONE}, GROUPS(0)},
    {"negative groups", {X(4, 3, 5), NONE, NONE}, GROUPS(-3)},
    {"weight of another size", {X(4, 3, 5), P(4), P(3)}, GROUPS(1)},
    {"bias of another size", {X(4, 3, 5), P(3), P(2)}, GROUPS(3)},
    {"weight of rank 2", {X(4, 3, 5), X(3, 1), NONE}, GROUPS(1)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}, NONE, NONE},
     GROUPS(1)},
    {"eps of 0", {X(4, 8), NONE, NONE}, &(const struct qn_group_norm_attr){.groups = 1}},
    {0},
};

const struct qn_check_op qn_check_group_norm = {
    .op = &qn_op_group_norm, .cases = cases, .reference = reference, .refused = refused};
