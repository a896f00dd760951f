/* SPDX-License-Identifier: MIT
 *
 * Which values to make again so that few bytes are alive at a moment of the backward pass, at the
 * price of few seconds.
 */
#ifndef QN_SEARCH_CUT_H
#define QN_SEARCH_CUT_H

#include "plan/problem.h"

enum { QN_MOST_CUTS = 32, QN_MOST_MOMENTS = 4 };

struct qn_cut {
    bool *drop;     /* by task: a forward task that runs again after the moment */
    int64_t bytes;  /* sum of qn_cut_weight over the values alive at the moment by choice */
    double seconds; /* of the tasks that run again */
};

/* Backward tasks at which bytes are scarce, at most QN_MOST_MOMENTS: those with the most bytes
 * alive if all, or a smaller share, of the values that may be dropped are kept. `arena`: for
 * temporary arrays. False when out of memory. */
bool qn_moments_find(const struct qn_problem *problem, struct qn_arena *arena, int *moments,
                     int *count);

/* Bytes of a value as a cut counts them: bytes * (1 + early * (1 - t / (n_forward + 1))), where t
 * is the task that makes the value. */
int64_t qn_cut_weight(const struct qn_problem *problem, int value, double early);

/* The choice for `moment`, a backward task, with the least seconds + seconds_per_byte * bytes
 * (INFINITY: the fewest bytes). Values read at the moment do not count: they are alive in any case.
 * With `early` > 0, of equal layers the first are made again: their values are read last, when more
 * of the others are dead. Allocated from `arena`. False when out of memory. */
bool qn_cut_find(const struct qn_problem *problem, int moment, double early,
                 double seconds_per_byte, struct qn_arena *arena, struct qn_cut *cut);

/* The cuts of all prices, from keeping everything to keeping the least: the lower convex hull of
 * bytes and seconds. At most `most`, from 2 to QN_MOST_CUTS; the widest gaps are filled first. */
bool qn_cuts_find(const struct qn_problem *problem, int moment, double early, int most,
                  struct qn_arena *arena, struct qn_cut *cuts, int *count);

#endif
