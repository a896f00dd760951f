/* SPDX-License-Identifier: MIT */
#include "check/update.h"

#include <math.h>

extern const struct qn_op qn_op_adam;
extern const struct qn_check_op qn_check_adam;

static void step(struct qn_check_element *e)
{
    const struct qn_optimizer_attr *attr = e->r->call->attr;
    const struct qn_control *control = e->r->control;
    e->g += e->decay * e->p;
    e->state[0] = attr->beta1 * e->state[0] + (1 - attr->beta1) * e->g;
    e->state[1] = attr->beta2 * e->state[1] + (1 - attr->beta2) * e->g * e->g;
    const double root = sqrt(e->state[1]) / sqrt((double)control->bias2) + attr->eps;
    e->p -= (double)control->lr / (double)control->bias1 * e->state[0] / root;
}

static void reference(const struct qn_reference *r)
{
    qn_check_update(r, step);
}

static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};

static const struct qn_check_case cases[] = {
    {"one chunk", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual, .small = true},
    {"neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual},
    {"other betas", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &unusual},
    {"first update", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &usual},
    {0},
};

static const struct qn_check_case refused[] = {
    {"gradients of another size",
     {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(9), QN_CHECK_TABLE(1, qn_check_one_element)},
     &usual},
    {"no table", {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(4)}, &usual},
    {0},
};

const struct qn_check_op qn_check_adam = {.op = &qn_op_adam,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = refused,
                                          .outputs = qn_check_update_outputs};
