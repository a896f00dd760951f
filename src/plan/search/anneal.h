/* SPDX-License-Identifier: MIT
 *
 * Local search on a step list: adds, removes and moves repeated forward tasks, stores and fetches.
 */
#ifndef QN_SEARCH_ANNEAL_H
#define QN_SEARCH_ANNEAL_H

#include "plan/program/schedule.h"

struct qn_anneal_params {
    int64_t target; /* wanted peak: live bytes of the micro-step, persistent values aside */
    int64_t moves;
    uint64_t seed; /* a random seed */
    bool within;   /* from a list within the target no move leads above it. Otherwise the search
                      ends just above the target wherever a few bytes save much time */
};

/* Improves a step list by simulated annealing of max(target, peak) * seconds. Gives the fastest of
 * the lists visited with peak <= target, else the one with the least objective. `peak` is that of
 * `steps`. Deterministic. Allocated from `arena`. False when out of memory.
 *
 * The method is FastSA of Imanishi et al. ("A simulated annealing approach to recomputation",
 * NeurIPS 2023): steps lie in places, most of them empty, so that a move changes few lifetimes, and
 * a tree of range sums gives the peak after each move. */
bool qn_anneal(const struct qn_problem *problem, const struct qn_steps *from,
               const struct qn_anneal_params *params, struct qn_arena *arena,
               struct qn_steps *steps, int64_t *peak);

#endif
