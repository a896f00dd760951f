/* SPDX-License-Identifier: MIT
 *
 * The address of every storage of a program.
 */
#ifndef QN_PLACEMENT_PLACE_H
#define QN_PLACEMENT_PLACE_H

#include "plan/program/program.h"

enum { QN_MAX_POOLS = 254 };

struct qn_placement {
    int64_t pool_bytes[QN_MAX_POOLS];
    int n_pools;
    int64_t total;
};

/* Gives every storage a pool and an offset, so that storages alive together do not overlap; a pool
 * has at most `capacity` bytes. Takes the best of several greedy orders and, if that one leaves
 * gaps, searches for a shorter time in each pool (tighten.h). QN_ERR_BUDGET: more than QN_MAX_POOLS
 * pools would be needed; QN_ERR_MEMORY: out of host memory. */
qn_status qn_place_storages(struct qn_storage *storages, int count, int64_t capacity,
                            struct qn_arena *arena, struct qn_placement *placement);
/* The same for the storages of a program. Phases with the same step list have their values at the
 * same offsets, unless several pools are needed and are smaller otherwise. */
qn_status qn_program_place(struct qn_program *program, int64_t capacity, struct qn_arena *arena,
                           struct qn_placement *placement);

#endif
