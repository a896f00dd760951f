/* SPDX-License-Identifier: MIT
 *
 * How well embeddings find one another: exact search of each query among all candidates by dot
 * product, without an index and without the matrix of all scores. No device takes part.
 *
 *     const qn_retrieval_params params = {.queries = texts, .n_queries = 10000,
 *                                      .candidates = images, .n_candidates = 10000, .dim = 64};
 *     qn_retrieval figures;
 *     qn_retrieval_measure(&figures, &params, NULL, NULL);
 *     printf("%.4f %.4f\n", figures.recall_1, figures.mrr);
 *
 * The other direction is the same with queries and candidates exchanged. Of the cosine, rows have
 * length 1. Scores are sums in f32 in the order of the rows' numbers, so that equal rows have equal
 * scores wherever they are.
 */
#ifndef QUERN_RETRIEVAL_H
#define QUERN_RETRIEVAL_H

#include <quern/log.h>
#include <quern/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is searched, and where. */
typedef struct qn_retrieval_params {
    qn_log log;
    int64_t n_queries, n_candidates, dim; /* each at least 1 */
    const float *queries;                 /* (n_queries, dim) */
    const float *candidates;              /* (n_candidates, dim) */
} qn_retrieval_params;

/* Figures over all queries. A figure is NAN where there are fewer candidates than it looks at. */
typedef struct qn_retrieval {
    double recall_1, recall_10, recall_100; /* fraction of queries whose rank is at most that */
    double mrr;         /* mean reciprocal rank: the mean of 1 / rank; of those not found 0 */
    int64_t not_finite; /* queries and candidates with a number that is NaN or infinite: where there
                           are any, training failed, and the figures say little */
} qn_retrieval;

/* Ranks the right candidate of each query: 1 + how many of the others have a score that is not
 * less. So ties count against the query, and so does a NaN; where the right one's own score is NaN,
 * it is not found: its rank is n_candidates + 1.
 *
 * `positives` (n_queries) are the numbers of the right candidates; NULL: the same as the query's.
 * `ranks` (n_queries) are written there; may be NULL. Takes n_queries * n_candidates * dim
 * multiplications, and memory for 64 rows, 64 KiB and without `ranks` them. QN_ERR_ARGUMENT: a size
 * is below 1, or a right candidate is none. Thread-safety: Safe. */
QN_API qn_status qn_retrieval_measure(qn_retrieval *figures, const qn_retrieval_params *params,
                                      const int64_t *positives, int64_t *ranks);

/* The `k` best candidates of each query, 1 to n_candidates: their numbers to `found`
 * (n_queries, k), the highest score first, of equal ones the lowest number; NaN is below all
 * others. `scores` (n_queries, k) may be NULL. QN_ERR_ARGUMENT: a size is out of range.
 * Thread-safety: Safe. */
QN_API qn_status qn_retrieve(int64_t *found, float *scores, int64_t k,
                             const qn_retrieval_params *params);

#ifdef __cplusplus
}
#endif
#endif
