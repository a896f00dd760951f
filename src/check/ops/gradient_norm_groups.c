/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/optimizer.h"

#include <math.h>

extern const struct qn_op qn_op_gradient_norm_groups;
extern const struct qn_check_op qn_check_gradient_norm_groups;

static int64_t groups_of(const struct qn_call *call)
{
    const struct qn_norm_groups_attr *attr = call->attr;
    return attr->groups;
}

static void reference(const struct qn_reference *r)
{
    const int64_t n = qn_operand_count(&r->call->in[0]);
    for (int64_t g = 0; g < groups_of(r->call); g++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += r->in[1][i] == (double)g ? r->in[0][i] * r->in[0][i] : 0;
        r->out[0][g] = (double)((float)sqrt(sum) / r->control->loss_scale);
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = {1, {groups_of(call)}}};
}

/* A comparison, a product and a sum, and a look for the largest, of each chunk in each group. */
static double flops(const struct qn_call *call, const char *group)
{
    (void)group;
    return 4.0 * (double)groups_of(call) * (double)qn_operand_count(&call->in[0]);
}

#define NORMS(n, scale)                                                                            \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(n)}, .a = (scale)              \
    }
#define THESE(list)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {sizeof(list) / sizeof *(list)}, \
        .values = (list)                                                                           \
    }
#define GROUPS(n, numbers)                                                                         \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(n)}, .values = (numbers)       \
    }
/* Drawn: -1, of no group, to 3. */
#define DRAWN(n)                                                                                   \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(n)}, .fill = QN_FILL_INTEGER,  \
        .a = -1, .b = 4                                                                            \
    }

static const struct qn_norm_groups_attr one = {1}, two = {2}, four = {4}, many = {64}, none = {0};

/* Ends of a list of 67 and of 1024; of two groups, one of which is the last chunk alone. */
static const double thirteen[] = {0, 0, 1, 1, 1, -1, -1, 0, 3, 3, 1, 0, 3};
static const double last_alone[1024] = {[1023] = 1}, first_alone[67] = {1};
static const double zeros[1024] = {0};

/* One element that alone decides by which power of two the others of its group are scaled, and not
 * those of another group. */
static const double first_huge[67] = {1e25, 1, 2}, tail_huge[67] = {1, 2, [66] = 1e25},
                    last_huge[1024] = {1, 2, [1023] = 1e25},
                    infinite[67] = {INFINITY, 1, 2, [66] = 3},
                    not_a_number[67] = {1, 2, [66] = NAN}, beyond[3] = {3e38, 3e38, 1};

static const struct qn_control plain = {.loss_scale = 1};
static const struct qn_control scaled = {.loss_scale = 4096, .clip = 0.5f, .skip = 1};

static const struct qn_check_case cases[] = {
    {"a group without chunks, chunks without group",
     {NORMS(13, 8), GROUPS(13, thirteen)},
     &four,
     .control = &plain,
     .small = true},
    {"one chunk", {NORMS(1, 3), GROUPS(1, zeros)}, &one, .control = &plain},
    {"loss scale", {NORMS(1031, 1), DRAWN(1031)}, &four, .control = &scaled},
    {"64 groups", {NORMS(67, 1), DRAWN(67)}, &many, .control = &plain},
    {"squares beyond f32", {NORMS(67, 1e25), DRAWN(67)}, &four, .control = &plain},
    {"squares below f32", {NORMS(67, 1e-25), DRAWN(67)}, &four, .control = &plain},
    {"the first is huge", {THESE(first_huge), GROUPS(67, first_alone)}, &two, .control = &plain},
    {"the first is huge in its group",
     {THESE(first_huge), GROUPS(67, zeros)},
     &one,
     .control = &plain},
    {"the last of 67 is huge", {THESE(tail_huge), GROUPS(67, zeros)}, &one, .control = &plain},
    {"the last is huge", {THESE(last_huge), GROUPS(1024, zeros)}, &one, .control = &plain},
    {"the last alone is huge",
     {THESE(last_huge), GROUPS(1024, last_alone)},
     &two,
     .control = &plain},
    {"zeros", {THESE(zeros), GROUPS(1024, last_alone)}, &two, .control = &plain},
    {"a group is infinite",
     {THESE(infinite), GROUPS(67, first_alone)},
     &two,
     .control = &scaled,
     .small = true},
    {"a group is not a number",
     {THESE(not_a_number), GROUPS(67, first_alone)},
     &two,
     .control = &plain},
    {"the norm beyond f32", {THESE(beyond), GROUPS(3, zeros)}, &one, .control = &plain},
    {0},
};

static const struct qn_check_case refused[] = {
    {"norms of rank 2",
     {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {2, 4}}, GROUPS(8, zeros)},
     &one},
    {"a table of f32", {NORMS(8, 1), NORMS(8, 1)}, &one},
    {"a table of another length", {NORMS(8, 1), GROUPS(7, zeros)}, &one},
    {"no group", {NORMS(8, 1), GROUPS(8, zeros)}, &none},
    {0},
};

const struct qn_check_op qn_check_gradient_norm_groups = {.op = &qn_op_gradient_norm_groups,
                                                          .cases = cases,
                                                          .reference = reference,
                                                          .refused = refused,
                                                          .outputs = outputs,
                                                          .flops = flops};
