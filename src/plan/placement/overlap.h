/* SPDX-License-Identifier: MIT
 *
 * Which boxes live together, and in which sections of time.
 */
#ifndef QN_PLACEMENT_OVERLAP_H
#define QN_PLACEMENT_OVERLAP_H

#include "base/arena.h"
#include <quern/plan.h>

/* A section is an interval of time with a moment at which every box lives that lives anywhere in
 * the interval; sections are numbered in the order of time. */
struct qn_overlap {
    int count, n_sections;
    int *first, *end;            /* by box: its sections are [first, end) */
    int64_t pairs;               /* pairs of boxes that live together */
    int *neighbour, *neighbours; /* the boxes that live together with box b are
                                    neighbour[neighbours[b]] .. neighbour[neighbours[b + 1] - 1] */
    int *member, *members;       /* the boxes of section s are
                                    member[members[s]] .. member[members[s + 1] - 1] */
};

/* Fills in count, n_sections, first, end and pairs alone. Allocated from `arena`. False when out of
 * memory. */
bool qn_overlap_sections(struct qn_overlap *overlap, const qn_lifetime *boxes, int count,
                         struct qn_arena *arena);
/* Fills in all fields. Allocated from `arena`. False when out of memory, or where there are more
 * than 2^25 pairs. */
bool qn_overlap_make(struct qn_overlap *overlap, const qn_lifetime *boxes, int count,
                     struct qn_arena *arena);

#endif
