/* SPDX-License-Identifier: MIT
 *
 * The points that the search found and that no other beats: with more bytes comes less time.
 */
#ifndef QN_SEARCH_FRONTIER_H
#define QN_SEARCH_FRONTIER_H

#include "plan/search/option.h"

/* A program that the search found, as the choices from which it can be built again. */
struct qn_point {
    int64_t bytes;  /* of all buffers */
    double seconds; /* of one update of every batch size together */
    int64_t micro_batch;
    const struct qn_choices *choices; /* of the micro-batch */
    int choice;                       /* number in choices->list */
    int recomputed;                   /* steps of a micro-step that run again */
    bool early;                       /* parameters are updated as their gradients complete */
    bool park;                        /* its tasks are lowered with stores and fetches */
    int64_t parked;                   /* bytes of host memory */
    const char *largest_step;         /* name of the task that runs at the peak */
};

/* Points in ascending order of bytes; zeroed to begin. */
struct qn_frontier {
    struct qn_point *points;
    int count, room;
    int placed; /* programs placed so far: most of the time of a search goes there */
};

/* Whether a point of the frontier has at most these bytes and at most these seconds. */
bool qn_frontier_beats(const struct qn_frontier *frontier, int64_t bytes, double seconds);

/* Adds a point and removes those that it beats, unless one beats it: of equal points the first
 * stays. Allocated from `arena`. False when out of memory. */
bool qn_frontier_add(struct qn_frontier *frontier, const struct qn_point *point,
                     struct qn_arena *arena);

/* Number of the fastest point within the budget; -1: there is none. */
int qn_frontier_find(const struct qn_frontier *frontier, int64_t budget);

#endif
