/* SPDX-License-Identifier: MIT */
#include "check/row_norm.h"

#include <math.h>

void qn_check_norm_row(const struct qn_check_norm_row *row)
{
    const struct qn_reference *r = row->r;
    const double *x = r->in[0] + row->first;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < row->n; i++)
        mean += x[i] / (double)row->n;
    for (int64_t i = 0; i < row->n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)row->n;
    for (int64_t i = 0; i < row->n; i++) {
        const int64_t p = row->parameter + i / row->inner;
        const double weight = r->in[1] ? r->in[1][p] : 1, bias = r->in[2] ? r->in[2][p] : 0;
        r->out[0][row->first + i] = (x[i] - mean) / sqrt(variance + row->eps) * weight + bias;
    }
}
