/* SPDX-License-Identifier: MIT */
#include "check/pair.h"

#include <math.h>

extern const struct qn_op qn_op_absolute_error;
extern const struct qn_check_op qn_check_absolute_error;

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->out[0]); i++)
        r->out[0][i] = fabs(r->in[0][i] - r->in[1][i]);
}

/* Where the two differ by at least 0.03, for the central differences; at kinks, where the two are
 * equal, these give 0 as the operator does. */
#define APART(...)                                                                                 \
    {                                                                                              \
        {.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                               \
         .dim = {__VA_ARGS__},                                                                     \
         .fill = QN_FILL_KINKLESS},                                                                \
        {                                                                                          \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},      \
            .fill = QN_FILL_UNIFORM, .a = -0.02, .b = 0.02                                         \
        }                                                                                          \
    }

static const double a[21] = {1, 0, -2, 3, 4, 5, 0, 0, -1, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, -6, 3};
static const double b[21] = {1, 0, -2, 1, 1, 9, 4, 0, -3, 8, 9, 6, 5, 7, 3, 2, 1, 0, 1, -6, 8};

static const struct qn_check_case cases[] = {
    {"matrix", APART(3, 7), .small = true},
    {"one element", APART(1)},
    {"full vectors", APART(4, 16)},
    {"rank 4", APART(2, 3, 5, 7)},
    {"several work-groups", APART(5, 911)},
    {"equal ones",
     {{.rank = 1, .dim = {21}, .values = a}, {.rank = 1, .dim = {21}, .values = b}},
     .small = true},
    {"f32 targets",
     {{.rank = 2, .dim = {5, 7}, .fill = QN_FILL_UNIFORM, .a = 2, .b = 4},
      {.role = QN_ROLE_FIXED,
       .dtype = QN_F32,
       .rank = 2,
       .dim = {5, 7},
       .fill = QN_FILL_UNIFORM,
       .a = -1,
       .b = 1}},
     .small = true},
    {0},
};

const struct qn_check_op qn_check_absolute_error = {.op = &qn_op_absolute_error,
                                                    .cases = cases,
                                                    .reference = reference,
                                                    .refused = qn_pair_refused,
                                                    .outputs = qn_pair_outputs};
