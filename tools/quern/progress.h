/* SPDX-License-Identifier: MIT
 *
 * What a person sees of a training: on a terminal one line written again and again, elsewhere plain
 * lines now and then.
 */
#ifndef QUERN_TOOL_PROGRESS_H
#define QUERN_TOOL_PROGRESS_H

#include "evaluate.h"

struct progress {
    bool quiet, terminal;
    int64_t total; /* updates */
    int64_t samples_per_epoch;
    int64_t bytes, budget;
    int64_t updates, samples; /* of this run so far */
    double seconds;           /* spent on them */
    double shown;             /* when the line was last written */
    bool open;                /* a line without its end stands on the terminal */
};

/* Seconds since some fixed moment. */
double clock_now(void);

/* After an update that took `seconds`; `position` counts the samples of all of them. */
void progress_update(struct progress *progress, const qn_metrics *update, int64_t position,
                     double seconds);
void progress_evaluation(struct progress *progress, const struct moment *moment,
                         const struct evaluation *evaluation);
/* A line of its own, escaped. */
__attribute__((format(printf, 2, 3))) void progress_say(struct progress *progress,
                                                        const char *format, ...);
/* Ends the line that is under way. */
void progress_end(struct progress *progress);

#endif
