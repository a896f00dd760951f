/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <string.h>

extern const struct qn_op qn_op_embedding;
extern const struct qn_check_op qn_check_embedding;

static void reference(const struct qn_reference *r)
{
    const int64_t rows = r->call->in[1].shape.dim[0], n = r->call->in[1].shape.dim[1];
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++) {
        const double id = r->in[0][i];
        for (int64_t k = 0; k < n; k++)
            r->out[0][i * n + k] = id >= 0 && id < (double)rows ? r->in[1][(int64_t)id * n + k] : 0;
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].shape.dim[out[0].shape.rank++] = call->in[1].shape.dim[1];
}

/* Nothing is computed but the sums of the gradient. */
static double flops(const struct qn_call *call, const char *group)
{
    return strcmp(group, "forward") == 0 ? 0 : (double)qn_operand_count(&call->dout[0]);
}

#define IDS(type, from, to, ...)                                                                   \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_##type,                                                 \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = (from), .b = (to)                                            \
    }
#define LISTED(count, list)                                                                        \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {(count)}, .values = (list)      \
    }
#define TABLE(rows, n)                                                                             \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 2, .dim = {(rows), (n) }                                \
    }

static const double same[9] = {3, 3, 3, 3, 3, 3, 3, 3, 3},
                    no_rows[7] = {-1, 5, 4, 0, 2147483647, -2147483648.0, 64};

/* Rows of a full vector, with a few elements more, of less than a vector; more rows than a
 * work-item takes turns; rows that nobody asks for. */
static const struct qn_check_case cases[] = {
    {"tokens", .in = {IDS(I32, 0, 50, 3, 7), TABLE(50, 19)}},
    {"full vectors", .in = {IDS(I32, 0, 20, 4, 8), TABLE(20, 32)}},
    {"narrow rows", .in = {IDS(U8, 0, 200, 40), TABLE(200, 3)}},
    {"one column", .in = {IDS(U8, 0, 9, 5), TABLE(9, 1)}, .small = true, .f32_only = true},
    {"the same row", .in = {LISTED(9, same), TABLE(4, 17)}},
    {"one row", .in = {IDS(I32, 0, 1, 6, 1, 2), TABLE(1, 21)}},
    {"numbers of no row", .in = {LISTED(7, no_rows), TABLE(5, 18)}, .small = true},
    {"wide rows", .in = {IDS(I32, 0, 90, 65), TABLE(90, 515)}},
    {"more numbers than a range", .in = {IDS(I32, -1, 200, 33000), TABLE(199, 2)}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"numbers of a float type", .in = {{.rank = 1, .dim = {4}}, TABLE(4, 5)}},
    {"a table of one dimension",
     .in = {IDS(I32, 0, 4, 4), {.role = QN_ROLE_PARAMETER, .rank = 1, .dim = {5}}}},
    {"a table of integers", .in = {IDS(I32, 0, 4, 4), IDS(I32, 0, 4, 4, 5)}},
    {"too many dimensions", .in = {IDS(I32, 0, 4, 2, 1, 1, 1, 1, 1), TABLE(4, 5)}},
    {0},
};

const struct qn_check_op qn_check_embedding = {.op = &qn_op_embedding,
                                               .cases = cases,
                                               .reference = reference,
                                               .refused = refused,
                                               .outputs = outputs,
                                               .flops = flops};
