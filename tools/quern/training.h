/* SPDX-License-Identifier: MIT
 *
 * The loop of `train` and `resume`. What it does at an update depends on the recipe and on the
 * numbers of updates and samples alone, so that a run that was stopped and resumed does the same.
 */
#ifndef QUERN_TOOL_TRAINING_H
#define QUERN_TOOL_TRAINING_H

#include "metrics.h"
#include "progress.h"
#include "tensorboard.h"

struct training {
    struct session *session;
    struct metrics metrics;
    struct tensorboard board;
    const char *out;     /* folder of checkpoints; NULL: none */
    const char *profile; /* file of a trace; NULL: none */
    int64_t position;    /* of the data at the start */
    bool saved;          /* the start is a checkpoint of `out` already */
    int lock;            /* descriptor that keeps others out of `out`; -1 */
};

/* A folder that holds a training already is not mixed with another one. NULL: none is named. */
int training_check_out(const char *out, struct failure *failure);
/* Keeps other trainings out of `out`, and leaves it alone if it has become theirs. */
int training_lock(struct training *training, struct failure *failure);
/* Opens the files of figures, those of --metrics, --tensorboard and `out`, for which it takes the
 * lock if that is still to be done, and writes what a run begins with. `resumed`: --metrics names
 * the file of the runs before. `updates`: so many were done in them. */
int training_begin(struct training *training, const struct arguments *arguments, bool resumed,
                   int64_t updates);
/* Closes the metrics and gives up the lock. */
void training_close(struct training *training);
/* Prints the device, the budget and the plan. */
void training_announce(const struct session *session);
/* Trains, evaluates and saves until the recipe's end or until a signal was caught, after which the
 * update under way is finished; writes the summary. */
int training_run(struct training *training);

#endif
