/* SPDX-License-Identifier: MIT
 *
 * What a training does about its evaluations: which of them was the best, when the learning rate is
 * made smaller, and when there is nothing more to be gained.
 */
#ifndef QUERN_TOOL_JUDGE_H
#define QUERN_TOOL_JUDGE_H

#include "evaluate.h"
#include "progress.h"

struct judge {
    enum figure figure; /* that is watched */
    qn_improvement improvement;
};

/* Whether the data and the model of the session have what its recipe wants watched. */
int judge_check(const struct session *session);
/* As the recipe and, of a training that goes on, its checkpoint say. */
struct judge judge_open(const struct session *session);
/* Takes an evaluation; true: it is the best one. A rate that becomes smaller is told. */
bool judge_take(struct judge *judge, const struct evaluation *evaluation,
                struct progress *progress);
/* Puts into a recipe what a checkpoint keeps of it. */
int judge_keep(const struct judge *judge, struct recipe *recipe, struct failure *failure);

#endif
