/* SPDX-License-Identifier: MIT
 *
 * The cross entropy of the softmax of x * w^T + b, whose logits never exist whole: they are made
 * for some of the classes at a time, in scratch. The forward pass keeps two numbers a row, from
 * which the backward pass makes the gradient of each part of the logits in their place, and takes
 * the part's share of both gradients from it (as Cut Cross-Entropy does, Wijmans et al., "Cut your
 * losses in large-vocabulary language models", 2024).
 *
 * Parts are of classes, not of rows: a row of w meets all rows of x at once, so that its gradient
 * is one sum that is written once, and what is added up over the parts is the gradient of x, which
 * is small. A part has four times as many classes as x has features: products of the shape of a
 * transformer's perceptron, whose own gradients need as much room.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

enum { X, WEIGHT, LABELS, CLASS_WEIGHTS, BIAS };
enum { FORWARD, GRADIENTS };
enum { CLASSES_PER_FEATURE = 4, CLASS_STEP = 16, MOST_PRODUCTS = 3 };

/* x (rows, features), w (classes, features), of which `part` at a time. */
struct sizes {
    int64_t rows, features, classes, part;
};

static struct sizes sizes_of(const struct qn_call *call)
{
    const struct qn_shape *x = &call->in[X].shape, *weight = &call->in[WEIGHT].shape;
    struct sizes size = {qn_shape_span(x, 0, x->rank - 1), weight->dim[1], weight->dim[0], 0};
    size.part = qn_round_up(CLASSES_PER_FEATURE * size.features, CLASS_STEP);
    if (size.part > size.classes)
        size.part = size.classes;
    return size;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[X], *weight = &call->in[WEIGHT];
    struct qn_shape rows = x->shape;
    if (!qn_is_float(x) || x->shape.rank < 2 || !qn_is_float(weight) || weight->shape.rank != 2)
        return qn_shape_error(call, "takes x (.., k) and a weight (c, k) of float types");
    const int64_t features = x->shape.dim[--rows.rank];
    if (features < 1 || weight->shape.dim[1] != features)
        return qn_shape_error(call, "the weight takes rows of %lld elements, but x has %lld",
                              (long long)weight->shape.dim[1], (long long)features);
    if (attr->class_dim)
        return qn_shape_error(call, "the classes are the rows of the weight, not a dimension");
    QN_TRY(qn_cross_entropy_shape(call, &rows, weight->shape.dim[0], LABELS));
    if (qn_present(&call->in[BIAS]) && !qn_is_row_of(&call->in[BIAS], weight->shape.dim[0]))
        return qn_shape_error(call, "the bias must have %lld elements, one a class",
                              (long long)weight->shape.dim[0]);
    struct qn_shape statistic = rows;
    statistic.dim[statistic.rank++] = 2;
    qn_shape_set(&call->saved[0], QN_F32, statistic.rank, statistic.dim);
    return QN_OK;
}

static double loss_weight(const struct qn_call *call, const void *const *host)
{
    return qn_cross_entropy_weight(call, host, call->in[WEIGHT].shape.dim[0], LABELS);
}

/* --- what a group works on --- */

/* A group of a call: what lies in its scratch. `product` is the call as the products see it, with
 * the scratch that is left for them. */
struct work {
    int group;
    struct sizes size;
    struct qn_operand logits; /* of one part, and then their gradient */
    struct qn_operand known;  /* forward: what the parts so far tell of the rows */
    struct qn_operand sum;    /* backward: the gradient of x, in f32 */
    struct qn_call product;
};

static struct qn_operand take(struct qn_operand *scratch, int64_t rows, int64_t columns)
{
    const int64_t taken = qn_round_up(rows * columns, CLASS_STEP);
    struct qn_operand operand = *scratch;
    qn_shape_set(&operand, QN_F32, 2, (const int64_t[]){rows, columns});
    scratch->offset += taken;
    scratch->shape.dim[0] -= taken;
    return operand;
}

/* The gradient of x is added up where it belongs unless that is of a short type. */
static struct work work_of(const struct qn_call *call, int group)
{
    struct work w = {.group = group, .size = sizes_of(call), .product = *call};
    const struct qn_operand *dx = &call->din[X];
    w.logits = take(&w.product.scratch, w.size.rows, w.size.part);
    w.sum = *dx;
    if (group == FORWARD)
        w.known = take(&w.product.scratch, w.size.rows, QN_CROSS_ENTROPY_KNOWN);
    else if (qn_present(dx) && dx->dtype != QN_F32)
        w.sum = take(&w.product.scratch, w.size.rows, w.size.features);
    return w;
}

/* Whether the gradient of x still has to go where it belongs. */
static bool is_apart(const struct work *w)
{
    return w->group == GRADIENTS && w->sum.dtype != w->product.din[X].dtype;
}

/* Some classes: their logits, rows of the weight and elements of the bias, and of the gradients of
 * both. */
struct part {
    int64_t first, n;
    struct qn_operand logits, weight, weight_gradient, bias, bias_gradient;
};

/* Of a matrix, or of a vector whose rows are elements; as it is where there is none. */
static struct qn_operand rows_of(const struct qn_operand *all, const struct part *part)
{
    struct qn_operand rows = *all;
    if (!qn_present(all))
        return rows;
    rows.offset += part->first * qn_shape_span(&all->shape, 1, all->shape.rank);
    rows.shape.dim[0] = part->n;
    return rows;
}

static struct part part_of(const struct work *w, int64_t first)
{
    const int64_t left = w->size.classes - first;
    struct part part = {first, left < w->size.part ? left : w->size.part, .logits = w->logits};
    part.logits.shape.dim[1] = part.n;
    part.weight = rows_of(&w->product.in[WEIGHT], &part);
    part.weight_gradient = rows_of(&w->product.din[WEIGHT], &part);
    part.bias = rows_of(&w->product.in[BIAS], &part);
    part.bias_gradient = rows_of(&w->product.din[BIAS], &part);
    return part;
}

static struct qn_matmul logits_of(const struct work *w, const struct part *part)
{
    return (struct qn_matmul){.m = w->size.rows,
                              .n = part->n,
                              .k = w->size.features,
                              .trans_b = true,
                              .a = &w->product.in[X],
                              .b = &part->weight,
                              .c = &part->logits,
                              .bias = qn_present(&part->bias) ? &part->bias : NULL};
}

static struct qn_matmul input_gradient(const struct work *w, const struct part *part)
{
    const float beta = is_apart(w) ? 0 : w->product.beta_in[X];
    return (struct qn_matmul){.m = w->size.rows,
                              .n = w->size.features,
                              .k = part->n,
                              .a = &part->logits,
                              .b = &part->weight,
                              .c = &w->sum,
                              .beta = part->first > 0 ? 1 : beta};
}

static struct qn_matmul weight_gradient(const struct work *w, const struct part *part)
{
    return (struct qn_matmul){.m = part->n,
                              .n = w->size.features,
                              .k = w->size.rows,
                              .trans_a = true,
                              .a = &part->logits,
                              .b = &w->product.in[X],
                              .c = &part->weight_gradient,
                              .beta = w->product.beta_in[WEIGHT]};
}

static struct qn_column_sums bias_gradient(const struct work *w, const struct part *part)
{
    return (struct qn_column_sums){.m = w->size.rows,
                                   .n = part->n,
                                   .a = &part->logits,
                                   .c = &part->bias_gradient,
                                   .beta = w->product.beta_in[BIAS]};
}

static bool wants_bias(const struct work *w)
{
    return w->group == GRADIENTS && qn_present(&w->product.din[BIAS]);
}

/* The products of a part: its logits, and then what is wanted of their gradient. */
static int products_of(const struct work *w, const struct part *part,
                       struct qn_matmul product[MOST_PRODUCTS])
{
    int count = 0;
    product[count++] = logits_of(w, part);
    if (w->group == GRADIENTS && qn_present(&w->sum))
        product[count++] = input_gradient(w, part);
    if (w->group == GRADIENTS && qn_present(&part->weight_gradient))
        product[count++] = weight_gradient(w, part);
    return count;
}

/* --- costs --- */

/* The last part, where it is a smaller one, fits as the first does. */
static bool fits(const struct qn_call *call, int group, const struct qn_matmul_way *way,
                 const char **why)
{
    const struct work w = work_of(call, group);
    const struct part part = part_of(&w, 0);
    struct qn_matmul product[MOST_PRODUCTS];
    const int count = products_of(&w, &part, product);
    for (int i = 0; i < count; i++)
        if (!way->fits(call, &product[i], why))
            return false;
    return true;
}

static void add_cost(const struct qn_cost *one, struct qn_cost *cost)
{
    cost->flops += one->flops;
    cost->launches += one->launches;
    cost->scratch = one->scratch > cost->scratch ? one->scratch : cost->scratch;
}

/* Adds the products and sums of a part and its one pass over the logits; the scratch is the most
 * that one of them needs. */
static void add_part(const struct work *w, int64_t first, const struct qn_matmul_way *way,
                     struct qn_cost *cost)
{
    const struct part part = part_of(w, first);
    struct qn_matmul product[MOST_PRODUCTS];
    const int count = products_of(w, &part, product);
    for (int i = 0; i < count; i++) {
        struct qn_cost one = {0};
        way->cost(&w->product, &product[i], &one);
        add_cost(&one, cost);
    }
    if (wants_bias(w)) {
        const struct qn_column_sums sums = bias_gradient(w, &part);
        struct qn_cost one = {0};
        qn_column_sums_cost(&w->product, &sums, &one);
        add_cost(&one, cost);
    }
    cost->launches++;
}

static void cost_of(const struct qn_call *call, int group, const struct qn_matmul_way *way,
                    struct qn_cost *cost)
{
    const struct work w = work_of(call, group);
    const int64_t own = w.product.scratch.offset - call->scratch.offset;
    const int each = group == FORWARD ? QN_CROSS_ENTROPY_FORWARD : QN_CROSS_ENTROPY_BACKWARD;
    cost->flops = (double)each * (double)w.size.rows * (double)w.size.classes;
    for (int64_t first = 0; first < w.size.classes; first += w.size.part)
        add_part(&w, first, way, cost);
    cost->launches += is_apart(&w);
    cost->scratch += own * (int64_t)sizeof(float);
    cost->bytes = qn_group_bytes(call, group) + 2 * (double)cost->scratch;
}

/* --- launches --- */

static qn_status emit_part(struct qn_emit *emit, const struct work *w, int64_t first,
                           const struct qn_matmul_way *way)
{
    const struct part part = part_of(w, first);
    const struct qn_cross_entropy_rows rows = {.logits = &part.logits,
                                               .rows = w->size.rows,
                                               .n = part.n,
                                               .first = first,
                                               .classes = w->size.classes,
                                               .labels = LABELS};
    struct qn_matmul product[MOST_PRODUCTS];
    const int count = products_of(w, &part, product);
    QN_TRY(way->emit(emit, &w->product, &product[0]));
    if (w->group == FORWARD)
        return qn_cross_entropy_forward_part(emit, &w->product, &rows, &w->known);
    QN_TRY(qn_cross_entropy_backward(emit, &w->product, &rows, &part.logits, 0));
    for (int i = 1; i < count; i++)
        QN_TRY(way->emit(emit, &w->product, &product[i]));
    const struct qn_column_sums sums = bias_gradient(w, &part);
    return wants_bias(w) ? qn_column_sums_emit(emit, &w->product, &sums) : QN_OK;
}

static qn_status emit_group(struct qn_emit *emit, const struct qn_call *call, int group,
                            const struct qn_matmul_way *way)
{
    const struct work w = work_of(call, group);
    for (int64_t first = 0; first < w.size.classes; first += w.size.part)
        QN_TRY(emit_part(emit, &w, first, way));
    if (!is_apart(&w))
        return QN_OK;
    return qn_elementwise_scale(emit, call,
                                &(struct qn_scaling){&w.sum, &call->din[X], 1, call->beta_in[X]});
}

#define VARIANT(name, group, way)                                                                  \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        return fits(call, group, way, why);                                                        \
    }                                                                                              \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        cost_of(call, group, way, cost);                                                           \
    }                                                                                              \
    static qn_status name##_emit(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        return emit_group(emit, call, group, way);                                                 \
    }
VARIANT(forward_thin, FORWARD, &qn_matmul_thin)
VARIANT(forward_cpu, FORWARD, &qn_matmul_cpu)
VARIANT(forward_gpu, FORWARD, &qn_matmul_gpu)
VARIANT(forward_units, FORWARD, &qn_matmul_units)
VARIANT(gradients_cpu, GRADIENTS, &qn_matmul_cpu)
VARIANT(gradients_gpu, GRADIENTS, &qn_matmul_gpu)
VARIANT(gradients_units, GRADIENTS, &qn_matmul_units)

/* One group makes all gradients, so that the logits are made again once. */
const struct qn_op qn_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .attr_size = sizeof(struct qn_cross_entropy_attr),
    .n_in = 5,
    .n_required = 3,
    .n_out = 1,
    .batch = {[X] = QN_BATCH_MAY, [LABELS] = QN_BATCH_MAY},
    .no_gradient = 1u << LABELS | 1u << CLASS_WEIGHTS,
    .shape = shape,
    .loss_weight = loss_weight,
    .weight_inputs = 1u << LABELS | 1u << CLASS_WEIGHTS,
    .groups = {
        {.name = "forward",
         .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
         .read =
             {{QN_IN(X)}, {QN_IN(WEIGHT)}, {QN_IN(LABELS)}, {QN_IN(CLASS_WEIGHTS)}, {QN_IN(BIAS)}},
         .write = {{QN_OUT(0)}, {QN_SAVED(0)}},
         .variant = {{"thin", forward_thin_fits, forward_thin_cost, forward_thin_emit, .cpu = true},
                     {"cpu", forward_cpu_fits, forward_cpu_cost, forward_cpu_emit,
                      qn_matmul_settings, .cpu = true},
                     {"gpu", forward_gpu_fits, forward_gpu_cost, forward_gpu_emit},
                     {"units", forward_units_fits, forward_units_cost, forward_units_emit,
                      qn_matmul_units_settings}}},
        {.name = "gradients",
         .phase = QN_PHASE_BACKWARD,
         .read = {{QN_IN(X)},
                  {QN_IN(WEIGHT)},
                  {QN_IN(LABELS)},
                  {QN_IN(CLASS_WEIGHTS)},
                  {QN_IN(BIAS)},
                  {QN_DOUT(0)},
                  {QN_SAVED(0)}},
         .write = {{QN_DIN(X)}, {QN_DIN(WEIGHT)}, {QN_DIN(BIAS)}},
         .variant = {{"cpu", gradients_cpu_fits, gradients_cpu_cost, gradients_cpu_emit,
                      qn_matmul_settings, .cpu = true},
                     {"gpu", gradients_gpu_fits, gradients_gpu_cost, gradients_gpu_emit},
                     {"units", gradients_units_fits, gradients_units_cost, gradients_units_emit,
                      qn_matmul_units_settings}}}}};

static int64_t classes_of(const qn_graph *graph, qn_tensor weight)
{
    const struct qn_shape shape_ = qn_shape_of(graph, weight);
    return shape_.rank ? shape_.dim[0] : 0;
}

qn_tensor qn_linear_cross_entropy(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                                  qn_tensor labels, const qn_cross_entropy_params *params)
{
    const struct qn_cross_entropy_attr attr = qn_cross_entropy_attr_of(params);
    const qn_tensor in[] = {x, weight, labels,
                            qn_cross_entropy_weights(graph, params, classes_of(graph, weight)),
                            bias};
    return qn_op_apply(graph, &qn_op_linear_cross_entropy, in, &attr);
}
