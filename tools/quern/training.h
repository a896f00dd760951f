/* SPDX-License-Identifier: MIT
 *
 * The loop of `train` and `resume`. What it does at an update depends on the recipe and on the
 * numbers of updates and samples alone, so that a run that was stopped and resumed does the same.
 */
#ifndef QUERN_TOOL_TRAINING_H
#define QUERN_TOOL_TRAINING_H

#include "metrics.h"
#include "progress.h"

struct training {
    struct session *session;
    struct metrics metrics;
    const char *out; /* folder of checkpoints; NULL: none */
    bool quiet;
    int64_t position; /* of the data at the start */
    bool saved;       /* the start is a checkpoint of `out` already */
};

/* From now on SIGINT and SIGTERM end the training after the update under way; a second one ends the
 * program. */
void training_catch_signals(void);
/* A folder that holds a training already is not mixed with another one. NULL: none is named. */
int training_check_out(const char *out, struct failure *failure);
/* Prints the device, the budget and the plan. */
void training_announce(const struct session *session);
/* Trains, evaluates and saves until the recipe's end or a signal; writes the summary. */
int training_run(const struct training *training);

#endif
