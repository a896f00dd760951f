/* SPDX-License-Identifier: MIT
 *
 * Figures of the test split: accuracy, loss and what else its data has.
 */
#ifndef QUERN_TOOL_EVALUATE_H
#define QUERN_TOOL_EVALUATE_H

#include "session.h"

/* Of what the data and the model have. Labels that are ignored do not count. */
enum figure {
    FIGURE_ACCURACY,   /* fraction whose largest logit, the first of equal ones, is the label's:
                          of images, pixels or tokens; of models that give logits */
    FIGURE_LOSS,       /* mean of the same */
    FIGURE_OVERLAP,    /* of masks: mean intersection over union of the classes */
    FIGURE_PERPLEXITY, /* of text and tokens */
    FIGURE_BITS,       /* the same, per byte, where it is known how many bytes a token has */
    FIGURES,
};

struct evaluation {
    int64_t samples; /* 0: there was none */
    struct {
        bool there;
        double value;
    } figure[FIGURES];
};

/* "test_accuracy": its name in files of figures. */
const char *evaluation_key(enum figure figure);
/* By which checkpoints are compared, from 0 to 1, the best has the largest: of text and tokens the
 * inverse of perplexity, else accuracy. */
double evaluation_score(const struct evaluation *evaluation);

/* "test accuracy 91.67 %  test loss 0.1790", for people. Gives `text`. */
enum { EVALUATION_TEXT_BYTES = 160 };
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
 * zeroed; NULL: nobody asks. The model gives logits, then. */
int evaluate(struct session *session, struct evaluation *evaluation, struct class_count *counts);

#endif
