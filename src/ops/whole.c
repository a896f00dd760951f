/* SPDX-License-Identifier: MIT */
#include "ops/whole.h"

#include "base/shape.h"
#include "op/optimizer.h"
#include "ops/common.h"

struct qn_matrix qn_matrix_of(const struct qn_operand *parameter)
{
    const int64_t rows = parameter->shape.dim[0];
    return (struct qn_matrix){rows, qn_operand_count(parameter) / rows};
}

qn_status qn_whole_rows(struct qn_emit *emit, const struct qn_call *call,
                        const struct qn_matrix *matrix, struct qn_launch *launch, int arg)
{
    const struct qn_walk walk = qn_walk_rows(call, matrix->n);
    const int64_t span = qn_rows_per_team(&walk, matrix->n, matrix->rows);
    const struct qn_arg args[] = {QN_LONG(matrix->rows), QN_LONG(matrix->n), QN_INT(walk.lanes),
                                  QN_INT(span)};
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        launch->args[arg + (int)i] = args[i];
    launch->global[0] = qn_div_up(matrix->rows, span * (walk.group / walk.lanes)) * walk.group;
    launch->local[0] = walk.group;
    qn_launch_type(launch, "P", &call->in[0]);
    qn_walk_options(launch, &walk);
    qn_launch_aligned(launch, call, walk.vector, matrix->n);
    return qn_emit_launch(emit, launch);
}

qn_status qn_whole_group(struct qn_emit *emit, const struct qn_call *call, struct qn_launch *launch)
{
    const struct qn_walk walk = qn_walk_rows(call, QN_CHUNK);
    launch->global[0] = launch->local[0] = walk.group;
    qn_launch_type(launch, "P", &call->in[0]);
    qn_walk_options(launch, &walk);
    qn_launch_aligned(launch, call, walk.vector, 0);
    return qn_emit_launch(emit, launch);
}

struct qn_strip qn_whole_strip(const struct qn_matrix *matrix)
{
    struct qn_strip strip = {matrix->rows, matrix->n, QN_SUM_BLOCK, QN_SUM_WIDE};
    while (qn_div_up(strip.rows, strip.block) > QN_WHOLE_BLOCKS)
        strip.block *= 2;
    return strip;
}

struct qn_operand qn_whole_scratch(const struct qn_call *call, int64_t *taken, int64_t count)
{
    struct qn_operand some = call->scratch;
    qn_shape_set(&some, QN_F32, 1, &count);
    some.offset += *taken;
    *taken += count;
    return some;
}
