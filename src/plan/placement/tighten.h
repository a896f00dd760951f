/* SPDX-License-Identifier: MIT
 *
 * Removes gaps that a greedy placement leaves in its pools.
 */
#ifndef QN_PLACEMENT_TIGHTEN_H
#define QN_PLACEMENT_TIGHTEN_H

#include "plan/placement/place.h"

/* Lowers the pools of a placement, each storage staying in its pool, to the most bytes that are
 * alive in the pool at once or to a little more. Deterministic: work is limited by counts, not by
 * time. False when out of memory. */
bool qn_tighten(struct qn_storage *storages, int count, struct qn_placement *placement);

static inline qn_lifetime qn_storage_box(const struct qn_storage *s)
{
    return (qn_lifetime){s->start, s->end + 1, s->bytes, 0};
}

#endif
