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
    bool masks;
    double overlap; /* with masks: mean intersection over union of the classes */
};

/* "test accuracy 91.67 %  test loss 0.1790", for people. Gives `text`. */
enum { EVALUATION_TEXT_BYTES = 96 };
const char *evaluation_text(const struct evaluation *evaluation, char text[EVALUATION_TEXT_BYTES]);

/* When a training was evaluated. */
struct moment {
    int64_t update; /* so many were done */
    double epoch;
    double seconds; /* that the evaluation took */
};

/* Of one class: labels of it in the test split, and those among them that were recognised. */
struct class_count {
    int64_t labels, correct;
};

/* The session has a trainer and a test split. `counts` has an entry for each class of the model,
 * zeroed; NULL: nobody asks. */
int evaluate(struct session *session, struct evaluation *evaluation, struct class_count *counts);

#endif
