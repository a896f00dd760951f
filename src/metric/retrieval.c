/* SPDX-License-Identifier: MIT
 *
 * Ranks of the right candidates, and the best candidates of all.
 */
#include "base/log.h"
#include "base/shape.h"
#include "metric/scorer.h"

#include <inttypes.h>
#include <math.h>
#include <quern/retrieval.h>
#include <stdbool.h>
#include <stdlib.h>

static qn_status check(const qn_retrieval_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->queries && params->candidates);
    QN_REQUIRE(log, params->n_queries >= 1 && params->n_candidates >= 1 && params->dim >= 1);
    const int64_t bytes = qn_mul(params->dim, sizeof(float));
    QN_REQUIRE(log, qn_mul(params->n_queries, bytes) >= 0);
    QN_REQUIRE(log, qn_mul(params->n_candidates, bytes) >= 0);
    return QN_OK;
}

static int least(int64_t count, int most)
{
    return count < most ? (int)count : most;
}

/* Takes the next candidates from `first` on; gives how many. */
static int take_from(struct qn_scorer *scorer, int64_t first)
{
    const int count = least(scorer->params->n_candidates - first, QN_TILE_CANDIDATES);
    int64_t numbers[QN_TILE_CANDIDATES];
    for (int j = 0; j < count; j++)
        numbers[j] = first + j;
    qn_scorer_take(scorer, numbers, count);
    return count;
}

/* --- ranks --- */

static int64_t positive_of(const int64_t *positives, int64_t query)
{
    return positives ? positives[query] : query;
}

static qn_status check_positives(const qn_retrieval_params *params, const int64_t *positives)
{
    const int64_t candidates = params->n_candidates;
    for (int64_t i = 0; i < params->n_queries; i++) {
        const int64_t positive = positive_of(positives, i);
        if (positive < 0 || positive >= candidates)
            return qn_fail(&params->log, QN_ERR_ARGUMENT,
                           "retrieval: query %" PRId64 ": its candidate %" PRId64
                           " is none of %" PRId64,
                           i, positive, candidates);
    }
    return QN_OK;
}

/* Queries first .. first + count - 1, and the scores of their right candidates, which are made as
 * those of all candidates are. */
struct block {
    int64_t first;
    int count;
    float positive[QN_TILE_QUERIES];
};

static void score_positives(struct qn_scorer *scorer, struct block *block, const int64_t *positives)
{
    int64_t numbers[QN_TILE_CANDIDATES];
    for (int at = 0; at < block->count; at += QN_TILE_CANDIDATES) {
        const int count = least(block->count - at, QN_TILE_CANDIDATES);
        for (int i = 0; i < count; i++)
            numbers[i] = positive_of(positives, block->first + at + i);
        qn_scorer_take(scorer, numbers, count);
        qn_scorer_score(scorer, block->first + at, count);
        for (int i = 0; i < count; i++)
            block->positive[at + i] = scorer->score[i * QN_TILE_CANDIDATES + i];
    }
}

/* How many of the first `count` scores are not less than the right one's. */
static int not_less(const float *score, int count, float positive)
{
    int counted = 0;
    for (int j = 0; j < count; j++)
        counted += !(score[j] < positive);
    return counted;
}

/* The right candidate is one of those that are not less: it is the 1 of the rank. */
static void rank_block(struct qn_scorer *scorer, struct block *block, const int64_t *positives,
                       int64_t *ranks)
{
    const int64_t candidates = scorer->params->n_candidates;
    score_positives(scorer, block, positives);
    for (int i = 0; i < block->count; i++)
        ranks[i] = isnan(block->positive[i]) ? 1 : 0;
    for (int64_t at = 0; at < candidates; at += QN_TILE_CANDIDATES) {
        const int count = take_from(scorer, at);
        qn_scorer_score(scorer, block->first, block->count);
        for (int i = 0; i < block->count; i++)
            ranks[i] += not_less(&scorer->score[i * QN_TILE_CANDIDATES], count, block->positive[i]);
    }
}

static qn_status rank_all(const qn_retrieval_params *params, const int64_t *positives,
                          int64_t *ranks)
{
    struct qn_scorer scorer;
    struct block block;
    QN_TRY(qn_scorer_open(&scorer, params));
    for (int64_t first = 0; first < params->n_queries; first += QN_TILE_QUERIES) {
        block.first = first;
        block.count = least(params->n_queries - first, QN_TILE_QUERIES);
        rank_block(&scorer, &block, positives, ranks + first);
    }
    qn_scorer_close(&scorer);
    return QN_OK;
}

/* --- figures --- */

static double recall(const qn_retrieval_params *params, const int64_t *ranks, int64_t most)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < params->n_queries; i++)
        hits += ranks[i] <= most;
    return most > params->n_candidates ? NAN : (double)hits / (double)params->n_queries;
}

static double mean_reciprocal(const qn_retrieval_params *params, const int64_t *ranks)
{
    double sum = 0;
    for (int64_t i = 0; i < params->n_queries; i++)
        sum += ranks[i] <= params->n_candidates ? 1 / (double)ranks[i] : 0;
    return sum / (double)params->n_queries;
}

static int64_t rows_not_finite(const float *rows, int64_t count, int64_t dim)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < count; i++) {
        bool finite = true;
        for (int64_t k = 0; k < dim; k++)
            finite &= isfinite(rows[i * dim + k]) != 0;
        counted += !finite;
    }
    return counted;
}

static qn_status measure(qn_retrieval *figures, const qn_retrieval_params *params,
                         const int64_t *positives, int64_t *ranks)
{
    QN_TRY(rank_all(params, positives, ranks));
    *figures = (qn_retrieval){
        .recall_1 = recall(params, ranks, 1),
        .recall_10 = recall(params, ranks, 10),
        .recall_100 = recall(params, ranks, 100),
        .mrr = mean_reciprocal(params, ranks),
        .not_finite = rows_not_finite(params->queries, params->n_queries, params->dim) +
                      rows_not_finite(params->candidates, params->n_candidates, params->dim)};
    return QN_OK;
}

qn_status qn_retrieval_measure(qn_retrieval *figures, const qn_retrieval_params *params,
                               const int64_t *positives, int64_t *ranks)
{
    QN_REQUIRE(params ? &params->log : NULL, figures && params);
    QN_TRY(check(params));
    QN_TRY(check_positives(params, positives));
    if (ranks)
        return measure(figures, params, positives, ranks);
    int64_t *made = calloc((size_t)params->n_queries, sizeof *made);
    const qn_status status = made
                                 ? measure(figures, params, positives, made)
                                 : qn_fail(&params->log, QN_ERR_MEMORY, "retrieval: out of memory");
    free(made);
    return status;
}

/* --- the best --- */

/* What was found for one query so far, the best first. */
struct best {
    int64_t *found;
    float *score;
    int64_t count, most;
};

/* Whether a candidate that comes later goes before the other. */
static bool is_better(float score, float other)
{
    return score > other || (isnan(other) && !isnan(score));
}

static void offer(struct best *best, int64_t candidate, float score)
{
    int64_t at = best->count;
    if (at == best->most && !is_better(score, best->score[at - 1]))
        return;
    if (at == best->most)
        at--;
    else
        best->count++;
    for (; at > 0 && is_better(score, best->score[at - 1]); at--) {
        best->found[at] = best->found[at - 1];
        best->score[at] = best->score[at - 1];
    }
    best->found[at] = candidate;
    best->score[at] = score;
}

/* `best` is those of a block's queries. */
static void search_block(struct qn_scorer *scorer, int64_t first, int count, struct best *best)
{
    const int64_t candidates = scorer->params->n_candidates;
    for (int64_t at = 0; at < candidates; at += QN_TILE_CANDIDATES) {
        const int taken = take_from(scorer, at);
        qn_scorer_score(scorer, first, count);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < taken; j++)
                offer(&best[i], at + j, scorer->score[i * QN_TILE_CANDIDATES + j]);
    }
}

static qn_status search_all(const qn_retrieval_params *params, int64_t *found, float *scores,
                            int64_t k)
{
    struct qn_scorer scorer;
    struct best best[QN_TILE_QUERIES];
    QN_TRY(qn_scorer_open(&scorer, params));
    for (int64_t first = 0; first < params->n_queries; first += QN_TILE_QUERIES) {
        const int count = least(params->n_queries - first, QN_TILE_QUERIES);
        for (int i = 0; i < count; i++)
            best[i] = (struct best){
                .found = found + (first + i) * k, .score = scores + (first + i) * k, .most = k};
        search_block(&scorer, first, count, best);
    }
    qn_scorer_close(&scorer);
    return QN_OK;
}

qn_status qn_retrieve(int64_t *found, float *scores, int64_t k, const qn_retrieval_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, found && params);
    QN_TRY(check(params));
    QN_REQUIRE(log, k >= 1 && k <= params->n_candidates);
    QN_REQUIRE(log, qn_mul(qn_mul(params->n_queries, k), sizeof *found) >= 0);
    if (scores)
        return search_all(params, found, scores, k);
    float *made = calloc((size_t)(params->n_queries * k), sizeof *made);
    const qn_status status = made ? search_all(params, found, made, k)
                                  : qn_fail(log, QN_ERR_MEMORY, "retrieval: out of memory");
    free(made);
    return status;
}
