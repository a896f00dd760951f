/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_bank_entry;
extern const struct qn_check_op qn_check_bank_entry;

enum { QUERIES, PASSAGES, IDS };

static bool is_finite(const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static void enter(const double *from, double *to, int64_t count, bool whole)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = whole ? from[i] : 0;
}

static void reference(const struct qn_reference *r)
{
    const int64_t samples = qn_operand_count(&r->call->in[IDS]);
    int64_t each[2];
    for (int i = QUERIES; i <= PASSAGES; i++)
        each[i] = qn_operand_count(&r->call->in[i]) / samples;
    for (int64_t s = 0; s < samples; s++) {
        bool whole = true;
        for (int i = QUERIES; i <= PASSAGES; i++)
            whole = whole && is_finite(r->in[i] + s * each[i], each[i]);
        for (int i = QUERIES; i <= PASSAGES; i++)
            enter(r->in[i] + s * each[i], r->out[i] + s * each[i], each[i], whole);
        r->out[IDS][s] = whole ? r->in[IDS][s] : -1;
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    for (int i = QUERIES; i <= IDS; i++)
        out[i] = (struct qn_operand){.dtype = call->in[i].dtype, .shape = call->in[i].shape};
}

#define VECTORS(n, d)                                                                              \
    {                                                                                              \
        .rank = 2, .dim = {(n), (d) }                                                              \
    }
#define IDS_OF(n)                                                                                  \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(n)}, .fill = QN_FILL_INTEGER,  \
        .b = 1000                                                                                  \
    }

static const double strange[] = {1, 2, INFINITY, 3, -4, 5, 6, 7, NAN, NAN, 8, 9};
static const double strange_end[] = {1, 2, 3, 4, 5, -INFINITY};

static const struct qn_check_case cases[] = {
    {"pairs", {VECTORS(5, 7), VECTORS(5, 7), IDS_OF(5)}, .small = true},
    {"hard negatives", {VECTORS(3, 65), VECTORS(9, 65), IDS_OF(3)}},
    {"one number", {VECTORS(1, 1), VECTORS(1, 1), IDS_OF(1)}},
    {"strange queries",
     {{.rank = 2, .dim = {4, 3}, .values = strange}, VECTORS(4, 3), IDS_OF(4)},
     .small = true},
    {"strange passages", {VECTORS(2, 3), {.rank = 2, .dim = {4, 3}, .values = strange}, IDS_OF(2)}},
    {"passages with a strange end",
     {VECTORS(1, 3), {.rank = 2, .dim = {2, 3}, .values = strange_end}, IDS_OF(1)}},
    {"many", {VECTORS(131, 257), VECTORS(262, 257), IDS_OF(131)}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"passages that are no multiple", {VECTORS(4, 5), VECTORS(6, 5), IDS_OF(4)}},
    {"other ids", {VECTORS(4, 5), VECTORS(4, 5), IDS_OF(5)}},
    {"ids of a float type", {VECTORS(4, 5), VECTORS(4, 5), {.rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_bank_entry = {.op = &qn_op_bank_entry,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = outputs};
