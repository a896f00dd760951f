/* SPDX-License-Identifier: MIT */
#include "check/draw.h"
#include "base/shape.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_dropout;
extern const struct qn_check_op qn_check_dropout;

static void reference(const struct qn_reference *r)
{
    const struct qn_dropout_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t width = qn_shape_span(x, 1, x->rank), padded = qn_round_up(width, 4);
    const int64_t rows = x->dim[0] / r->call->batch; /* of a sample */
    for (int64_t i = 0; i < qn_shape_count(x); i++) {
        /* the rows of a sample lie behind one another, each padded to whole draws of four */
        int64_t row = i / width, element = row % rows * padded + i % width;
        bool kept = r->eval || qn_check_keeps(r, row / rows, element, attr->rate);
        double scale = r->eval ? 1 : 1 / (1 - (double)attr->rate);
        r->out[0][i] = kept ? r->in[0][i] * scale : 0;
    }
}

static const struct qn_dropout_attr half = {0.5f}, tenth = {0.1f}, nothing = {0}, all = {1},
                                    negative = {-0.1f};

/* Samples that are no multiple of four draw some numbers for nothing. */
static const struct qn_check_case cases[] = {
    {"whole vectors", .in = {{.rank = 2, .dim = {5, 16}}}, .attr = &half},
    {"full draws", .in = {{.rank = 2, .dim = {5, 36}}}, .attr = &half},
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 7}}}, .attr = &tenth, .small = true},
    {"single elements", .in = {{.rank = 1, .dim = {9}}}, .attr = &half},
    {"several groups", .in = {{.rank = 2, .dim = {3, 531}}}, .attr = &tenth},
    {"rows of a sample", .in = {{.rank = 2, .dim = {12, 9}}}, .attr = &half, .rows_per_sample = 3},
    {"more rows than a range", .in = {{.rank = 2, .dim = {33000, 2}}}, .attr = &half},
    {"nothing dropped", .in = {{.rank = 2, .dim = {3, 9}}}, .attr = &nothing},
    {0},
};

static const struct qn_check_case refused[] = {
    {"all dropped", .in = {{.rank = 2, .dim = {3, 9}}}, .attr = &all},
    {"a negative rate", .in = {{.rank = 2, .dim = {3, 9}}}, .attr = &negative},
    {"no samples", .in = {{.rank = 0}}, .attr = &half},
    {0},
};

const struct qn_check_op qn_check_dropout = {
    .op = &qn_op_dropout, .cases = cases, .reference = reference, .refused = refused};
