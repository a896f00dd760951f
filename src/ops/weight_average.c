/* SPDX-License-Identifier: MIT
 *
 * The exponential moving average of a block of parameters (Polyak and Juditsky 1992), after their
 * optimizer: parameters in 0, in 1 the average in f32, which output 0 takes the place of; in 2 what
 * corrects parameters in bf16, if something does.
 */
#include "base/shape.h"
#include "op/optimizer.h"
#include "ops/elementwise.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *parameters = &call->in[0], *average = &call->in[1];
    if (!qn_is_float(parameters) || average->dtype != QN_F32 ||
        !qn_shape_equal(&parameters->shape, &average->shape))
        return qn_shape_error(call, "parameters and their f32 average must be of one shape");
    const struct qn_operand *correction = &call->in[2];
    if (qn_present(correction) && (parameters->dtype != QN_BF16 || correction->dtype != QN_U8 ||
                                   !qn_shape_equal(&parameters->shape, &correction->shape)))
        return qn_shape_error(call, "corrections are u8 and go with parameters in bf16");
    call->out[0] = *average;
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    *result = qn_elementwise_cost(3, &call->in[0], &call->in[1], &call->out[0]);
    result->bytes += (double)qn_operand_bytes(&call->in[2]);
}

static qn_status average(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_average_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->in[0]), v = qn_vector_of(call);
    struct qn_launch launch = {
        .program = "weight_average",
        .kernel = "weight_average",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[2]), QN_BUF(&call->in[1]),
                 QN_BUF(&call->control), QN_BUF(&call->out[0]), QN_LONG(count),
                 QN_FLOAT((float)attr->decay), QN_FLOAT((float)(1 - attr->decay))},
        .global = {qn_div_up(count, v)},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    qn_launch_type(&launch, "P", &call->in[0]);
    qn_launch_option(&launch, "CORRECTED", qn_present(&call->in[2]));
    qn_launch_vectors(&launch, call, 0);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_weight_average = {.name = "weight_average",
                                           .attr_size = sizeof(struct qn_average_attr),
                                           .n_in = 3,
                                           .n_required = 2,
                                           .n_out = 1,
                                           .shape = shape,
                                           .groups = {{.name = "average",
                                                       .phase = QN_PHASE_UPDATE,
                                                       .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
                                                       .write = {{QN_OUT(0), QN_IN(1)}},
                                                       .variant = {{"any", NULL, cost, average}}}}};
