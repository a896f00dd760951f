/* SPDX-License-Identifier: MIT */
#include "ops/affine.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"

/* CPU shape: elements that lie side by side, which a work-item takes of each sample. Fewer where
 * the work-items would be less than so many for each compute unit. */
enum { TILE_ELEMENTS = 1024, ITEMS_PER_UNIT = 4 };
/* GPU shape: vectors of parameters of a work-group; in f32 their bytes of a row fill a line of the
 * cache. */
enum { COLUMNS = 8 };

int64_t qn_affine_parts(const struct qn_affine *affine)
{
    return qn_div_up(affine->samples, affine->each);
}

int64_t qn_channel_tile(const struct qn_facts *facts, int64_t channels, int64_t inner, int64_t rows)
{
    const int64_t wanted = ITEMS_PER_UNIT * (int64_t)facts->compute_units;
    const int64_t most = inner < TILE_ELEMENTS ? TILE_ELEMENTS / inner : 1;
    const int64_t least = inner > 1 ? 1 : facts->vector_width;
    const int64_t fair = qn_round_up(qn_div_up(channels * rows, wanted), least);
    return fair < most ? fair : most;
}

bool qn_affine_in_columns(const struct qn_call *call, int64_t channels, int64_t inner)
{
    return !call->cpu && inner == 1 && channels % qn_walk_rows(call, channels).vector == 0;
}

/* Parameters of a work-group. */
static int64_t parameters_of_group(const struct qn_call *call, const struct qn_affine *a,
                                   const struct qn_walk *walk)
{
    if (call->cpu)
        return qn_channel_tile(call->facts, a->groups * a->channels, a->inner, qn_affine_parts(a));
    if (qn_affine_in_columns(call, a->channels, a->inner))
        return COLUMNS * walk->vector;
    return walk->group / walk->lanes;
}

qn_status qn_affine_sums(struct qn_emit *emit, const struct qn_call *call,
                         const struct qn_affine *a)
{
    static const struct qn_operand none;
    const struct qn_operand *weight = a->relu ? &call->in[1] : &none;
    const struct qn_operand *bias = a->relu ? &call->in[2] : &none;
    const int64_t parameters = a->groups * a->channels, parts = qn_affine_parts(a);
    struct qn_walk walk = qn_walk_rows(call, a->inner);
    if (!call->cpu && a->inner == 1)
        walk.lanes = QN_SAMPLE_LANES;
    const int64_t tile = parameters_of_group(call, a, &walk);
    struct qn_launch launch = {
        .program = "affine",
        .kernel = "affine_sums",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]),
                 QN_BUF(&call->saved[1]), QN_BUF(weight), QN_BUF(bias), QN_BUF(&a->dy_sum),
                 QN_BUF(&a->dy_xhat_sum), QN_LONG(a->samples), QN_LONG(a->groups),
                 QN_LONG(a->channels), QN_LONG(a->inner), QN_LONG(a->each), QN_LONG(tile),
                 QN_INT(walk.lanes), QN_INT(qn_present(weight)), QN_INT(qn_present(bias)),
                 QN_FLOAT(a->beta_dy), QN_FLOAT(a->beta_dy_xhat)},
        .global = {qn_div_up(parameters, tile) * walk.group, parts},
        .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_aligned(&launch, call, walk.vector, a->inner > 1 ? a->inner : a->channels);
    if (qn_affine_in_columns(call, a->channels, a->inner))
        qn_launch_option(&launch, "QN_COLUMNS", COLUMNS);
    qn_launch_option(&launch, "QN_PLANES", a->inner > 1);
    qn_launch_option(&launch, "QN_BY_PART", a->by_part);
    qn_launch_option(&launch, "QN_RELU", a->relu);
    qn_launch_option(&launch, "QN_RMS", a->rms);
    qn_launch_option(&launch, "QN_SUMS",
                     (qn_present(&a->dy_sum) ? 1 : 0) + (qn_present(&a->dy_xhat_sum) ? 2 : 0));
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    qn_launch_type(&launch, "W", weight);
    qn_launch_type(&launch, "B", bias);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_affine_gradient(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_affine *a)
{
    const int64_t parameters = a->groups * a->channels;
    struct qn_launch launch = {
        .program = "affine",
        .kernel = "affine_gradient",
        .args = {QN_BUF(&a->dy_sum), QN_BUF(&a->dy_xhat_sum), QN_BUF(&call->din[1]),
                 QN_BUF(&call->din[2]), QN_LONG(qn_affine_parts(a)), QN_LONG(parameters),
                 QN_INT(qn_present(&call->din[1])), QN_INT(qn_present(&call->din[2])),
                 QN_FLOAT(call->beta_in[1]), QN_FLOAT(call->beta_in[2])},
        .global = {parameters},
        .local = {64}};
    qn_launch_option(&launch, "QN_RMS", a->rms);
    qn_launch_type(&launch, "DW", &call->din[1]);
    qn_launch_type(&launch, "DB", &call->din[2]);
    return qn_emit_launch(emit, &launch);
}
