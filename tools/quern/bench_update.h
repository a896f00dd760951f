/* SPDX-License-Identifier: MIT
 *
 * The time of whole updates, on made-up images or tokens.
 */
#ifndef QUERN_TOOL_BENCH_UPDATE_H
#define QUERN_TOOL_BENCH_UPDATE_H

#include "session.h"

struct update_times {
    double seconds; /* of one update: the median */
    double fastest;
    double host; /* seconds of the calling thread's own processor time in one update */
    int count;   /* updates that were timed */
};

/* Trains session->plan for a few seconds; session->graph must still be there. `text`: samples are
 * rows of tokens. */
int update_time(struct session *session, bool text, struct update_times *times);

#endif
