/* SPDX-License-Identifier: MIT */
#include "ops/row_norm.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/affine.h"
#include "ops/common.h"

enum { FORWARD, AFFINE_GRADIENT };

/* The parts of the samples whose affine sums are made apart: so many for each compute unit, of so
 * many samples at least, as far as the scratch goes. A GPU adds up 1,024 rows of a column in about
 * the time of the second launch that parts need. */
enum { PARTS_PER_UNIT = 8, PART_SAMPLES = 16, PART_SAMPLES_GPU = 1024, PART_BYTES = 1 << 20 };

void qn_row_norm_set(struct qn_shape_call *call, int kept, const int64_t *rows)
{
    const struct qn_operand *x = &call->in[0];
    qn_shape_set(&call->out[0], call->storage, x->shape.rank, x->shape.dim);
    qn_shape_set(&call->saved[1], QN_F32, kept, rows);
}

void qn_row_norm_set_mean(struct qn_shape_call *call, int kept, const int64_t *rows)
{
    qn_shape_set(&call->saved[0], QN_F32, kept, rows);
    call->saved[0].shape.rank = kept + 1;
    call->saved[0].shape.dim[kept] = 2;
}

/* --- costs --- */

/* Sums of a parameter over a part: of dy * xhat, and of dy for the bias. */
static int64_t sums_of(const struct qn_row_norm *norm)
{
    return norm->rms ? 1 : 2;
}

static int64_t samples_of_part(const struct qn_call *call, const struct qn_row_norm *norm)
{
    const bool columns = qn_affine_in_columns(call, norm->channels, norm->inner);
    const int64_t least = columns ? PART_SAMPLES_GPU : PART_SAMPLES;
    const int64_t sums = sums_of(norm) * norm->groups * norm->channels * (int64_t)sizeof(float);
    int64_t parts = PARTS_PER_UNIT * (int64_t)call->facts->compute_units;
    parts = parts * sums > PART_BYTES ? PART_BYTES / sums : parts;
    const int64_t each = qn_div_up(norm->samples, parts > 1 ? parts : 1);
    return each < least ? least : each;
}

static int64_t parts_of(const struct qn_call *call, const struct qn_row_norm *norm)
{
    return qn_div_up(norm->samples, samples_of_part(call, norm));
}

void qn_row_norm_forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, FORWARD, 9, &call->in[0], cost);
}

void qn_row_norm_input_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, AFFINE_GRADIENT + 1, 14, &call->in[0], cost);
}

void qn_row_norm_affine_cost(const struct qn_call *call, const struct qn_row_norm *norm,
                             struct qn_cost *cost)
{
    cost->flops = 6 * (double)qn_operand_count(&call->in[0]);
    const int64_t parts = parts_of(call, norm);
    cost->launches = parts > 1 ? 2 : 1;
    if (parts > 1)
        cost->scratch =
            sums_of(norm) * parts * norm->groups * norm->channels * (int64_t)sizeof(float);
    cost->bytes = qn_group_bytes(call, AFFINE_GRADIENT) + 2 * (double)cost->scratch;
}

/* --- launches --- */

/* How rows are walked: `across` work-items share a run of neighbouring elements. */
struct rows {
    struct qn_walk walk;
    int64_t count, across, span;
};

static struct rows rows_of(const struct qn_call *call, const struct qn_row_norm *norm)
{
    const int64_t n = norm->channels * norm->inner;
    struct rows r = {.walk = qn_walk_rows(call, n), .count = norm->samples * norm->groups};
    r.across = norm->inner > 1 ? qn_walk_rows(call, norm->inner).lanes : r.walk.lanes;
    r.span = qn_rows_per_team(&r.walk, n, r.count);
    return r;
}

static qn_status launch_rows(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_row_norm *norm, const struct rows *r,
                             struct qn_launch *launch)
{
    const int64_t teams = r->walk.group / r->walk.lanes;
    launch->program = "row_norm";
    launch->global[0] = qn_div_up(r->count, r->span * teams) * r->walk.group;
    launch->local[0] = r->walk.group;
    qn_walk_options(launch, &r->walk);
    qn_launch_aligned(launch, call, r->walk.vector, norm->inner > 1 ? norm->inner : norm->channels);
    qn_launch_option(launch, "QN_PLANES", norm->inner > 1);
    qn_launch_option(launch, "QN_RMS", norm->rms);
    return qn_emit_launch(emit, launch);
}

qn_status qn_row_norm_forward(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_row_norm *norm)
{
    const struct rows r = rows_of(call, norm);
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_BUF(&call->saved[1]),
                 QN_LONG(r.count), QN_LONG(norm->groups), QN_LONG(norm->channels),
                 QN_LONG(norm->inner), QN_INT(r.walk.lanes), QN_INT(r.across), QN_INT(r.span),
                 QN_FLOAT(norm->eps), QN_INT(qn_present(&call->in[1])),
                 QN_INT(qn_present(&call->in[2])), QN_INT(qn_present(&call->saved[1]))}};
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "W", &call->in[1]);
    qn_launch_type(&launch, "B", &call->in[2]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    return launch_rows(emit, call, norm, &r, &launch);
}

qn_status qn_row_norm_input(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_row_norm *norm)
{
    const struct rows r = rows_of(call, norm);
    struct qn_launch launch = {
        .kernel = "input_gradient",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->dout[0]), QN_BUF(&call->in[1]),
                 QN_BUF(&call->saved[0]), QN_BUF(&call->saved[1]), QN_BUF(&call->din[0]),
                 QN_LONG(r.count), QN_LONG(norm->groups), QN_LONG(norm->channels),
                 QN_LONG(norm->inner), QN_INT(r.walk.lanes), QN_INT(r.across), QN_INT(r.span),
                 QN_INT(qn_present(&call->in[1])), QN_FLOAT(call->beta_in[0])}};
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "W", &call->in[1]);
    qn_launch_type(&launch, "DX", &call->din[0]);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    return launch_rows(emit, call, norm, &r, &launch);
}

/* The scratch as arrays of `count` elements. */
static struct qn_operand scratch_array(const struct qn_call *call, int index, int64_t count)
{
    struct qn_operand array = call->scratch;
    array.offset += index * count;
    array.shape = (struct qn_shape){1, {count}};
    return array;
}

qn_status qn_row_norm_affine(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_row_norm *norm)
{
    const int64_t sums = parts_of(call, norm) * norm->groups * norm->channels;
    struct qn_affine affine = {.samples = norm->samples,
                               .groups = norm->groups,
                               .channels = norm->channels,
                               .inner = norm->inner,
                               .each = samples_of_part(call, norm),
                               .rms = norm->rms};
    if (qn_affine_parts(&affine) == 1) { /* the sums are the gradients */
        affine.dy_sum = call->din[2];
        affine.dy_xhat_sum = call->din[1];
        affine.beta_dy = call->beta_in[2];
        affine.beta_dy_xhat = call->beta_in[1];
        return qn_affine_sums(emit, call, &affine);
    }
    affine.dy_xhat_sum = scratch_array(call, 0, sums);
    if (!norm->rms)
        affine.dy_sum = scratch_array(call, 1, sums);
    QN_TRY(qn_affine_sums(emit, call, &affine));
    return qn_affine_gradient(emit, call, &affine);
}
