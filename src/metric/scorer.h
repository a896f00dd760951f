/* SPDX-License-Identifier: MIT
 *
 * Scores of some queries with some candidates at a time. A score is the sum over a row's numbers in
 * their order, in f32, whatever stands beside the two rows.
 * Thread-safety: Unsafe.
 */
#ifndef QN_METRIC_SCORER_H
#define QN_METRIC_SCORER_H

#include <quern/retrieval.h>

/* Of a tile: 64 KiB of scores. */
enum { QN_TILE_QUERIES = 256, QN_TILE_CANDIDATES = 64 };

struct qn_scorer {
    const qn_retrieval_params *params;
    float *packed; /* candidates of the tile */
    int candidates;
    float *score; /* (QN_TILE_QUERIES, QN_TILE_CANDIDATES) */
};

qn_status qn_scorer_open(struct qn_scorer *scorer, const qn_retrieval_params *params);
/* Takes `count` candidates, at most QN_TILE_CANDIDATES, by their numbers. */
void qn_scorer_take(struct qn_scorer *scorer, const int64_t *numbers, int count);
/* score(i, j) becomes that of query first + i with candidate j of those that were taken; `count`
 * queries, at most QN_TILE_QUERIES. */
void qn_scorer_score(struct qn_scorer *scorer, int64_t first, int count);
void qn_scorer_close(struct qn_scorer *scorer);

#endif
