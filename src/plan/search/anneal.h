/* SPDX-License-Identifier: MIT
 *
 * Local search on a step list: forward tasks are added, removed and moved.
 */
#ifndef QN_SEARCH_ANNEAL_H
#define QN_SEARCH_ANNEAL_H

#include "plan/program/schedule.h"

struct qn_anneal_params {
    int64_t target; /* live bytes of the micro-step alone that are good enough */
    int64_t moves;
    uint64_t seed;
    bool within; /* a list within the target is left for none above it. Without this the search ends
                    a byte above the target wherever that byte saves much time */
};

/* Improves a step list by simulated annealing: of all lists on the way that need at most the target
 * the fastest, else the one with the least max(target, peak) times seconds. `peak` is that of
 * `steps`. Deterministic. Allocated from `arena`. False when out of memory.
 *
 * The method is FastSA of Imanishi et al. ("A simulated annealing approach to
 * recomputation", NeurIPS 2023): steps lie in slots, most of
 * them empty, so that every move is a change of few lifetimes, and a tree of range sums gives the
 * peak after each. */
bool qn_anneal(const struct qn_problem *problem, const struct qn_steps *from,
               const struct qn_anneal_params *params, struct qn_arena *arena,
               struct qn_steps *steps, int64_t *peak);

#endif
