/* SPDX-License-Identifier: MIT
 *
 * The time that tuning takes, that of building kernels apart, and whether somebody wants it to end.
 */
#ifndef QN_TUNE_WATCH_H
#define QN_TUNE_WATCH_H

#include <stdbool.h>

struct qn_watch {
    bool (*stop)(void *user); /* true: tuning is to end; NULL: nobody asks for it */
    void *user;
    bool stopped;    /* `stop` said so */
    double compiled; /* seconds of building kernels and of self-tests, most of which is building */
    double timed;    /* seconds of everything else */
};

/* Whether to end; asks between any two builds and any two runs. */
bool qn_watch_stops(struct qn_watch *watch);

#endif
