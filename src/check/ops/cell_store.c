/* SPDX-License-Identifier: MIT */
#include "check/rows.h"
#include "op/cell.h"

extern const struct qn_op qn_op_cell_store;
extern const struct qn_check_op qn_check_cell_store;

static void reference(const struct qn_reference *r)
{
    const struct qn_cell_attr *attr = r->call->attr;
    const int64_t row = qn_operand_count(&r->call->in[0]) / r->call->in[0].shape.dim[0];
    const int64_t first = (int64_t)r->control->position[attr->slot];
    for (int64_t i = 0; i < attr->rows * row; i++)
        r->new_state[0][i] = r->state[0][i];
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->new_state[0][(first + i / row) % attr->rows * row + i % row] = r->in[0][i];
}

static const struct qn_cell_attr samples = {64, 0}, ring = {48, 1}, full = {7, 0}, none = {0, 0};

/* Each row is read and written. */
static double moved_bytes(const struct qn_call *call)
{
    return 2 * (double)qn_operand_bytes(&call->in[0]);
}

#define ROWS(...) QN_CHECK_ROWS(QN_F32, __VA_ARGS__)

static const struct qn_check_case cases[] = {
    {"from the start", ROWS(7, 5), &samples, .control = &qn_check_start, .small = true},
    {"in the middle", ROWS(7, 5), &samples, .control = &qn_check_ninth, .small = true},
    {"round the end of a ring", ROWS(7, 5), &ring, .control = &qn_check_late, .small = true},
    {"all rows of a ring", ROWS(7, 33), &full, .control = &qn_check_late},
    {"one element", ROWS(1, 1), &ring, .control = &qn_check_late},
    {"two bytes an element", QN_CHECK_ROWS(QN_BF16, 7, 5), &ring, .control = &qn_check_late},
    {"whole numbers", QN_CHECK_ROWS(QN_I32, 7, 5), &ring, .control = &qn_check_late},
    {0},
};

static const struct qn_check_case refused[] = {
    {"one byte an element", QN_CHECK_ROWS(QN_U8, 4, 5), &ring},
    {"more rows than the cell", ROWS(8, 5), &full},
    {"no rows", ROWS(8, 5), &none},
    {0}};

const struct qn_check_op qn_check_cell_store = {.op = &qn_op_cell_store,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .flops = qn_check_no_flops,
                                                .bytes = moved_bytes};
