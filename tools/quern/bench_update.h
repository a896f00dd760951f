/* SPDX-License-Identifier: MIT
 *
 * The time of whole updates.
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

/* Trains session->plan for a few seconds on the recipe's own data. */
int update_time(struct session *session, struct update_times *times);
/* The same on made-up images or rows of tokens, as session->data.model says. */
int update_time_made_up(struct session *session, struct update_times *times);

#endif
