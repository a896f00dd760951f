/* SPDX-License-Identifier: MIT */
#include "check/update.h"

extern const struct qn_op qn_op_adam;
extern const struct qn_check_op qn_check_adam;

static void step(struct qn_check_element *e)
{
    e->g += e->decay * e->p;
    qn_check_adam_step(e);
}

static void reference(const struct qn_reference *r)
{
    qn_check_update(r, step);
}

const struct qn_check_op qn_check_adam = {.op = &qn_op_adam,
                                          .cases = qn_check_adam_cases,
                                          .reference = reference,
                                          .refused = qn_check_update_refused,
                                          .outputs = qn_check_update_outputs,
                                          .word = qn_check_update_word};
