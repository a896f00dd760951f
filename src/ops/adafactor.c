/* SPDX-License-Identifier: MIT
 *
 * Adafactor (Shazeer and Stern 2018, arXiv:1804.04235) without a first moment: the second moments
 * of a matrix are the product of those of its rows and of its columns, each kept as a vector; a
 * vector keeps its own. The step is limited to a root mean square of 1, and is relative to the
 * parameter's own.
 *
 * The learning rate is the most that the relative step 1 / sqrt(t) may be, and weight decay is
 * decoupled and times the learning rate, both as in torch.optim.Adafactor. eps is added to the
 * squares of gradients as in the paper; PyTorch puts it under divisions instead, which is the same
 * where gradients are not 0.
 */
#include "base/log.h"
#include "ops/common.h"
#include "ops/update.h"
#include "ops/whole.h"

enum { OF_ROWS, OF_COLUMNS, OF_VECTOR };

static bool is_matrix(const struct qn_operand *parameter)
{
    return parameter->shape.rank > 1;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *parameter = &call->in[0];
    const int64_t count = qn_operand_count(parameter);
    QN_TRY(qn_update_inputs(call));
    if (!is_matrix(parameter)) {
        qn_shape_set(&call->state[OF_VECTOR], QN_F32, 1, &count);
        return QN_OK;
    }
    const struct qn_matrix matrix = qn_matrix_of(parameter);
    qn_shape_set(&call->state[OF_ROWS], QN_F32, 1, &matrix.rows);
    qn_shape_set(&call->state[OF_COLUMNS], QN_F32, 1, &matrix.n);
    return QN_OK;
}

/* What the launches of a matrix share; see cl_kernels/adafactor.cl. */
struct step {
    struct qn_matrix matrix;
    struct qn_strip strip;
    struct qn_operand known, squares, sums, part; /* in scratch */
    int64_t taken;                                /* floats of scratch */
};

/* The long ones first, so that vectors of them are aligned where those of the matrix are. */
static struct step step_of(const struct qn_call *call)
{
    struct step s = {.matrix = qn_matrix_of(&call->in[0])};
    s.strip = qn_whole_strip(&s.matrix);
    const int64_t blocks = (s.matrix.rows + s.strip.block - 1) / s.strip.block;
    s.part = qn_whole_scratch(call, &s.taken, blocks * s.matrix.n);
    s.sums = qn_whole_scratch(call, &s.taken, s.matrix.n);
    s.squares = qn_whole_scratch(call, &s.taken, s.matrix.rows);
    s.known = qn_whole_scratch(call, &s.taken, 3);
    return s;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 20, result);
    if (!is_matrix(&call->in[0]))
        return;
    result->launches = 7;
    result->scratch = step_of(call).taken * (int64_t)sizeof(float);
}

static float eps_of(const struct qn_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    return (float)attr->eps;
}

/* --- the launches --- */

static qn_status measure_rows(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {.program = "adafactor",
                               .kernel = "measure_rows",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->control), QN_BUF(&call->state[OF_ROWS]),
                                        QN_BUF(&s->squares), [9] = QN_FLOAT(eps_of(call))}};
    return qn_whole_rows(emit, call, &s->matrix, &launch, 5);
}

static qn_status measure_columns(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {.program = "adafactor",
                               .kernel = "measure_columns",
                               .args = {QN_BUF(&call->in[1]), QN_BUF(&call->control),
                                        QN_BUF(&s->part), QN_LONG(s->matrix.rows),
                                        QN_LONG(s->matrix.n)}};
    qn_launch_type(&launch, "P", &call->in[0]);
    qn_strip_range(&launch, call, &s->strip);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_strip_sum(emit, call, &s->part, &s->sums, 0);
}

static qn_status measure_whole(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {
        .program = "adafactor",
        .kernel = "measure_whole",
        .args = {QN_BUF(&call->in[2]), QN_BUF(&call->control), QN_BUF(&call->state[OF_ROWS]),
                 QN_BUF(&call->state[OF_COLUMNS]), QN_BUF(&s->squares), QN_BUF(&s->sums),
                 QN_BUF(&s->known), QN_LONG(s->matrix.rows), QN_LONG(s->matrix.n),
                 QN_FLOAT(eps_of(call))}};
    return qn_whole_group(emit, call, &launch);
}

static qn_status measure_steps(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch rows = {
        .program = "adafactor",
        .kernel = "measure_steps",
        .args = {QN_BUF(&call->in[1]), QN_BUF(&call->control), QN_BUF(&call->state[OF_ROWS]),
                 QN_BUF(&call->state[OF_COLUMNS]), QN_BUF(&s->known), QN_BUF(&s->squares)}};
    struct qn_launch whole = {.program = "adafactor",
                              .kernel = "limit",
                              .args = {QN_BUF(&call->control), QN_BUF(&s->squares),
                                       QN_BUF(&s->known), QN_LONG(s->matrix.rows),
                                       QN_LONG(s->matrix.n)}};
    QN_TRY(qn_whole_rows(emit, call, &s->matrix, &rows, 6));
    return qn_whole_group(emit, call, &whole);
}

static qn_status apply(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {
        .program = "adafactor",
        .kernel = "apply",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->control), QN_BUF(&call->state[OF_ROWS]),
                 QN_BUF(&call->state[OF_COLUMNS]), QN_BUF(&s->known), QN_BUF(&call->out[0])}};
    return qn_whole_rows(emit, call, &s->matrix, &launch, 8);
}

static qn_status update_matrix(struct qn_emit *emit, const struct qn_call *call)
{
    struct step s = step_of(call);
    QN_TRY(measure_rows(emit, call, &s));
    QN_TRY(measure_columns(emit, call, &s));
    QN_TRY(measure_whole(emit, call, &s));
    QN_TRY(measure_steps(emit, call, &s));
    return apply(emit, call, &s);
}

static qn_status update_vector(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {
        .program = "adafactor",
        .kernel = "vector",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->control), QN_BUF(&call->state[OF_VECTOR]), QN_BUF(&call->out[0]),
                 QN_LONG(qn_operand_count(&call->in[0])), QN_FLOAT(eps_of(call))}};
    return qn_whole_group(emit, call, &launch);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    return is_matrix(&call->in[0]) ? update_matrix(emit, call) : update_vector(emit, call);
}

/* The betas are not used. */
static const struct qn_optimizer_attr defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-30};

const struct qn_op qn_op_adafactor = {
    .name = "adafactor",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .whole = true,
    .defaults = &defaults,
    .state = {{"exp_avg_sq_row"}, {"exp_avg_sq_col"}, {"exp_avg_sq"}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)},
                         {QN_IN(1)},
                         {QN_IN(2)},
                         {QN_STATE(OF_ROWS)},
                         {QN_STATE(OF_COLUMNS)},
                         {QN_STATE(OF_VECTOR)}},
                .write = {{QN_OUT(0), QN_IN(0)},
                          {QN_STATE(OF_ROWS)},
                          {QN_STATE(OF_COLUMNS)},
                          {QN_STATE(OF_VECTOR)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, step)}}};
