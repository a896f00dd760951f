/* SPDX-License-Identifier: MIT
 *
 * What to make again so that a moment of the backward pass has few bytes for few seconds.
 */
#ifndef QN_SEARCH_CUT_H
#define QN_SEARCH_CUT_H

#include "plan/problem.h"

enum { QN_MOST_CUTS = 32, QN_MOST_MOMENTS = 4 };

struct qn_cut {
    bool *drop;     /* by task: forward, and run again after the moment */
    int64_t bytes;  /* alive at the moment, weighted */
    double seconds; /* of the tasks that run again */
};

/* Backward tasks at which bytes are scarce, at most QN_MOST_MOMENTS: where everything that was kept
 * weighs most, and where a smaller share of it does. `arena` is for what is needed meanwhile. False
 * when out of memory. */
bool qn_moments_find(const struct qn_problem *problem, struct qn_arena *arena, int *moments,
                     int *count);

/* Bytes of a value as a cut counts them: bytes * (1 + early * (1 - t / (n_forward + 1))), where t
 * is the task that makes the value. */
int64_t qn_cut_weight(const struct qn_problem *problem, int value, double early);

/* Of all choices for a moment, a backward task, the one for which seconds and bytes at that price
 * (INFINITY: the fewest bytes) are least. What is read at the moment does not count: it is alive in
 * any case. With `early`, of layers that are alike the first are made again, not any: what is made
 * early is read late, when more of the rest has gone. Allocated from `arena`. False when out of
 * memory. */
bool qn_cut_find(const struct qn_problem *problem, int moment, double early,
                 double seconds_per_byte, struct qn_arena *arena, struct qn_cut *cut);

/* Those of all prices, from keeping everything to keeping least: the lower convex hull of bytes and
 * seconds. At most `most`, from 2 to QN_MOST_CUTS, the widest gaps closed first. */
bool qn_cuts_find(const struct qn_problem *problem, int moment, double early, int most,
                  struct qn_arena *arena, struct qn_cut *cuts, int *count);

#endif
