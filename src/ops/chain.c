/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "op/chain.h"
#include "ops/common.h"
#include "ops/strip.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Vectors of a strip without sums, and elements of it if rows are short. */
enum { WIDE = 64, ENOUGH = 1024 };

static bool is_given(const struct qn_shape_call *call, int step, int value)
{
    if (value < 0 || value == QN_CHAIN_INPUTS || value == QN_CHAIN_INPUTS + 1)
        return false;
    return value < QN_CHAIN_INPUTS ? qn_present(&call->in[value]) : value < QN_CHAIN_STEP + step;
}

static qn_status check_step(struct qn_shape_call *call, int k)
{
    const struct qn_chain_attr *attr = call->attr;
    const struct qn_chain_link *step = &attr->step[k];
    if (step->op < 0 || step->op >= QN_CHAIN_OPERATIONS)
        return qn_shape_error(call, "step %d: there is no operation %d", k, step->op);
    if (!is_given(call, k, step->a) ||
        (qn_chain_is_binary(step->op) && !is_given(call, k, step->b)))
        return qn_shape_error(call, "step %d: a value that is not there", k);
    if (step->op == QN_CHAIN_LEAKY_RELU && !(step->value > 0 && step->value <= 1))
        return qn_shape_error(call, "step %d: slope %g is not in (0, 1]", k, (double)step->value);
    if (!isfinite(step->value))
        return qn_shape_error(call, "step %d: %g is not finite", k, (double)step->value);
    return QN_OK;
}

static qn_status check_inputs(struct qn_shape_call *call)
{
    const struct qn_operand *in = call->in;
    const struct qn_shape *x = &in[0].shape;
    for (int i = 0; i < QN_CHAIN_BIAS; i++) {
        if (qn_present(&in[i]) && (!qn_is_float(&in[i]) || !qn_shape_equal(&in[i].shape, x)))
            return qn_shape_error(call, "input %d is not of a float type or of another shape", i);
        if (i > 0 && qn_present(&in[i]) && !qn_present(&in[i - 1]))
            return qn_shape_error(call, "input %d is there, input %d is not", i, i - 1);
    }
    if (qn_present(&in[QN_CHAIN_BIAS]) &&
        (x->rank < 2 || !qn_is_row_of(&in[QN_CHAIN_BIAS], x->dim[x->rank - 1])))
        return qn_shape_error(call, "the bias has not one element for each of the last dimension");
    return QN_OK;
}

/* Rows of the length of the bias, or all as one. What is not summed is cut as fine as it is worth
 * a work-group. */
static struct qn_strip strip_of(const struct qn_call *call, int64_t count, bool sums)
{
    const struct qn_operand *bias = &call->in[QN_CHAIN_BIAS];
    const int64_t n = sums               ? call->temp[0].shape.dim[1]
                      : qn_present(bias) ? qn_operand_count(bias)
                                         : count;
    if (sums)
        return (struct qn_strip){count / n, n, QN_SUM_BLOCK, QN_SUM_WIDE};
    return (struct qn_strip){count / n, n, n < ENOUGH ? ENOUGH / n : 1, WIDE};
}

/* --- what the backward pass needs --- */

/* The reads of its group: the gradient, the inputs, the result. */
enum { READ_INPUT = 1, READ_RESULT = READ_INPUT + QN_CHAIN_INPUTS };

/* Bit i: input i is needed. A gradient is worked out from the result of its step, from the
 * arguments or from neither, and both come from the same inputs; but the last result is there. */
static unsigned needed_inputs(const struct qn_chain_attr *attr, bool *result)
{
    unsigned inputs[QN_CHAIN_STEP + QN_CHAIN_STEPS] = {0}, needed = 0;
    for (int i = 0; i < QN_CHAIN_INPUTS; i++)
        inputs[i] = 1u << i;
    *result = false;
    for (int k = 0; k < attr->count; k++) {
        const struct qn_chain_link *step = &attr->step[k];
        unsigned *own = &inputs[QN_CHAIN_STEP + k];
        *own = inputs[step->a] | (qn_chain_is_binary(step->op) ? inputs[step->b] : 0);
        const enum qn_chain_needs needs = qn_chain_infos[step->op].needs;
        if (k == attr->count - 1 && needs == QN_CHAIN_NEEDS_RESULT)
            *result = *own & ~needed;
        else if (needs != QN_CHAIN_NEEDS_NOTHING)
            needed |= *own;
    }
    return needed;
}

static unsigned spared_reads(const void *attr)
{
    bool result;
    const unsigned needed = needed_inputs(attr, &result), all = (1u << QN_CHAIN_INPUTS) - 1;
    return (~needed & all) << READ_INPUT | (result ? 0 : 1u << READ_RESULT);
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_chain_attr *attr = call->attr;
    const struct qn_operand *bias = &call->in[QN_CHAIN_BIAS];
    if (attr->count < 1 || attr->count > QN_CHAIN_STEPS)
        return qn_shape_error(call, "wants 1 to %d steps, not %d", QN_CHAIN_STEPS, attr->count);
    qn_status status = check_inputs(call);
    for (int k = 0; k < attr->count && status == QN_OK; k++)
        status = check_step(call, k);
    if (status != QN_OK)
        return status;
    call->out[0] = call->in[0];
    for (int i = 1; i < QN_CHAIN_BIAS && qn_present(&call->in[i]); i++)
        if (call->in[i].dtype != call->in[0].dtype)
            call->out[0].dtype = call->storage;
    if (qn_present(bias)) {
        int64_t n = bias->shape.dim[0], rows = qn_operand_count(&call->in[0]) / n;
        qn_shape_set(&call->temp[0], QN_F32, 2, (const int64_t[]){qn_strip_blocks(rows), n});
    }
    return QN_OK;
}

static void set_program(struct qn_launch *launch, const struct qn_call *call)
{
    const struct qn_chain_attr *attr = call->attr;
    char name[16];
    int given = 0;
    for (int i = 0; i < QN_CHAIN_INPUTS; i++)
        given |= qn_present(&call->in[i]) << i;
    qn_launch_option(launch, "QN_GIVEN", given);
    qn_launch_option(launch, "QN_LAST", attr->count - 1);
    for (int k = 0; k < attr->count; k++) {
        const struct qn_chain_link *step = &attr->step[k];
        snprintf(name, sizeof name, "QN_OP%d", k);
        qn_launch_word(launch, name, qn_chain_infos[step->op].name);
        snprintf(name, sizeof name, "QN_A%d", k);
        qn_launch_option(launch, name, step->a);
        snprintf(name, sizeof name, "QN_B%d", k);
        qn_launch_option(launch, name, step->b);
    }
    for (int i = 0; i < QN_CHAIN_BIAS; i++) {
        snprintf(name, sizeof name, "I%d", i);
        qn_launch_type(launch, name, &call->in[i]);
    }
    qn_launch_type(launch, "BIAS", &call->in[QN_CHAIN_BIAS]);
}

static struct qn_arg *add_inputs(struct qn_arg *arg, const struct qn_call *call)
{
    for (int i = 0; i < QN_CHAIN_INPUTS; i++)
        *arg++ = (struct qn_arg)QN_BUF(&call->in[i]);
    return arg;
}

static struct qn_arg *add_numbers(struct qn_arg *arg, const struct qn_call *call,
                                  const struct qn_strip *strip)
{
    const struct qn_chain_attr *attr = call->attr;
    *arg++ = (struct qn_arg)QN_LONG(strip->rows);
    *arg++ = (struct qn_arg)QN_LONG(strip->n);
    for (int k = 0; k < QN_CHAIN_STEPS; k++)
        *arg++ = (struct qn_arg)QN_FLOAT(attr->step[k].value);
    return arg;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_chain_attr *attr = call->attr;
    qn_launch_cost(call, 0, (double)attr->count, &call->in[0], cost);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_strip strip = strip_of(call, qn_operand_count(&call->in[0]), false);
    struct qn_launch launch = {.program = "chain", .kernel = "forward"};
    struct qn_arg *arg = add_inputs(launch.args, call);
    *arg++ = (struct qn_arg)QN_BUF(&call->out[0]);
    add_numbers(arg, call, &strip);
    qn_strip_range(&launch, call, &strip);
    set_program(&launch, call);
    qn_launch_type(&launch, "Y", &call->out[0]);
    return qn_emit_launch(emit, &launch);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_chain_attr *attr = call->attr;
    qn_launch_cost(call, 1, 3 * (double)attr->count, &call->dout[0], cost);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    char name[16];
    bool sums = qn_present(&call->temp[0]);
    struct qn_strip strip = strip_of(call, qn_operand_count(&call->dout[0]), sums);
    struct qn_launch launch = {.program = "chain", .kernel = "backward"};
    struct qn_arg *arg = add_inputs(launch.args, call);
    *arg++ = (struct qn_arg)QN_BUF(&call->out[0]);
    *arg++ = (struct qn_arg)QN_BUF(&call->dout[0]);
    for (int i = 0; i < QN_CHAIN_BIAS; i++)
        *arg++ = (struct qn_arg)QN_BUF(&call->din[i]);
    *arg++ = (struct qn_arg)QN_BUF(&call->temp[0]);
    arg = add_numbers(arg, call, &strip);
    for (int i = 0; i < QN_CHAIN_BIAS; i++)
        *arg++ = (struct qn_arg)QN_FLOAT(call->beta_in[i]);
    qn_launch_option(&launch, "QN_GRADIENT", 1);
    qn_launch_option(&launch, "QN_RESULT", qn_present(&call->out[0]));
    qn_launch_option(&launch, "QN_SUMS", sums);
    qn_strip_range(&launch, call, &strip);
    set_program(&launch, call);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    for (int i = 0; i < QN_CHAIN_BIAS; i++) {
        snprintf(name, sizeof name, "QN_D%d", i);
        qn_launch_option(&launch, name, qn_present(&call->din[i]));
        qn_launch_type(&launch, name + 3, &call->din[i]);
    }
    return qn_emit_launch(emit, &launch);
}

static void bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 2, 1, &call->temp[0], cost);
}

static qn_status bias_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_strip_sum(emit, call, &call->temp[0], &call->din[QN_CHAIN_BIAS],
                        call->beta_in[QN_CHAIN_BIAS]);
}

const struct qn_op qn_op_chain = {
    .name = "chain",
    .attr_size = sizeof(struct qn_chain_attr),
    .n_in = QN_CHAIN_INPUTS,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY},
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)},
                      {.ref = QN_IN(1)},
                      {.ref = QN_IN(2)},
                      {.ref = QN_IN(3)},
                      {.ref = QN_IN(4)},
                      {.ref = QN_IN(5)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = QN_BOTH_SHAPES(NULL, forward_cost, forward)},
            {.name = "input gradients",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)},
                      {.ref = QN_IN(0)},
                      {.ref = QN_IN(1)},
                      {.ref = QN_IN(2)},
                      {.ref = QN_IN(3)},
                      {.ref = QN_IN(4)},
                      {.ref = QN_IN(5)},
                      {.ref = QN_OUT(0)}},
             .spares = spared_reads,
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)},
                       {.ref = QN_DIN(1)},
                       {.ref = QN_DIN(2)},
                       {.ref = QN_DIN(3)},
                       {.ref = QN_DIN(4)},
                       {.ref = QN_TEMP(0)}},
             .variant = QN_BOTH_SHAPES(NULL, backward_cost, backward)},
            {.name = "bias gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_TEMP(0)}},
             .write = {{.ref = QN_DIN(5)}},
             .variant = QN_BOTH_SHAPES(qn_fits_row_group, bias_cost, bias_gradient)},
        },
};

qn_tensor qn_chain(qn_graph *graph, const qn_tensor in[QN_CHAIN_INPUTS], const qn_chain_step *steps,
                   int count)
{
    static const qn_tensor nothing[QN_CHAIN_INPUTS];
    struct qn_chain_attr attr = {.count = steps ? count : 0};
    for (int k = 0; k < attr.count && k < QN_CHAIN_STEPS; k++)
        attr.step[k] =
            (struct qn_chain_link){(int)steps[k].op, steps[k].a, steps[k].b, (float)steps[k].value};
    return qn_op_apply(graph, &qn_op_chain, in ? in : nothing, &attr);
}
