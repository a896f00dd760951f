/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/row_norm.h"
#include "op/row_norm.h"

extern const struct qn_op qn_op_layer_norm;
extern const struct qn_check_op qn_check_layer_norm;

static void reference(const struct qn_reference *r)
{
    const struct qn_layer_norm_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t n = qn_shape_span(x, x->rank - attr->dims, x->rank);
    for (int64_t first = 0; first < qn_shape_count(x); first += n)
        qn_check_norm_row(&(struct qn_check_norm_row){r, first, n, 0, 1, attr->eps});
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
#define VALUES(values_, ...)                                                                       \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .values = (values_)                                                                        \
    }
#define P(...)                                                                                     \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),     \
        .dim = {__VA_ARGS__}, .fill = QN_FILL_POSITIVE                                             \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define DIMS(n)                                                                                    \
    &(const struct qn_layer_norm_attr)                                                             \
    {                                                                                              \
        .dims = (n), .eps = 1e-5f                                                                  \
    }

/* The first block of a row is all that differs, then all that does not. */
static const double late[2 * 4099] = {[4096] = 3, [4098] = -5, [8000] = 1, [8197] = 2};
static const double early[2 * 4099] = {[0] = 3, [100] = -5, [4099] = 1, [8194] = -2};

static const struct qn_check_case cases[] = {
    {"small", {X(3, 7), P(7), P(7)}, DIMS(1), .small = true},
    {"a vector and one", {X(5, 2, 17), P(17), P(17)}, DIMS(1)},
    {"one under a vector", {X(7, 31), P(31), P(31)}, DIMS(1)},
    {"rows of one", {X(5, 1), P(1), P(1)}, DIMS(1), .small = true},
    {"whole vectors", {X(5, 48), P(48), P(48)}, DIMS(1)},
    {"one row", {X(1, 131), P(131), P(131)}, DIMS(1)},
    {"two dimensions", {X(5, 3, 13), P(3, 13), P(3, 13)}, DIMS(2)},
    {"three dimensions", {X(4, 2, 3, 5), P(2, 3, 5), P(2, 3, 5)}, DIMS(3), .small = true},
    {"no weight, no bias", {X(6, 37), NONE, NONE}, DIMS(1), .small = true},
    {"weight alone", {X(6, 37), P(37), NONE}, DIMS(1)},
    {"bias alone", {X(6, 37), NONE, P(37)}, DIMS(1)},
    {"far from 0", {FAR(1000, 7, 37), P(37), P(37)}, DIMS(1)},
    {"far from 0, long", {FAR(-300, 2, 4099), P(4099), P(4099)}, DIMS(1)},
    {"many short rows", {X(541, 3), P(3), P(3)}, DIMS(1)},
    {"many rows of whole vectors", {X(1061, 8), P(8), P(8)}, DIMS(1)},
    {"parts and a short one", {X(307, 19), P(19), P(19)}, DIMS(1)},
    {"a block and a few", {X(2, 4099), P(4099), P(4099)}, DIMS(1)},
    {"late", {VALUES(late, 2, 4099), P(4099), P(4099)}, DIMS(1)},
    {"early", {VALUES(early, 2, 4099), P(4099), P(4099)}, DIMS(1)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"over the batch", {X(8), NONE, NONE}, DIMS(1)},
    {"all dimensions", {X(4, 8), NONE, NONE}, DIMS(2)},
    {"no dimension", {X(4, 8), NONE, NONE}, DIMS(0)},
    {"weight of another size", {X(4, 8), P(7), NONE}, DIMS(1)},
    {"bias of another size", {X(4, 8), NONE, P(9)}, DIMS(1)},
    {"weight of another rank", {X(4, 3, 8), P(24), NONE}, DIMS(2)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}, NONE, NONE},
     DIMS(1)},
    {"eps of 0", {X(4, 8), NONE, NONE}, &(const struct qn_layer_norm_attr){.dims = 1}},
    {0},
};

const struct qn_check_op qn_check_layer_norm = {
    .op = &qn_op_layer_norm, .cases = cases, .reference = reference, .refused = refused};
