/* SPDX-License-Identifier: MIT
 *
 * Packing: offsets for boxes whose lifetimes are known, so that a given height suffices; exact
 * where its search ends in time.
 */
#ifndef QN_PLACEMENT_PACK_H
#define QN_PLACEMENT_PACK_H

#include "base/arena.h"
#include <quern/plan.h>

enum qn_packing {
    QN_PACKED,
    QN_PACK_IMPOSSIBLE, /* proved: no offsets fit */
    QN_PACK_GAVE_UP,    /* the search needs more nodes than `nodes` */
    QN_PACK_NO_MEMORY,
};

/* Finds offsets >= 0 with offset + size <= `height` for every box, where boxes that live together
 * do not overlap, in at most about `nodes` nodes of a depth-first search. Offsets are set only with
 * QN_PACKED. The result depends on the arguments alone. */
enum qn_packing qn_pack(qn_lifetime *boxes, int count, int64_t height, int64_t nodes,
                        struct qn_arena *arena);

/* The largest sum of sizes that live together, a lower bound of every height that suffices; -1: out
 * of memory. */
int64_t qn_pack_bound(const qn_lifetime *boxes, int count, struct qn_arena *arena);

#endif
