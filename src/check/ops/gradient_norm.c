/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/optimizer.h"

#include <math.h>

extern const struct qn_op qn_op_gradient_norm;
extern const struct qn_check_op qn_check_gradient_norm;

static void move_scale(struct qn_control *now, bool skip)
{
    if (skip) {
        now->good_updates = 0;
        now->loss_scale = fmaxf(now->loss_scale / 2, 1);
    } else if (++now->good_updates == 2000) {
        now->good_updates = 0;
        now->loss_scale = fminf(now->loss_scale * 2, 16777216);
    }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_optimizer_attr *attr = r->call->attr;
    const double scale = (double)r->control->loss_scale, clip = (double)r->control->clip;
    struct qn_control *now = r->new_control;
    double sum = 0;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        sum += r->in[0][i] * r->in[0][i];
    const double norm = sqrt(sum) / scale;
    now->grad_norm = (float)norm;
    now->skip = !isfinite(now->grad_norm);
    const double factor = clip > 0 ? fmin(1, clip / (norm + 1e-6)) : 1;
    now->grad_scale = now->skip ? 0 : (float)(factor / scale);
    now->applied += !now->skip;
    now->counted = now->applied;
    now->bias1 = (float)(1 - pow(attr->beta1, now->applied));
    now->bias2 = (float)(1 - pow(attr->beta2, now->applied));
    if (attr->dynamic)
        move_scale(now, now->skip);
}

#define NORMS(n, scale)                                                                            \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(n)}, .a = (scale)          \
        }                                                                                          \
    }
#define THESE(list)                                                                                \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1,                                     \
            .dim = {sizeof(list) / sizeof *(list)}, .values = (list)                               \
        }                                                                                          \
    }

static const struct qn_optimizer_attr fixed = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr dynamic = {
    .dynamic = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static const double infinite[] = {1, 2, INFINITY, 3, 0.5};
static const double zeros[] = {0, 0, 0};

/* One element that alone decides by which power of two the others are scaled: the first, in the
 * tail of vectors, of the last work-item. */
static const double first_huge[67] = {1e25, 1, 2}, tail_huge[17] = {1, 2, [16] = 1e25},
                    last_huge[1024] = {1, 2, [1023] = 1e25};

static const struct qn_control first = {.loss_scale = 1};
static const struct qn_control gentle = {.clip = 1000, .loss_scale = 2, .applied = 7};
static const struct qn_control late = {.clip = 0.5f, .loss_scale = 1024, .applied = 99999};
static const struct qn_control growing = {.loss_scale = 4096, .good_updates = 1999, .applied = 1};
static const struct qn_control almost_growing = {
    .loss_scale = 4096, .good_updates = 1998, .applied = 1};
static const struct qn_control largest = {
    .loss_scale = 16777216, .good_updates = 1999, .applied = 1};
static const struct qn_control halving = {
    .clip = 1, .loss_scale = 4096, .good_updates = 77, .applied = 12};
static const struct qn_control smallest = {.loss_scale = 1, .good_updates = 77, .applied = 12};

static const struct qn_check_case cases[] = {
    {"clipped", NORMS(13, 8), &fixed, .small = true},
    {"within the clip", NORMS(13, 8), &fixed, .control = &gentle},
    {"no clipping, first update", NORMS(1, 3), &fixed, .control = &first},
    {"late update", NORMS(1031, 1), &fixed, .control = &late},
    {"squares beyond f32", NORMS(67, 1e25), &fixed},
    {"squares below f32", NORMS(67, 1e-25), &fixed, .control = &first},
    {"the first is huge", THESE(first_huge), &fixed},
    {"one in the tail is huge", THESE(tail_huge), &fixed},
    {"the last is huge", THESE(last_huge), &fixed},
    {"zeros", THESE(zeros), &fixed},
    {"good update", NORMS(5, 1), &dynamic, .small = true},
    {"loss scale doubles", NORMS(5, 1), &dynamic, .control = &growing},
    {"loss scale doubles with the next", NORMS(5, 1), &dynamic, .control = &almost_growing},
    {"loss scale stays at its largest", NORMS(5, 1), &dynamic, .control = &largest},
    {"overflow", THESE(infinite), &dynamic, .control = &halving, .small = true},
    {"overflow at loss scale 1", THESE(infinite), &dynamic, .control = &smallest},
    {"overflow, fixed loss scale", THESE(infinite), &fixed, .control = &halving},
    {0},
};

static const struct qn_check_case refused[] = {
    {"norms of rank 2",
     {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {2, 4}}},
     &fixed},
    {0},
};

const struct qn_check_op qn_check_gradient_norm = {
    .op = &qn_op_gradient_norm, .cases = cases, .reference = reference, .refused = refused};
