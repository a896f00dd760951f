/* SPDX-License-Identifier: MIT */
#include "check/update.h"

extern const struct qn_op qn_op_adamw;
extern const struct qn_check_op qn_check_adamw;

static void step(struct qn_check_element *e)
{
    e->p *= 1 - e->rate * e->decay;
    qn_check_adam_step(e);
}

static void reference(const struct qn_reference *r)
{
    qn_check_update(r, step);
}

const struct qn_check_op qn_check_adamw = {.op = &qn_op_adamw,
                                           .cases = qn_check_adam_cases,
                                           .reference = reference,
                                           .refused = qn_check_update_refused,
                                           .outputs = qn_check_update_outputs,
                                           .word = qn_check_update_word};
