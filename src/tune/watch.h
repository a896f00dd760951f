/* SPDX-License-Identifier: MIT
 *
 * Seconds spent on tuning, of building kernels and of the rest, and whether the caller ends it.
 */
#ifndef QN_TUNE_WATCH_H
#define QN_TUNE_WATCH_H

#include <stdbool.h>

struct qn_watch {
    bool (*stop)(void *user); /* the caller's: true: tuning is to end; NULL: it never is */
    void *user;
    bool stopped;    /* `stop` has returned true */
    double compiled; /* seconds of building kernels and of self-tests, most of which is building */
    double timed;    /* seconds of everything else */
};

/* Whether tuning is to end: asks watch->stop. Called between any two builds and repetitions. */
bool qn_watch_stops(struct qn_watch *watch);

#endif
