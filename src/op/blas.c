/* SPDX-License-Identifier: MIT */
#include "op/blas.h"

#include "base/shape.h"

static bool is_copied(const struct qn_facts *facts, int64_t m, int64_t n, int64_t k)
{
    const int64_t side = facts->blas_side, terms = qn_mul(qn_mul(m, n), k);
    return terms < 0 || terms >= side * side * side;
}

int64_t qn_blas_bytes(const struct qn_facts *facts, int64_t m, int64_t n, int64_t k)
{
    if (!is_copied(facts, m, n, k))
        return QN_BLAS_LEAST;
    const int64_t rows = qn_round_up(m, facts->blas_rows);
    const int64_t columns = qn_round_up(n, facts->blas_columns);
    const int64_t depth = qn_round_up(k, facts->blas_terms);
    const int64_t elements =
        qn_sum_of(qn_sum_of(qn_mul(rows, depth), qn_mul(columns, depth)), qn_mul(rows, columns));
    const int64_t bytes = qn_mul(elements, (int64_t)sizeof(float));
    return bytes >= 0 && bytes < QN_BLAS_LEAST ? QN_BLAS_LEAST : bytes;
}
