/* SPDX-License-Identifier: MIT
 *
 * Candidates for one micro-step: what is kept and what is recomputed. The search asks for the
 * candidates of a problem and neither knows nor cares where they come from.
 */
#ifndef QN_SEARCH_SEEDS_H
#define QN_SEARCH_SEEDS_H

#include "plan/program/schedule.h"

enum qn_seed {
    QN_SEED_KEEP_ALL,
    QN_SEED_SEGMENTS,
    QN_SEED_SELECTIVE,
    QN_SEED_CUTS,
    QN_SEED_DYNAMIC,
    QN_SEED_CHOSEN,
    QN_SEED_LISTS,  /* found by local search before: how->lists */
    QN_SEED_PARKED, /* some of the others, with more and more of their values parked */
    QN_SEED_COUNT
};

struct qn_candidate {
    enum qn_seed seed;
    struct qn_steps steps;
    int64_t peak; /* live bytes of this micro-step alone, without what is persistent */
    int number;   /* of equals the first stays, however they are sorted */
};

struct qn_candidates {
    struct qn_candidate *items;
    int count;
    bool kept; /* they are of a kept micro-step, which a plan may do without */
};

/* Everything the mode allows, fastest first; of equally fast ones the smallest first; none that is
 * both slower and larger than another. Allocated from how->arena, without anything else. */
qn_status qn_candidates_make(const struct qn_lowering *how, const struct qn_problem *problem,
                             struct qn_candidates *candidates);

#endif
