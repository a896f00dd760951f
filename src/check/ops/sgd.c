/* SPDX-License-Identifier: MIT */
#include "check/update.h"

extern const struct qn_op qn_op_sgd;
extern const struct qn_check_op qn_check_sgd;

static void step(struct qn_check_element *e)
{
    const struct qn_optimizer_attr *attr = e->r->call->attr;
    double move = e->g + e->decay * e->p;
    e->state[0] = attr->momentum * e->state[0] + move;
    if (attr->momentum != 0)
        move = attr->nesterov ? move + attr->momentum * e->state[0] : e->state[0];
    e->p -= e->rate * move;
}

static void reference(const struct qn_reference *r)
{
    qn_check_update(r, step);
}

static const struct qn_optimizer_attr plain = {.momentum = 0};
static const struct qn_optimizer_attr momentum = {.momentum = 0.9};
static const struct qn_optimizer_attr nesterov = {.nesterov = 1, .momentum = 0.9};

static const struct qn_check_case cases[] = {
    {"plain", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &plain, .small = true},
    {"plain, neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &plain},
    {"momentum", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &momentum, .small = true},
    {"momentum, neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &momentum},
    {"Nesterov", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &nesterov},
    {"Nesterov, neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &nesterov},
    {"bf16", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &momentum},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &momentum, .small = true},
    {"bf16, skipped update", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &momentum,
     .control = &qn_check_skipped_update},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &momentum},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &momentum,
     .control = &qn_check_skipped_update, .small = true},
    {"skipped update without state", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &plain,
     .control = &qn_check_skipped_update},
    {0},
};

const struct qn_check_op qn_check_sgd = {.op = &qn_op_sgd,
                                         .cases = cases,
                                         .reference = reference,
                                         .refused = qn_check_update_refused,
                                         .outputs = qn_check_update_outputs,
                                         .word = qn_check_update_word};
