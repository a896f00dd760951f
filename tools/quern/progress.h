/* SPDX-License-Identifier: MIT
 *
 * What a person sees of a training: on a terminal one line written again and again, as wide as the
 * terminal is at that moment, elsewhere plain lines now and then.
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
    char metric[64];          /* first figure of the newest evaluation; "": there was none */
};

/* The line of a terminal with so many columns, of which it leaves the last one free: what matters
 * less is left out first, and a bar takes what room there is. Gives `text`. */
enum { PROGRESS_LINE_BYTES = 1024 };
const char *progress_line(const struct progress *progress, const qn_metrics *update,
                          int64_t position, int columns, char text[PROGRESS_LINE_BYTES]);

/* Seconds since some fixed moment. */
double clock_now(void);
/* "1m05s", "2h03m"; gives `text`. */
enum { TIME_TEXT_BYTES = 32 };
const char *time_text(double seconds, char text[TIME_TEXT_BYTES]);
/* Of the terminal that standard output is; 80 if it does not say. */
int columns_now(void);

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
