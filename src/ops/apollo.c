/* SPDX-License-Identifier: MIT
 *
 * APOLLO-Mini (Zhu et al. 2024, arXiv:2412.05270), APOLLO of rank 1: Adam's moments of the
 * projection of a matrix's gradient on one random vector along the shorter side, and the gradient
 * scaled as a whole by how Adam would scale the projection. Weight decay is decoupled. A vector is
 * left to adamw.
 *
 * The moments' bias is corrected in the scale, as in the paper; the authors' program corrects the
 * learning rate, after the limit to the growth of the scaled gradient.
 */
#include "base/log.h"
#include "ops/common.h"
#include "ops/update.h"
#include "ops/whole.h"

enum { FIRST, SECOND, BEFORE };

/* What the launches share; see cl_kernels/apollo.cl. */
struct step {
    struct qn_matrix matrix;
    bool tall; /* the columns are the shorter side */
    struct qn_strip strip;
    int64_t items;                                 /* of a row block of the strip */
    struct qn_operand factor, x, q, squares, part; /* in scratch; no part if it is tall */
    int64_t taken;                                 /* floats of scratch */
};

static bool is_tall(const struct qn_matrix *matrix)
{
    return matrix->rows >= matrix->n;
}

static int64_t longer(const struct qn_matrix *matrix)
{
    return is_tall(matrix) ? matrix->rows : matrix->n;
}

static qn_status shape(struct qn_shape_call *call)
{
    QN_TRY(qn_update_inputs(call));
    if (call->in[0].shape.rank < 2)
        return qn_shape_error(call, "the parameter must be a matrix");
    const struct qn_matrix matrix = qn_matrix_of(&call->in[0]);
    const int64_t length = longer(&matrix);
    qn_shape_set(&call->state[FIRST], QN_F32, 1, &length);
    qn_shape_set(&call->state[SECOND], QN_F32, 1, &length);
    qn_shape_set(&call->state[BEFORE], QN_F32, 1, &(int64_t){1});
    return QN_OK;
}

/* The long ones first, so that vectors of them are aligned where those of the matrix are. */
static struct step step_of(const struct qn_call *call)
{
    struct step s = {.matrix = qn_matrix_of(&call->in[0])};
    const int64_t length = longer(&s.matrix);
    s.tall = is_tall(&s.matrix);
    s.strip = qn_whole_strip(&s.matrix);
    s.items = qn_strip_items(call, &s.strip);
    const int64_t blocks = (s.matrix.rows + s.strip.block - 1) / s.strip.block;
    s.x = qn_whole_scratch(call, &s.taken, s.tall ? s.matrix.n : s.matrix.rows);
    s.q = qn_whole_scratch(call, &s.taken, length);
    s.squares = qn_whole_scratch(call, &s.taken, s.tall ? s.matrix.rows : blocks * s.items);
    if (!s.tall)
        s.part = qn_whole_scratch(call, &s.taken, blocks * length);
    s.factor = qn_whole_scratch(call, &s.taken, 1);
    return s;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    const struct step s = step_of(call);
    qn_update_cost(call, 8, result);
    result->launches = s.tall ? 4 : 5;
    result->scratch = s.taken * (int64_t)sizeof(float);
}

/* --- the launches --- */

static qn_status draw(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    const int64_t m = qn_operand_count(&s->x);
    const struct qn_walk walk = qn_walk_rows(call, QN_CHUNK);
    struct qn_launch launch = {
        .program = "apollo",
        .kernel = "draw",
        .args = {QN_BUF(&call->in[2]), QN_BUF(&call->control), QN_BUF(&s->x), QN_LONG(m)},
        .global = {(m + 3) / 4},
        .local = {walk.group}};
    qn_launch_type(&launch, "P", &call->in[0]);
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

static qn_status project_rows(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {.program = "apollo",
                               .kernel = "project_rows",
                               .args = {QN_BUF(&call->in[1]), QN_BUF(&call->control), QN_BUF(&s->x),
                                        QN_BUF(&s->q), QN_BUF(&s->squares)}};
    return qn_whole_rows(emit, call, &s->matrix, &launch, 5);
}

static qn_status project_columns(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {.program = "apollo",
                               .kernel = "project_columns",
                               .args = {QN_BUF(&call->in[1]), QN_BUF(&call->control), QN_BUF(&s->x),
                                        QN_BUF(&s->part), QN_BUF(&s->squares),
                                        QN_LONG(s->matrix.rows), QN_LONG(s->matrix.n),
                                        QN_LONG(s->items)}};
    qn_launch_type(&launch, "P", &call->in[0]);
    qn_strip_range(&launch, call, &s->strip);
    QN_TRY(qn_emit_launch(emit, &launch));
    return qn_strip_sum(emit, call, &s->part, &s->q, 0);
}

static qn_status move_moments(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {
        .program = "apollo",
        .kernel = "moments",
        .args = {QN_BUF(&call->in[2]), QN_BUF(&call->control), QN_BUF(&s->q), QN_BUF(&s->squares),
                 QN_BUF(&call->state[FIRST]), QN_BUF(&call->state[SECOND]),
                 QN_BUF(&call->state[BEFORE]), QN_BUF(&s->factor), QN_LONG(longer(&s->matrix)),
                 QN_LONG(qn_operand_count(&s->squares)), QN_FLOAT((float)attr->beta1),
                 QN_FLOAT((float)attr->beta2), QN_FLOAT((float)(1 - attr->beta1)),
                 QN_FLOAT((float)(1 - attr->beta2)), QN_FLOAT((float)attr->eps)}};
    return qn_whole_group(emit, call, &launch);
}

static qn_status apply(struct qn_emit *emit, const struct qn_call *call, struct step *s)
{
    struct qn_launch launch = {.program = "apollo",
                               .kernel = "apply",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->in[2]), QN_BUF(&call->control),
                                        QN_BUF(&s->factor), QN_BUF(&call->out[0])}};
    return qn_update_launch(emit, call, &call->in[2], &launch);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    struct step s = step_of(call);
    QN_TRY(draw(emit, call, &s));
    QN_TRY(s.tall ? project_rows(emit, call, &s) : project_columns(emit, call, &s));
    QN_TRY(move_moments(emit, call, &s));
    return apply(emit, call, &s);
}

const struct qn_op qn_op_apollo = {
    .name = "apollo",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .whole = true,
    .small = {.rank = 2, .name = "adamw"},
    .state = {{"exp_avg"}, {"exp_avg_sq"}, {"update_norm"}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)},
                         {QN_IN(1)},
                         {QN_IN(2)},
                         {QN_STATE(FIRST)},
                         {QN_STATE(SECOND)},
                         {QN_STATE(BEFORE)}},
                .write = {{QN_OUT(0), QN_IN(0)},
                          {QN_STATE(FIRST)},
                          {QN_STATE(SECOND)},
                          {QN_STATE(BEFORE)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, step)}}};
