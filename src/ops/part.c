/* SPDX-License-Identifier: MIT */
#include "ops/part.h"

#include "base/shape.h"
#include "ops/common.h"

/* Elements of a piece of a long block, a multiple of all vectors; short blocks of a work-group
 * together have about as many. */
enum { PIECE = 8192 };

/* As in cl_kernels/blocks.cl. */
struct blocks {
    struct qn_operand x, y;
    int64_t x_step, y_step, before, n, after;
};

static qn_status copy(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p,
                      const struct blocks *b)
{
    const int64_t count = qn_shape_span(&p->whole->shape, 0, p->axis);
    const int64_t room = b->before + b->n + b->after, span = qn_div_up(PIECE, room);
    const struct qn_walk walk = qn_walk_rows(call, room);
    struct qn_launch launch = {
        .program = "blocks",
        .kernel = "copy_blocks",
        .args = {QN_BUF(&b->x), QN_BUF(&b->y), QN_LONG(count), QN_LONG(b->x_step),
                 QN_LONG(b->y_step), QN_LONG(b->before), QN_LONG(b->n), QN_LONG(b->after),
                 QN_LONG(PIECE), QN_LONG(span), QN_INT(walk.lanes), QN_FLOAT(p->beta)},
        .global = {qn_div_up(count, span) * qn_div_up(room, PIECE) * walk.group},
        .local = {walk.group},
    };
    qn_launch_type(&launch, "X", &b->x);
    qn_launch_type(&launch, "Y", &b->y);
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

/* Elements of a tensor at one place of the dimensions before `first`. */
static int64_t elements_from(const struct qn_operand *operand, int first)
{
    return qn_shape_span(&operand->shape, first, operand->shape.rank);
}

/* Elements of a block of the whole before those of the part. */
static int64_t before_part(const struct qn_part *p)
{
    return p->start * elements_from(p->whole, p->axis + 1);
}

/* The whole from the first element of the part on. */
static struct qn_operand from_part(const struct qn_part *p)
{
    struct qn_operand rest = *p->whole;
    const int64_t before = before_part(p);
    qn_shape_set(&rest, rest.dtype, 1, &(int64_t){qn_operand_count(&rest) - before});
    rest.offset += before;
    return rest;
}

qn_status qn_part_take(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p)
{
    const int64_t n = elements_from(p->part, p->axis);
    const struct blocks b = {.x = from_part(p),
                             .y = *p->part,
                             .x_step = elements_from(p->whole, p->axis),
                             .y_step = n,
                             .n = n};
    return copy(emit, call, p, &b);
}

qn_status qn_part_put(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p)
{
    const int64_t n = elements_from(p->part, p->axis);
    const struct blocks b = {.x = *p->part,
                             .y = from_part(p),
                             .x_step = n,
                             .y_step = elements_from(p->whole, p->axis),
                             .n = n};
    return copy(emit, call, p, &b);
}

qn_status qn_part_spread(struct qn_emit *emit, const struct qn_call *call, const struct qn_part *p)
{
    const int64_t n = elements_from(p->part, p->axis), room = elements_from(p->whole, p->axis);
    const int64_t before = before_part(p);
    const struct blocks b = {.x = *p->part,
                             .y = *p->whole,
                             .x_step = n,
                             .y_step = room,
                             .before = before,
                             .n = n,
                             .after = room - before - n};
    return copy(emit, call, p, &b);
}
