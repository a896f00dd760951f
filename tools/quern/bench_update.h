/* SPDX-License-Identifier: MIT
 *
 * The time of whole updates, on made-up images.
 */
#ifndef QUERN_TOOL_BENCH_UPDATE_H
#define QUERN_TOOL_BENCH_UPDATE_H

#include "session.h"

struct update_times {
    double seconds; /* of one update: the median */
    double host;    /* seconds of the calling thread's own processor time in one update */
    int count;      /* updates that were timed */
};

/* Trains session->plan for a few seconds; session->graph must still be there. */
int update_time(struct session *session, struct update_times *times);

#endif
