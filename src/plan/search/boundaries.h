/* SPDX-License-Identifier: MIT
 *
 * Where the forward pass may be cut in sections, and whether dropping a value pays.
 */
#ifndef QN_SEARCH_BOUNDARIES_H
#define QN_SEARCH_BOUNDARIES_H

#include "plan/problem.h"

struct qn_boundaries {
    int *crosses;   /* by forward task: the value it makes, if later forward tasks read no other
                       value made up to here, uploaded inputs aside; else -1 */
    int64_t *saved; /* by forward task: bytes that it writes and that backward tasks read */
    int64_t total;  /* sum of saved[] */
};

/* Allocated from `arena`. False when out of memory. */
bool qn_boundaries_find(const struct qn_problem *problem, struct qn_arena *arena,
                        struct qn_boundaries *boundaries);

/* Whether dropping what a task makes pays: saved / seconds >= bytes_per_second, where `saved` is
 * the bytes it writes that backward tasks read. A task with saved = 0 frees nothing, but others are
 * made again from its results: it pays if it is cheap, or if bytes_per_second <= 0. */
bool qn_pays(const struct qn_task *task, int64_t saved, double bytes_per_second);

#endif
