/* SPDX-License-Identifier: MIT
 *
 * Ranks and best candidates against a search in double that keeps all scores. Rows have small whole
 * numbers, so that sums in f32 are exact and ties are ties.
 */
#include "../io/scratch.h"

#include <math.h>
#include <quern/retrieval.h>

enum { MOST_QUERIES = 523, MOST_CANDIDATES = 331, MOST_DIM = 257 };

static float queries[MOST_QUERIES * MOST_DIM], candidates[MOST_CANDIDATES * MOST_DIM];
static int64_t positives[MOST_QUERIES], ranks[MOST_QUERIES];
static double scores[MOST_CANDIDATES];

static uint32_t random_bits(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void fill(float *rows, int64_t numbers, int most)
{
    for (int64_t i = 0; i < numbers; i++)
        rows[i] = (float)((int)(random_bits() % (2 * (unsigned)most + 1)) - most);
}

static qn_retrieval_params make(struct scratch *scratch, int64_t n, int64_t m, int64_t dim,
                                int most)
{
    fill(queries, n * dim, most);
    fill(candidates, m * dim, most);
    for (int64_t i = 0; i < n; i++)
        positives[i] = random_bits() % m;
    return (qn_retrieval_params){.log = scratch->log,
                                 .n_queries = n,
                                 .n_candidates = m,
                                 .dim = dim,
                                 .queries = queries,
                                 .candidates = candidates};
}

static void score_all(const qn_retrieval_params *p, int64_t query)
{
    for (int64_t j = 0; j < p->n_candidates; j++) {
        scores[j] = 0;
        for (int64_t k = 0; k < p->dim; k++)
            scores[j] +=
                (double)p->queries[query * p->dim + k] * (double)p->candidates[j * p->dim + k];
    }
}

static int64_t naive_rank(const qn_retrieval_params *p, int64_t query, int64_t positive)
{
    int64_t rank = 1;
    score_all(p, query);
    for (int64_t j = 0; j < p->n_candidates; j++)
        rank += j != positive && !(scores[j] < scores[positive]);
    return isnan(scores[positive]) ? p->n_candidates + 1 : rank;
}

/* Of a figure that looks at `most` candidates. */
static void is_recall(double is, const qn_retrieval_params *p, int64_t most)
{
    double hits = 0;
    for (int64_t i = 0; i < p->n_queries; i++)
        hits += ranks[i] <= most;
    if (most > p->n_candidates)
        assert_true(isnan(is));
    else
        assert_true(is == hits / (double)p->n_queries);
}

/* Ranks and figures are those of the naive search; gives the figures. */
static qn_retrieval check_ranks(const qn_retrieval_params *p, const int64_t *right)
{
    qn_retrieval figures, alone;
    double mrr = 0;
    assert_int_equal(qn_retrieval_measure(&figures, p, right, ranks), QN_OK);
    for (int64_t i = 0; i < p->n_queries; i++) {
        assert_int_equal(ranks[i], naive_rank(p, i, right ? right[i] : i));
        mrr += ranks[i] <= p->n_candidates ? 1.0 / (double)ranks[i] : 0;
    }
    assert_true(fabs(figures.mrr - mrr / (double)p->n_queries) < 1e-12);
    is_recall(figures.recall_1, p, 1);
    is_recall(figures.recall_10, p, 10);
    is_recall(figures.recall_100, p, 100);
    assert_int_equal(qn_retrieval_measure(&alone, p, right, NULL), QN_OK);
    assert_memory_equal(&alone.mrr, &figures.mrr, sizeof alone.mrr);
    return figures;
}

/* Whether candidate a is found before b. */
static bool is_before(int64_t a, int64_t b)
{
    if (isnan(scores[a]) || isnan(scores[b]))
        return isnan(scores[a]) ? isnan(scores[b]) && a < b : true;
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

static void check_best(const qn_retrieval_params *p, int64_t k)
{
    static int64_t found[MOST_QUERIES * MOST_CANDIDATES], alone[MOST_QUERIES * MOST_CANDIDATES];
    static float is[MOST_QUERIES * MOST_CANDIDATES];
    assert_int_equal(qn_retrieve(found, is, k, p), QN_OK);
    assert_int_equal(qn_retrieve(alone, NULL, k, p), QN_OK);
    assert_memory_equal(found, alone, (size_t)(p->n_queries * k) * sizeof *found);
    for (int64_t i = 0; i < p->n_queries; i++) {
        score_all(p, i);
        for (int64_t r = 0; r < k; r++) {
            const int64_t j = found[i * k + r];
            int64_t before = 0;
            assert_in_range(j, 0, p->n_candidates - 1);
            for (int64_t other = 0; other < p->n_candidates; other++)
                before += other != j && is_before(other, j);
            assert_int_equal(before, r);
            assert_true(isnan(scores[j]) ? isnan(is[i * k + r])
                                         : (double)is[i * k + r] == scores[j]);
        }
    }
}

/* One of each, primes, whole tiles and one more or less. */
static const int64_t sizes[][3] = {{1, 1, 1},      {1, 2, 3},     {2, 1, 5},     {7, 9, 1},
                                   {13, 31, 7},    {63, 64, 8},   {64, 65, 128}, {65, 32, 129},
                                   {131, 331, 67}, {256, 257, 2}, {257, 33, 5},  {523, 67, 257}};

static void ranks_are_those_of_the_naive_search(void **state)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int most = 1; most <= 8; most += 7) {
            const qn_retrieval_params p = make(*state, sizes[s][0], sizes[s][1], sizes[s][2], most);
            const qn_retrieval figures = check_ranks(&p, positives);
            assert_int_equal(figures.not_finite, 0);
            if (p.n_queries <= p.n_candidates)
                check_ranks(&p, NULL);
        }
}

static void the_best_are_those_of_the_naive_search(void **state)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const qn_retrieval_params p = make(*state, sizes[s][0], sizes[s][1], sizes[s][2], 2);
        for (int64_t k = 1; k <= p.n_candidates; k = k < 3 ? k + 1 : 3 * k)
            check_best(&p, k);
        check_best(&p, p.n_candidates);
    }
}

/* Equal candidates are all before one another; rows that are no whole numbers, in every place of a
 * tile, so that a score that depended on the place would break a tie. */
static void ties_count_against_the_query(void **state)
{
    enum { N = 297, DIM = 133 };
    qn_retrieval figures;
    const qn_retrieval_params p = make(*state, N, N, DIM, 1);
    for (int k = 0; k < DIM; k++)
        candidates[k] = sinf((float)k) / 3;
    for (int i = 0; i < N; i++) {
        memcpy(candidates + i * DIM, candidates, DIM * sizeof *candidates);
        for (int k = 0; k < DIM; k++)
            queries[i * DIM + k] = cosf((float)(i * k)) / 7;
    }
    assert_int_equal(qn_retrieval_measure(&figures, &p, NULL, ranks), QN_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(ranks[i], N);
    assert_true(figures.recall_1 == 0 && figures.recall_10 == 0);
    assert_true(fabs(figures.mrr - 1.0 / N) < 1e-12);
}

/* A training that failed: nothing is found, whatever the number of candidates. */
static void nan_is_no_hit(void **state)
{
    static const int64_t counts[] = {1, 10, 100, 131};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int which = 0; which < 3; which++) {
            const int64_t n = counts[c];
            const qn_retrieval_params p = make(*state, n, n, 3, 4);
            for (int64_t i = 0; i < n; i++) {
                queries[i * 3 + 1] = which == 1 ? queries[i * 3 + 1] : NAN;
                candidates[i * 3 + 2] = which == 0 ? candidates[i * 3 + 2] : NAN;
            }
            const qn_retrieval figures = check_ranks(&p, NULL);
            assert_true(figures.recall_1 == 0 && figures.mrr == 0);
            assert_true(n < 10 || figures.recall_10 == 0);
            assert_true(n < 100 || figures.recall_100 == 0);
            assert_int_equal(figures.not_finite, which == 2 ? 2 * n : n);
            check_best(&p, 1);
        }
}

/* Some rows are not finite: others' scores stand, and a NaN is not less than any. */
static void some_are_not_finite(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -NAN};
    for (int round = 0; round < 20; round++) {
        const qn_retrieval_params p = make(*state, 67, 71, 5, 3);
        for (int i = 0; i < 4; i++) {
            queries[(11 * i + round) * 5 + round % 5] = odd[i];
            candidates[(13 * i + round) * 5 + i] = odd[(i + round) % 4];
            candidates[(13 * i + round) * 5 + 4] = odd[i];
        }
        assert_int_equal(check_ranks(&p, NULL).not_finite, 8);
        check_ranks(&p, positives);
        check_best(&p, 7);
        check_best(&p, 71);
    }
}

/* The other direction is the same with both exchanged. */
static void directions_exchange(void **state)
{
    enum { N = 89, DIM = 6 };
    qn_retrieval_params p = make(*state, N, N, DIM, 3);
    for (int i = 0; i < N * DIM; i++)
        candidates[i] += 4 * queries[i];
    const double forth = check_ranks(&p, NULL).mrr;
    p.queries = candidates;
    p.candidates = queries;
    assert_true(check_ranks(&p, NULL).mrr != forth);
}

static void what_cannot_be_is_refused(void **state)
{
    struct scratch *scratch = *state;
    const qn_retrieval_params good = make(scratch, 3, 2, 4, 1);
    qn_retrieval_params wrong[6];
    qn_retrieval figures;
    for (int i = 0; i < 6; i++)
        wrong[i] = good;
    wrong[0].queries = NULL;
    wrong[1].candidates = NULL;
    wrong[2].n_queries = 0;
    wrong[3].n_candidates = -1;
    wrong[4].dim = 0;
    wrong[5].dim = INT64_MAX / 8;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(qn_retrieval_measure(&figures, &wrong[i], positives, NULL),
                         QN_ERR_ARGUMENT);
        scratch_said(scratch, "not true", "");
        assert_int_equal(qn_retrieve(ranks, NULL, 1, &wrong[i]), QN_ERR_ARGUMENT);
        scratch_said(scratch, "not true", "");
    }
    assert_int_equal(qn_retrieval_measure(&figures, &good, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "query 2: its candidate 2 is none of 2", "");
    positives[1] = -1;
    assert_int_equal(qn_retrieval_measure(&figures, &good, positives, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "query 1: its candidate -1 is none of 2", "");
    assert_int_equal(qn_retrieve(ranks, NULL, 0, &good), QN_ERR_ARGUMENT);
    scratch_said(scratch, "k >= 1", "");
    assert_int_equal(qn_retrieve(ranks, NULL, 3, &good), QN_ERR_ARGUMENT);
    scratch_said(scratch, "k <= params->n_candidates", "");
    assert_int_equal(qn_retrieval_measure(NULL, &good, NULL, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_retrieval_measure(&figures, NULL, NULL, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_retrieve(NULL, NULL, 1, &good), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(ranks_are_those_of_the_naive_search),
        WITH_SCRATCH(the_best_are_those_of_the_naive_search),
        WITH_SCRATCH(ties_count_against_the_query),
        WITH_SCRATCH(nan_is_no_hit),
        WITH_SCRATCH(some_are_not_finite),
        WITH_SCRATCH(directions_exchange),
        WITH_SCRATCH(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
