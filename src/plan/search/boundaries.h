/* SPDX-License-Identifier: MIT
 *
 * Where the forward pass may be cut, and what it is worth to drop a value.
 */
#ifndef QN_SEARCH_BOUNDARIES_H
#define QN_SEARCH_BOUNDARIES_H

#include "plan/problem.h"

struct qn_boundaries {
    int *crosses;   /* by forward task: the one value it makes if that is all that crosses to later
                       forward tasks, but for what was uploaded; -1 otherwise */
    int64_t *saved; /* by forward task: bytes that it writes and that backward tasks read */
    int64_t total;  /* of them */
};

/* Allocated from `arena`. False when out of memory. */
bool qn_boundaries_find(const struct qn_problem *problem, struct qn_arena *arena,
                        struct qn_boundaries *boundaries);

/* Whether dropping what a task makes pays: saved / seconds >= bytes_per_second, where `saved` is
 * the bytes of it that backward tasks read. A task with saved = 0 frees nothing, but makes what
 * others are made again from: it does if it is cheap, or if bytes_per_second <= 0. */
bool qn_pays(const struct qn_task *task, int64_t saved, double bytes_per_second);

#endif
