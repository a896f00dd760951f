/* SPDX-License-Identifier: MIT
 *
 * Batch norm over groups of samples (ghost batch norm: Hoffer et al. 2017, "Train longer,
 * generalize better"). The group is part of the model; recompute uses the saved statistics; the
 * running averages move once per update, with the averages over the whole effective batch. A
 * skipped update does not move them. The variance of a group of one element counts as 0. Where a
 * sample has several rows (tokens), a group has those of all its samples.
 *
 * A ReLU behind the norm is part of the same passes. Backward finds what it was given again, from x
 * and the saved statistics, and so needs neither that nor the result.
 */
#include "op/batch_norm.h"
#include "base/log.h"
#include "base/shape.h"
#include "ops/affine.h"
#include "ops/common.h"

#include <quern/ops.h>

enum { STATISTICS, NORMALISE, NORMALISE_EVAL, SUMS, INPUT_GRADIENT, AFFINE_GRADIENT, COMMIT };

/* Rows of a group of samples. */
static int64_t rows_of_group(const struct qn_batch_norm_attr *attr, const struct qn_operand *x,
                             int64_t batch)
{
    int64_t rows = attr->group * qn_rows_per_sample(x, batch);
    return rows < x->shape.dim[0] ? rows : x->shape.dim[0];
}

/* x as (rows, channels, inner); `group` counts rows. */
struct sizes {
    int64_t rows, channels, inner, group, groups, count;
};

static int has_relu(const void *attr)
{
    return ((const struct qn_batch_norm_attr *)attr)->relu;
}

static struct sizes sizes_of(const struct qn_call *call)
{
    const struct qn_shape *x = &call->in[0].shape;
    const int64_t group = rows_of_group(call->attr, &call->in[0], call->batch);
    return (struct sizes){.rows = x->dim[0],
                          .channels = x->dim[1],
                          .inner = qn_shape_span(x, 2, x->rank),
                          .group = group,
                          .groups = qn_div_up(x->dim[0], group),
                          .count = qn_shape_count(x)};
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_batch_norm_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x) || x->shape.rank < 2)
        return qn_shape_error(call, "batch norm takes (b, c, ...) of a float type");
    if (attr->group < 1 || !(attr->eps > 0) || !(attr->momentum > 0 && attr->momentum <= 1))
        return qn_shape_error(call, "the group is %d, eps %g, the momentum %g", attr->group,
                              (double)attr->eps, (double)attr->momentum);
    const int64_t channels = x->shape.dim[1];
    for (int i = 1; i <= 2; i++)
        if (qn_present(&call->in[i]) && !qn_is_row_of(&call->in[i], channels))
            return qn_shape_error(call, "weight and bias must have %lld elements, one a channel",
                                  (long long)channels);
    const int64_t grouped[] = {qn_div_up(x->shape.dim[0], rows_of_group(attr, x, call->batch)),
                               channels};
    qn_shape_set(&call->out[0], call->storage, x->shape.rank, x->shape.dim);
    for (int i = 0; i < 2; i++) {
        qn_shape_set(&call->saved[i], QN_F32, 2, grouped);
        qn_shape_set(&call->temp[i], QN_F32, 2, grouped);
        qn_shape_set(&call->state[i], QN_F32, 1, &channels);
        qn_shape_set(&call->gather[i], QN_F32, 1, &channels);
    }
    return QN_OK;
}

static int64_t batch_group(const void *attr)
{
    return ((const struct qn_batch_norm_attr *)attr)->group;
}

static bool commits_like(const void *a, const void *b)
{
    const struct qn_batch_norm_attr *x = a, *y = b;
    return x->momentum == y->momentum;
}

/* Backward reads that are for the ReLU's sake alone. */
static unsigned spared_sums(const void *attr)
{
    return has_relu(attr) ? 0 : 1u << 4 | 1u << 5;
}

static unsigned spared_input_gradient(const void *attr)
{
    return has_relu(attr) ? 0 : 1u << 7;
}

/* --- costs --- */

static void cost_of(const struct qn_call *call, int group, double flops_per_element, int launches,
                    struct qn_cost *cost)
{
    cost->flops = flops_per_element * (double)sizes_of(call).count;
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = launches;
}

static void statistics_cost(const struct qn_call *call, struct qn_cost *cost)
{
    struct sizes s = sizes_of(call);
    cost_of(call, STATISTICS, 4, s.groups > 1 ? 2 : 1, cost);
    cost->scratch = s.groups * s.channels * (int64_t)sizeof(float);
}

static void normalise_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, NORMALISE, 3 + has_relu(call->attr), 1, cost);
}

static void normalise_eval_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, NORMALISE_EVAL, 3 + has_relu(call->attr), 1, cost);
}

static void sums_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, SUMS, 4 + 3 * has_relu(call->attr), 1, cost);
}

static void input_gradient_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, INPUT_GRADIENT, 6 + 3 * has_relu(call->attr), 1, cost);
}

static void affine_gradient_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, AFFINE_GRADIENT, 0, 1, cost);
    cost->flops = 2 * (double)qn_operand_count(&call->temp[0]);
}

static void commit_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost->flops = 6 * (double)qn_operand_count(&call->state[0]);
    cost->bytes = qn_group_bytes(call, COMMIT);
    cost->launches = 1;
}

/* --- launches --- */

static void set_types(const struct qn_call *call, struct qn_launch *launch)
{
    qn_launch_type(launch, "X", &call->in[0]);
    qn_launch_type(launch, "Y", &call->out[0]);
    qn_launch_type(launch, "DX", &call->din[0]);
    qn_launch_type(launch, "DY", &call->dout[0]);
    qn_launch_type(launch, "W", &call->in[1]);
    qn_launch_type(launch, "B", &call->in[2]);
}

static qn_status emit_gather(struct qn_emit *emit, const struct qn_call *call)
{
    struct sizes s = sizes_of(call);
    struct qn_launch launch = {
        .program = "batch_norm",
        .kernel = "gather",
        .args = {QN_BUF(&call->saved[0]), QN_BUF(&call->scratch), QN_BUF(&call->gather[0]),
                 QN_BUF(&call->gather[1]), QN_INT(s.rows), QN_INT(s.channels), QN_INT(s.group),
                 QN_INT(qn_rows_per_sample(&call->in[0], call->batch)),
                 QN_FLOAT(call->beta_gather[0]), QN_FLOAT(call->beta_gather[1])},
        .global = {s.channels},
        .local = {64}};
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_statistics(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_batch_norm_attr *attr = call->attr;
    const struct sizes s = sizes_of(call);
    struct qn_walk walk = qn_walk_rows(call, s.inner);
    if (!call->cpu && s.inner == 1)
        walk.lanes = QN_SAMPLE_LANES;
    const int64_t tile = call->cpu ? qn_channel_tile(call->facts, s.channels, s.inner, s.groups)
                                   : walk.group / walk.lanes;
    struct qn_launch launch = {
        .program = "batch_norm",
        .kernel = "statistics",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->saved[0]), QN_BUF(&call->saved[1]),
                 QN_BUF(&call->scratch), QN_BUF(&call->gather[0]), QN_BUF(&call->gather[1]),
                 QN_INT(s.rows), QN_INT(s.channels), QN_INT(s.group), QN_LONG(s.inner),
                 QN_INT(tile), QN_INT(walk.lanes), QN_FLOAT(attr->eps), QN_INT(s.groups == 1),
                 QN_INT(qn_rows_per_sample(&call->in[0], call->batch)),
                 QN_FLOAT(call->beta_gather[0]), QN_FLOAT(call->beta_gather[1])},
        .global = {qn_div_up(s.channels, tile) * walk.group, s.groups},
        .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_aligned(&launch, call, walk.vector, s.inner);
    qn_launch_option(&launch, "QN_PLANES", s.inner > 1);
    set_types(call, &launch);
    QN_TRY(qn_emit_launch(emit, &launch));
    return s.groups > 1 ? emit_gather(emit, call) : QN_OK;
}

/* Runs of neighbours that belong together: planes, or where there are none the rows. */
struct runs {
    int64_t count, length, span;
    struct qn_walk walk;
};

static struct runs runs_of(const struct qn_call *call, const struct sizes *s)
{
    const bool planes = s->inner > 1;
    struct runs r = {.count = planes ? s->rows * s->channels : s->rows,
                     .length = planes ? s->inner : s->channels};
    r.walk = qn_walk_rows(call, r.length);
    r.span = qn_rows_per_team(&r.walk, r.length, r.count);
    return r;
}

static qn_status launch_runs(struct qn_emit *emit, const struct qn_call *call, const struct runs *r,
                             struct qn_launch *launch)
{
    const int64_t teams = r->walk.group / r->walk.lanes;
    launch->program = "batch_norm";
    launch->global[0] = qn_div_up(r->count, r->span * teams) * r->walk.group;
    launch->local[0] = r->walk.group;
    qn_walk_options(launch, &r->walk);
    qn_launch_aligned(launch, call, r->walk.vector, r->length);
    qn_launch_option(launch, "QN_PLANES", sizes_of(call).inner > 1);
    qn_launch_option(launch, "QN_RELU", has_relu(call->attr));
    set_types(call, launch);
    return qn_emit_launch(emit, launch);
}

static qn_status emit_normalise(struct qn_emit *emit, const struct qn_call *call, bool running)
{
    const struct qn_batch_norm_attr *attr = call->attr;
    const struct sizes s = sizes_of(call);
    const struct runs r = runs_of(call, &s);
    const struct qn_operand *statistic = running ? call->state : call->saved;
    struct qn_launch launch = {
        .kernel = "normalise",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&statistic[0]), QN_BUF(&statistic[1]),
                 QN_BUF(&call->in[1]), QN_BUF(&call->in[2]), QN_BUF(&call->out[0]),
                 QN_LONG(r.count), QN_LONG(s.channels), QN_LONG(running ? s.rows : s.group),
                 QN_LONG(s.inner), QN_INT(r.walk.lanes), QN_INT(r.span), QN_FLOAT(attr->eps),
                 QN_INT(qn_present(&call->in[1])), QN_INT(qn_present(&call->in[2]))}};
    qn_launch_option(&launch, "QN_RUNNING", running);
    return launch_runs(emit, call, &r, &launch);
}

static struct qn_affine affine_of(const struct qn_call *call)
{
    const struct sizes s = sizes_of(call);
    return (struct qn_affine){.samples = s.rows,
                              .groups = 1,
                              .channels = s.channels,
                              .inner = s.inner,
                              .each = s.group,
                              .by_part = true,
                              .relu = has_relu(call->attr),
                              .dy_sum = call->temp[0],
                              .dy_xhat_sum = call->temp[1]};
}

static qn_status emit_sums(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_affine affine = affine_of(call);
    return qn_affine_sums(emit, call, &affine);
}

static qn_status emit_input_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    const struct sizes s = sizes_of(call);
    const struct runs r = runs_of(call, &s);
    struct qn_launch launch = {
        .kernel = "input_gradient",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]),
                 QN_BUF(&call->saved[1]), QN_BUF(&call->temp[0]), QN_BUF(&call->temp[1]),
                 QN_BUF(&call->in[1]), QN_BUF(&call->in[2]), QN_BUF(&call->din[0]), QN_LONG(s.rows),
                 QN_LONG(r.count), QN_LONG(s.channels), QN_LONG(s.group), QN_LONG(s.inner),
                 QN_INT(r.walk.lanes), QN_INT(r.span), QN_INT(qn_present(&call->in[1])),
                 QN_INT(qn_present(&call->in[2])), QN_FLOAT(call->beta_in[0])}};
    return launch_runs(emit, call, &r, &launch);
}

static qn_status normalise(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_normalise(emit, call, false);
}

static qn_status normalise_eval(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_normalise(emit, call, true);
}

static qn_status affine_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_affine affine = affine_of(call);
    return qn_affine_gradient(emit, call, &affine);
}

static qn_status commit(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_batch_norm_attr *attr = call->attr;
    const int64_t channels = call->state[0].shape.dim[0];
    struct qn_launch launch = {.program = "batch_norm",
                               .kernel = "commit",
                               .args = {QN_BUF(&call->control), QN_BUF(&call->gather[0]),
                                        QN_BUF(&call->gather[1]), QN_BUF(&call->state[0]),
                                        QN_BUF(&call->state[1]), QN_INT(channels),
                                        QN_FLOAT(attr->momentum)},
                               .global = {channels},
                               .local = {64}};
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_batch_norm = {
    .name = "batch_norm",
    .attr_size = sizeof(struct qn_batch_norm_attr),
    .n_in = 3,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MUST},
    .shape = shape,
    .batch_group = batch_group,
    .state = {{"running_mean", 0}, {"running_var", 1}},
    .commits_like = commits_like,
    .groups = {
        [STATISTICS] = {.name = "statistics",
                        .phase = QN_PHASE_TRAIN,
                        .read = {{QN_IN(0)}},
                        .write = {{QN_SAVED(0)}, {QN_SAVED(1)}, {QN_GATHER(0)}, {QN_GATHER(1)}},
                        .once = true,
                        .variant =
                            QN_BOTH_SHAPES(qn_fits_row_group, statistics_cost, emit_statistics)},
        [NORMALISE] = {.name = "normalise",
                       .phase = QN_PHASE_TRAIN,
                       .read = {{QN_IN(0)}, {QN_SAVED(0)}, {QN_SAVED(1)}, {QN_IN(1)}, {QN_IN(2)}},
                       .write = {{QN_OUT(0), QN_IN(0)}},
                       .variant = QN_BOTH_SHAPES(qn_fits_row_group, normalise_cost, normalise)},
        [NORMALISE_EVAL] =
            {
                .name = "normalise (running averages)",
                .phase = QN_PHASE_EVAL,
                .read = {{QN_IN(0)}, {QN_STATE(0)}, {QN_STATE(1)}, {QN_IN(1)}, {QN_IN(2)}},
                .write = {{QN_OUT(0), QN_IN(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, normalise_eval_cost, normalise_eval)},
        [SUMS] = {.name = "sums",
                  .phase = QN_PHASE_BACKWARD,
                  .read = {{QN_IN(0)},
                           {QN_DOUT(0)},
                           {QN_SAVED(0)},
                           {QN_SAVED(1)},
                           {QN_IN(1)},
                           {QN_IN(2)}},
                  .spares = spared_sums,
                  .write = {{QN_TEMP(0)}, {QN_TEMP(1)}},
                  .variant = QN_BOTH_SHAPES(qn_fits_row_group, sums_cost, emit_sums)},
        [INPUT_GRADIENT] = {.name = "input gradient",
                            .phase = QN_PHASE_BACKWARD,
                            .read = {{QN_IN(0)},
                                     {QN_DOUT(0)},
                                     {QN_SAVED(0)},
                                     {QN_SAVED(1)},
                                     {QN_TEMP(0)},
                                     {QN_TEMP(1)},
                                     {QN_IN(1)},
                                     {QN_IN(2)}},
                            .spares = spared_input_gradient,
                            .write = {{QN_DIN(0), QN_DOUT(0)}},
                            .variant = QN_BOTH_SHAPES(qn_fits_row_group, input_gradient_cost,
                                                      emit_input_gradient)},
        [AFFINE_GRADIENT] = {.name = "affine gradient",
                             .phase = QN_PHASE_BACKWARD,
                             .read = {{QN_TEMP(0)}, {QN_TEMP(1)}},
                             .write = {{QN_DIN(1)}, {QN_DIN(2)}},
                             .variant = {{"any", NULL, affine_gradient_cost, affine_gradient}}},
        [COMMIT] = {.name = "commit",
                    .phase = QN_PHASE_UPDATE,
                    .read = {{QN_GATHER(0)}, {QN_GATHER(1)}, {QN_STATE(0)}, {QN_STATE(1)}},
                    .write = {{QN_STATE(0)}, {QN_STATE(1)}},
                    .variant = {{"any", NULL, commit_cost, commit}}},
    }};

enum { ENOUGH_SAMPLES = 8 }; /* that running averages are like those of a group */

qn_tensor qn_batch_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                        const qn_batch_norm_params *params)
{
    const qn_batch_norm_params none = {0};
    params = params ? params : &none;
    const struct qn_batch_norm_attr attr = {
        .group = params->group ? params->group : 16,
        .eps = (float)(params->eps != 0 ? params->eps : 1e-5),
        .momentum = (float)(params->momentum != 0 ? params->momentum : 0.1),
        .relu = params->relu};
    if (attr.group > 0 && attr.group < ENOUGH_SAMPLES)
        qn_op_warn(graph,
                   "batch norm of groups of %d: with less than %d samples together an evaluation, "
                   "by running averages, may be far from the training; group norm is not",
                   attr.group, ENOUGH_SAMPLES);
    return qn_op_apply(graph, &qn_op_batch_norm, (const qn_tensor[]){x, weight, bias}, &attr);
}
