/* SPDX-License-Identifier: MIT */
#include "metric/scorer.h"
#include "base/log.h"
#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

/* Candidates whose scores are summed up at a time, in eight registers of four numbers, and numbers
 * of each that all queries use before the next ones: 16 KiB. */
enum { STRIP = 32, DEPTH = 128 };
enum { SCORES = QN_TILE_QUERIES * QN_TILE_CANDIDATES };
_Static_assert(QN_TILE_CANDIDATES % STRIP == 0, "whole strips");

qn_status qn_scorer_open(struct qn_scorer *scorer, const qn_retrieval_params *params)
{
    const int64_t numbers = qn_mul(params->dim, QN_TILE_CANDIDATES);
    *scorer = (struct qn_scorer){.params = params};
    scorer->packed = numbers >= 0 ? calloc((size_t)numbers, sizeof(float)) : NULL;
    scorer->score = calloc(SCORES, sizeof(float));
    if (scorer->packed && scorer->score)
        return QN_OK;
    qn_scorer_close(scorer);
    return qn_fail(&params->log, QN_ERR_MEMORY, "retrieval: out of memory");
}

void qn_scorer_close(struct qn_scorer *scorer)
{
    free(scorer->packed);
    free(scorer->score);
    *scorer = (struct qn_scorer){.params = NULL};
}

/* packed[j / STRIP][k][j % STRIP] is number k of candidate j. */
void qn_scorer_take(struct qn_scorer *scorer, const int64_t *numbers, int count)
{
    const int64_t dim = scorer->params->dim;
    for (int j = 0; j < count; j++) {
        const float *row = scorer->params->candidates + numbers[j] * dim;
        float *to = scorer->packed + j / STRIP * dim * STRIP + j % STRIP;
        for (int64_t k = 0; k < dim; k++)
            to[k * STRIP] = row[k];
    }
    scorer->candidates = count;
}

/* Adds the products of numbers of a query with the same numbers of the strip's candidates. */
static void add_products(float *score, const float *query, const float *packed, int64_t numbers)
{
    float sum[STRIP];
    memcpy(sum, score, sizeof sum);
    for (int64_t k = 0; k < numbers; k++)
        for (int j = 0; j < STRIP; j++)
            sum[j] += query[k] * packed[k * STRIP + j];
    memcpy(score, sum, sizeof sum);
}

void qn_scorer_score(struct qn_scorer *scorer, int64_t first, int count)
{
    const int64_t dim = scorer->params->dim;
    const float *queries = scorer->params->queries + first * dim;
    memset(scorer->score, 0, SCORES * sizeof(float));
    for (int j = 0; j < scorer->candidates; j += STRIP)
        for (int64_t k = 0; k < dim; k += DEPTH)
            for (int i = 0; i < count; i++)
                add_products(&scorer->score[i * QN_TILE_CANDIDATES + j], queries + i * dim + k,
                             scorer->packed + j * dim + k * STRIP,
                             dim - k < DEPTH ? dim - k : DEPTH);
}
