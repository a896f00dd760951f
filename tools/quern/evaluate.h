/* SPDX-License-Identifier: MIT
 *
 * Figures of the test split: accuracy, loss and what else its data has.
 */
#ifndef QUERN_TOOL_EVALUATE_H
#define QUERN_TOOL_EVALUATE_H

#include "mistakes.h"
#include "session.h"

struct evaluation {
    int64_t samples; /* 0: there was none */
    bool validation; /* of a part of the training split, not of the test split */
    struct {
        bool there;
        double value;
    } figure[FIGURES];
};

/* "test_accuracy": its name in files of figures. */
const char *evaluation_key(enum figure figure);
/* Whether the session measures it; and the figure by which checkpoints are compared where none is
 * named: of pairs MRR, of text and tokens perplexity, else accuracy, else the loss. */
bool evaluation_has(const struct session *session, enum figure figure);
enum figure evaluation_default(const struct session *session);
/* A number that is larger the better the figure is: itself, of a loss its negative, of perplexity
 * its inverse. */
double evaluation_score(const struct evaluation *evaluation, enum figure figure);

/* "test accuracy 91.67 %  test loss 0.1790", for people. Gives `text`. */
enum { EVALUATION_TEXT_BYTES = 160 };
const char *evaluation_text(const struct evaluation *evaluation, char text[EVALUATION_TEXT_BYTES]);

/* When a training was evaluated. */
struct moment {
    int64_t update; /* so many were done */
    double epoch;
    double seconds; /* that the evaluation took */
};

/* What else is asked of models that tell classes. A zeroed struct is none. */
struct detail {
    int64_t *confusion; /* (classes, classes): labels of each class by what they were taken for */
    bool wants_mistakes;
    struct mistakes mistakes;
};

/* The session has trainers and a test split, of which each member of all ranks sees its share: all
 * ranks call it, and have the same figures. `detail` NULL: nobody asks; of one device alone. */
int evaluate(struct session *session, struct evaluation *evaluation, struct detail *detail);
void detail_free(struct detail *detail);

#endif
