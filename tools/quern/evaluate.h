/* SPDX-License-Identifier: MIT
 *
 * Accuracy and loss on the test split.
 */
#ifndef QUERN_TOOL_EVALUATE_H
#define QUERN_TOOL_EVALUATE_H

#include "session.h"

struct evaluation {
    int64_t samples; /* 0: there was none */
    double accuracy; /* fraction whose largest logit, the first of equal ones, is the label's; with
                        masks of pixels */
    double loss;     /* mean of the same */
};

/* The session has a trainer and a test split. */
int evaluate(struct session *session, struct evaluation *evaluation);

#endif
