/* SPDX-License-Identifier: MIT
 *
 * What gaps a greedy placement leaves in its pools are looked for.
 */
#ifndef QN_PLACEMENT_TIGHTEN_H
#define QN_PLACEMENT_TIGHTEN_H

#include "plan/placement/place.h"

/* Lowers the pools of a placement, each storage staying in its own, to the most that lives there at
 * once or to a little more. Deterministic, and as long as counts say. False when out of memory. */
bool qn_tighten(struct qn_storage *storages, int count, struct qn_placement *placement);

static inline qn_lifetime qn_storage_box(const struct qn_storage *s)
{
    return (qn_lifetime){s->start, s->end + 1, s->bytes, 0};
}

#endif
