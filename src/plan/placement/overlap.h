/* SPDX-License-Identifier: MIT
 *
 * Which boxes live together, and in which sections of time.
 */
#ifndef QN_PLACEMENT_OVERLAP_H
#define QN_PLACEMENT_OVERLAP_H

#include "base/arena.h"
#include <quern/plan.h>

/* A section is a part of the time in which the same boxes live as at some moment of it, and no
 * more. */
struct qn_overlap {
    int count, n_sections;
    int *first, *end;            /* by box: its sections are [first, end) */
    int64_t pairs;               /* of boxes that live together */
    int *neighbour, *neighbours; /* the boxes that live together with box b are
                                    neighbour[neighbours[b]] .. neighbour[neighbours[b + 1] - 1] */
    int *member, *members;       /* the boxes of section s, likewise by members[s] */
};

/* The sections alone. Allocated from `arena`. False when out of memory. */
bool qn_overlap_sections(struct qn_overlap *overlap, const qn_lifetime *boxes, int count,
                         struct qn_arena *arena);
/* The sections and the lists. Likewise; false, too, where there are more pairs than numbers. */
bool qn_overlap_make(struct qn_overlap *overlap, const qn_lifetime *boxes, int count,
                     struct qn_arena *arena);

#endif
