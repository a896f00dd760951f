/* SPDX-License-Identifier: MIT
 *
 * The search: micro-batch, remainder and recomputation chosen together.
 */
#ifndef QN_SEARCH_SEARCH_H
#define QN_SEARCH_SEARCH_H

#include "plan/placement/place.h"
#include "plan/search/frontier.h"
#include "plan/search/seeds.h"

/* Tries every candidate of every useful micro-batch (with early updates the largest batch alone)
 * and adds the best to the frontier, which is allocated from how->arena and does not depend on the
 * budget. */
qn_status qn_search(const struct qn_lowering *how, const struct qn_persist *persist,
                    struct qn_frontier *frontier);

/* Builds program and placement of a point into how->arena. QN_ERR_FORMAT: its step lists, which
 * may come from a file, cannot run. */
qn_status qn_search_build(const struct qn_lowering *how, const struct qn_persist *persist,
                          const struct qn_point *point, struct qn_program *program,
                          struct qn_placement *placement, double *keep_all_seconds);

#endif
