/* SPDX-License-Identifier: MIT
 *
 * Rotary position embedding (Su et al. 2021), with the halves of a head as coordinates, as the
 * Llama models of Hugging Face have it.
 */
#include "op/rotary.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"

#include <math.h>
#include <quern/ops.h>
#include <stdlib.h>

enum { X, RATES, POSITIONS };
enum { FORWARD, BACKWARD };

/* CPU shape: elements of a work-item. GPU shape: work-items of a group. */
enum { ENOUGH = 4096, GPU_GROUP = 64 };

/* The largest position that f32 holds with all below it. */
enum { MOST_POSITIONS = 1 << 24 };

/* --- the shape rule --- */

static qn_status check_attributes(struct qn_shape_call *call)
{
    const struct qn_rotary_attr *attr = call->attr;
    if (attr->heads < 1 || attr->still < 0 || attr->still > attr->heads)
        return qn_shape_error(call, "%d of %d heads cannot be left still", attr->still,
                              attr->heads);
    if (!(attr->base > 1 && isfinite(attr->base)))
        return qn_shape_error(call, "base %g is not a number above 1", (double)attr->base);
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_rotary_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[X], *rates = &call->in[RATES];
    const struct qn_operand *positions = &call->in[POSITIONS];
    QN_TRY(check_attributes(call));
    if (!qn_is_float(x) || x->shape.rank != 3)
        return qn_shape_error(call, "rotary takes x (b, t, heads * n) of a float type");
    const int64_t *dim = x->shape.dim, head = dim[2] / attr->heads;
    if (head * attr->heads != dim[2] || head % 2 != 0)
        return qn_shape_error(call, "%lld elements a token are not %d heads of an even size",
                              (long long)dim[2], attr->heads);
    if (rates->dtype != QN_F32 || !qn_is_row_of(rates, head))
        return qn_shape_error(call, "rates are f32 (%lld)", (long long)head);
    if (dim[1] > MOST_POSITIONS)
        return qn_shape_error(call, "%lld positions are too many", (long long)dim[1]);
    if (qn_present(positions) &&
        (positions->dtype != QN_I32 || positions->shape.rank != 2 ||
         positions->shape.dim[0] != dim[0] || positions->shape.dim[1] != dim[1]))
        return qn_shape_error(call, "positions are i32 (b, t), one for each token of x");
    call->out[0] = *x;
    return QN_OK;
}

/* --- costs and launches --- */

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, FORWARD, 4, &call->in[X], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, BACKWARD, 4, &call->dout[0], cost);
}

/* y = beta * y + x turned, forwards (way 1) or backwards (-1). */
static qn_status turn(struct qn_emit *emit, const struct qn_call *call, const struct qn_operand *x,
                      const struct qn_operand *y, float way, float beta)
{
    const struct qn_rotary_attr *attr = call->attr;
    const int64_t *dim = x->shape.dim, rows = dim[0] * dim[1], n = dim[2] / attr->heads / 2;
    const int64_t width = qn_vector_of(call), items = n / width + n % width;
    const int64_t span = call->cpu ? qn_div_up(ENOUGH, dim[2]) * items : 1;
    const int64_t group = call->cpu ? 1 : GPU_GROUP;
    struct qn_launch launch = {
        .program = "rotary",
        .kernel = "rotary",
        .args = {QN_BUF(x), QN_BUF(&call->in[RATES]), QN_BUF(&call->in[POSITIONS]), QN_BUF(y),
                 QN_LONG(rows), QN_LONG(n), QN_LONG(dim[1]), QN_LONG(attr->heads),
                 QN_LONG(attr->heads - attr->still), QN_LONG(span),
                 QN_INT(qn_present(&call->in[POSITIONS])), QN_FLOAT(way), QN_FLOAT(beta)},
        .global = {qn_div_up(rows * items, span)},
        .local = {group}};
    qn_launch_option(&launch, "QN_WG", group);
    qn_launch_vectors(&launch, call, n);
    qn_launch_type(&launch, "X", x);
    qn_launch_type(&launch, "Y", y);
    return qn_emit_launch(emit, &launch);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return turn(emit, call, &call->in[X], &call->out[0], 1, 0);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    return turn(emit, call, &call->dout[0], &call->din[X], -1, call->beta_in[X]);
}

const struct qn_op qn_op_rotary =
    {
        .name = "rotary",
        .attr_size = sizeof(struct qn_rotary_attr),
        .n_in = 3,
        .n_required = 2,
        .n_out = 1,
        .batch = {QN_BATCH_MAY, QN_BATCH_NEVER, QN_BATCH_MAY},
        .no_gradient = 1u << RATES | 1u << POSITIONS,
        .shape = shape,
        .groups =
            {
                [FORWARD] = {.name = "forward",
                             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                             .read = {{QN_IN(X)}, {QN_IN(RATES)}, {QN_IN(POSITIONS)}},
                             .write = {{QN_OUT(0), QN_IN(X)}},
                             .variant = QN_BOTH_SHAPES(NULL, forward_cost, forward)},
                [BACKWARD] = {.name = "input gradient",
                              .phase = QN_PHASE_BACKWARD,
                              .read = {{QN_DOUT(0)}, {QN_IN(RATES)}, {QN_IN(POSITIONS)}},
                              .write = {{QN_DIN(X), QN_DOUT(0)}},
                              .variant = QN_BOTH_SHAPES(NULL, backward_cost, backward)},
            },
};

/* What becomes of the turns from one position to the next. */
static double scaled(double rate, const qn_rotary_params *p)
{
    const double turns = rate * (double)p->original_positions;
    if (p->original_positions == 0)
        return rate / p->factor;
    const double share = (turns - p->low_freq_factor) / (p->high_freq_factor - p->low_freq_factor);
    const double kept = fmin(fmax(share, 0), 1);
    return rate * (kept + (1 - kept) / p->factor);
}

/* Rates for heads of `head` elements, both parts, or one 0 if there is nothing to turn. */
static qn_tensor rates_of(qn_graph *graph, int64_t head, const qn_rotary_params *params)
{
    const double turn_ = 2 * acos(-1);
    const int64_t points = head / 2;
    float *rates = calloc((size_t)(points > 0 ? 2 * points : 1), sizeof *rates);
    for (int64_t i = 0; rates && i < points; i++) {
        const double rate = scaled(pow(params->base, -(double)i / (double)points) / turn_, params);
        rates[i] = (float)rate;
        rates[points + i] = (float)(rate - (double)rates[i]);
    }
    qn_tensor tensor =
        rates ? qn_op_constant(graph, "rates", rates, points > 0 ? 2 * points : 1) : (qn_tensor){0};
    free(rates);
    return tensor;
}

/* The rates are all that knows of it: attributes stay those of positions without a scaling. */
static bool check_scaling(qn_graph *graph, const qn_rotary_params *p)
{
    if (!(p->factor >= 1 && isfinite(p->factor)))
        qn_graph_refuse(graph, "rotary: factor %g is not a number from 1", p->factor);
    else if (p->original_positions < 0)
        qn_graph_refuse(graph, "rotary: %lld original positions", (long long)p->original_positions);
    else if (p->original_positions > 0 &&
             !(p->low_freq_factor > 0 && p->high_freq_factor > p->low_freq_factor &&
               isfinite(p->high_freq_factor)))
        qn_graph_refuse(graph, "rotary: factors of frequency %g and %g do not rise from above 0",
                        p->low_freq_factor, p->high_freq_factor);
    else
        return true;
    return false;
}

qn_tensor qn_rotary(qn_graph *graph, qn_tensor x, qn_tensor positions,
                    const qn_rotary_params *params)
{
    qn_rotary_params p = params ? *params : (qn_rotary_params){0};
    p.base = p.base != 0 ? p.base : 10000;
    p.factor = p.factor != 0 ? p.factor : 1;
    if (!check_scaling(graph, &p))
        return (qn_tensor){0};
    const struct qn_rotary_attr attr = {
        .heads = p.heads ? p.heads : 1, .still = p.still, .base = (float)p.base};
    const qn_shape shape_of_x = qn_shape_of(graph, x);
    const int64_t head =
        shape_of_x.rank == 3 && attr.heads > 0 ? shape_of_x.dim[2] / attr.heads : 0;
    const qn_tensor in[] = {x, rates_of(graph, head, &p), positions};
    return qn_op_apply(graph, &qn_op_rotary, in, &attr);
}
