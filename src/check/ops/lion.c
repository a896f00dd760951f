/* SPDX-License-Identifier: MIT */
#include "check/update.h"

extern const struct qn_op qn_op_lion;
extern const struct qn_check_op qn_check_lion;

static void step(struct qn_check_element *e)
{
    const struct qn_optimizer_attr *attr = e->r->call->attr;
    const double mixed = attr->beta1 * e->state[0] + (1 - attr->beta1) * e->g;
    const double sign = (mixed > 0) - (mixed < 0);
    e->state[0] = attr->beta2 * e->state[0] + (1 - attr->beta2) * e->g;
    e->p -= e->rate * (sign + e->decay * e->p);
}

static void reference(const struct qn_reference *r)
{
    qn_check_update(r, step);
}

static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.99};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.25, .beta2 = 0.5};
/* With beta1 of 0 the step is the gradient's sign. */
static const struct qn_optimizer_attr signs = {.beta1 = 0, .beta2 = 0.5};
static const double zeros[37] = {[1] = 0.5, [2] = -0.5, [9] = 1e-30, [10] = -1e-30, [36] = 2};

static const struct qn_check_case cases[] = {
    {"one chunk", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual, .small = true},
    {"neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual},
    {"other betas", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &unusual},
    {"gradients of 0",
     {QN_CHECK_PARAMETERS(37), QN_CHECK_GIVEN(37, zeros), QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &signs},
    {"first update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update, .small = true},
    {"bf16", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &usual},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &usual, .small = true},
    {"bf16, skipped update", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &usual},
    {0},
};

const struct qn_check_op qn_check_lion = {.op = &qn_op_lion,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = qn_check_update_refused,
                                          .outputs = qn_check_update_outputs,
                                          .word = qn_check_update_word};
