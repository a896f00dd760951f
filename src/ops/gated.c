/* SPDX-License-Identifier: MIT
 *
 * Gated forms: an activation of one tensor times another (Shazeer 2020).
 */
#include "ops/elementwise.h"

#include "base/shape.h"
#include "op/elementwise.h"

#include <quern/ops.h>

enum { GATE, X };
enum { FORWARD, BACKWARD };

/* By qn_gate_form: the activation's macros in cl_kernels/lib/activation.clh. */
static const char *const forms[] = {"SILU", "GELU", "GELU_TANH"};
enum { FORMS = sizeof forms / sizeof *forms };

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_gated_attr *attr = call->attr;
    if (attr->form < 0 || attr->form >= FORMS)
        return qn_shape_error(call, "there is no form %d", attr->form);
    return qn_elementwise_shape2(call);
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, FORWARD, 2, &call->in[GATE], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, BACKWARD, 6, &call->in[GATE], cost);
}

static qn_status emit_over(struct qn_emit *emit, const struct qn_call *call,
                           struct qn_launch *launch)
{
    const struct qn_gated_attr *attr = call->attr;
    const int64_t width = qn_vector_of(call);
    launch->program = "gated";
    launch->global[0] = qn_div_up(qn_operand_count(&call->in[GATE]), width);
    launch->local[0] = QN_ELEMENTWISE_LOCAL;
    qn_launch_vectors(launch, call, 0);
    qn_launch_word(launch, "QN_FORM", forms[attr->form]);
    qn_launch_type(launch, "G", &call->in[GATE]);
    qn_launch_type(launch, "X", &call->in[X]);
    return qn_emit_launch(emit, launch);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {.kernel = "forward",
                               .args = {QN_BUF(&call->in[GATE]), QN_BUF(&call->in[X]),
                                        QN_BUF(&call->out[0]),
                                        QN_LONG(qn_operand_count(&call->in[GATE]))}};
    qn_launch_type(&launch, "Y", &call->out[0]);
    return emit_over(emit, call, &launch);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {.kernel = "backward",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->in[GATE]),
                                        QN_BUF(&call->in[X]), QN_BUF(&call->din[GATE]),
                                        QN_BUF(&call->din[X]),
                                        QN_LONG(qn_operand_count(&call->in[GATE])),
                                        QN_FLOAT(call->beta_in[GATE]), QN_FLOAT(call->beta_in[X])}};
    qn_launch_option(&launch, "QN_GRADIENT", 1);
    qn_launch_option(&launch, "QN_DG", qn_present(&call->din[GATE]));
    qn_launch_option(&launch, "QN_DX", qn_present(&call->din[X]));
    qn_launch_type(&launch, "DY", &call->dout[0]);
    qn_launch_type(&launch, "DG", &call->din[GATE]);
    qn_launch_type(&launch, "DX", &call->din[X]);
    return emit_over(emit, call, &launch);
}

const struct qn_op qn_op_gated =
    {
        .name = "gated",
        .attr_size = sizeof(struct qn_gated_attr),
        .n_in = 2,
        .n_required = 2,
        .n_out = 1,
        .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
        .shape = shape,
        .groups =
            {
                [FORWARD] = {.name = "forward",
                             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                             .read = {{.ref = QN_IN(GATE)}, {.ref = QN_IN(X)}},
                             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(GATE)}},
                             .variant = {{"any", NULL, forward_cost, forward}}},
                [BACKWARD] = {.name = "input gradients",
                              .phase = QN_PHASE_BACKWARD,
                              .read = {{.ref = QN_DOUT(0)},
                                       {.ref = QN_IN(GATE)},
                                       {.ref = QN_IN(X)}},
                              .write = {{.ref = QN_DIN(GATE), .in_place = QN_DOUT(0)},
                                        {.ref = QN_DIN(X), .in_place = QN_IN(X)}},
                              .variant = {{"any", NULL, backward_cost, backward}}},
            },
};

qn_tensor qn_gated(qn_graph *graph, qn_tensor gate, qn_tensor x, qn_gate_form form)
{
    const struct qn_gated_attr attr = {(int)form};
    return qn_op_apply(graph, &qn_op_gated, (const qn_tensor[]){gate, x}, &attr);
}
