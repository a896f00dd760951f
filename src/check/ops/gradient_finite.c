/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/optimizer.h"

#include <math.h>

extern const struct qn_op qn_op_gradient_finite;
extern const struct qn_check_op qn_check_gradient_finite;

static void reference(const struct qn_reference *r)
{
    const struct qn_optimizer_attr *attr = r->call->attr;
    struct qn_control *now = r->new_control;
    double sum = 0;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        sum += r->in[0][i] * r->in[0][i];
    now->skip = !isfinite((float)sqrt(sum));
    now->grad_scale = now->skip ? 0 : 1 / r->control->loss_scale;
    now->counted = r->control->applied + 1;
    now->bias1 = (float)(1 - pow(attr->beta1, r->control->applied + 1));
    now->bias2 = (float)(1 - pow(attr->beta2, r->control->applied + 1));
}

#define NORMS(n)                                                                                   \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(n) }                       \
        }                                                                                          \
    }
#define THESE(list)                                                                                \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1,                                     \
            .dim = {sizeof(list) / sizeof *(list)}, .values = (list)                               \
        }                                                                                          \
    }

static const struct qn_optimizer_attr attr = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

/* The first, in the tail of vectors, of the last work-item. */
static const double first_infinite[5] = {INFINITY, 1, 2}, tail_nan[17] = {1, 2, [16] = NAN},
                    last_nan[1024] = {1, 2, [1023] = NAN}, beyond[3] = {3e38, 3e38, 1},
                    large[67] = {1e25, 1, 2}, second[2] = {1, 1e25}, zeros[3] = {0};

/* Of an update that was skipped, and good ones. */
static const struct qn_control first = {.loss_scale = 1};
static const struct qn_control skipped = {
    .clip = 0.5f, .loss_scale = 4, .skip = 1, .applied = 7, .good_updates = 3, .grad_norm = 2};
static const struct qn_control late = {.loss_scale = 1, .applied = 99999};

static const struct qn_check_case cases[] = {
    {"first update", NORMS(13), &attr, .control = &first, .small = true},
    {"after one that was skipped", NORMS(1), &attr, .control = &skipped},
    {"late update", NORMS(1031), &attr, .control = &late},
    {"its square is beyond f32", THESE(large), &attr, .control = &first},
    {"the square of the second is", THESE(second), &attr, .control = &first},
    {"the norm beyond f32", THESE(beyond), &attr, .control = &first},
    {"zeros", THESE(zeros), &attr, .control = &first},
    {"the first is infinite", THESE(first_infinite), &attr, .control = &skipped, .small = true},
    {"one in the tail is not a number", THESE(tail_nan), &attr, .control = &first},
    {"the last is not a number", THESE(last_nan), &attr, .control = &late},
    {0},
};

static const struct qn_check_case refused[] = {
    {"norms of rank 2",
     {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {2, 4}}},
     &attr},
    {0},
};

const struct qn_check_op qn_check_gradient_finite = {
    .op = &qn_op_gradient_finite, .cases = cases, .reference = reference, .refused = refused};
