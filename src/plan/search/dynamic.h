/* SPDX-License-Identifier: MIT
 *
 * Seeds: the fastest step list for each number of bytes, by dynamic programming over sections.
 */
#ifndef QN_SEARCH_DYNAMIC_H
#define QN_SEARCH_DYNAMIC_H

#include "plan/search/sections.h"

enum { QN_MOST_DYNAMIC = 32 };

/* At most QN_MOST_DYNAMIC lists that need up to `most` bytes, the smallest first. Bytes are rounded
 * up to units of most / 1000 or more, so that slightly smaller lists may be missed. Allocated from
 * `arena`. False when out of memory. */
bool qn_dynamic_lists(const struct qn_problem *problem, const struct qn_sections *sections,
                      int64_t most, struct qn_arena *arena, struct qn_steps *lists, int *count);

#endif
