/* SPDX-License-Identifier: MIT
 *
 * The one table of operators: to add one is a row of it, a MAKE line and, where it has attributes,
 * their table. tests/lint/forms.py compares it with include/quern/ops.h.
 */
#include "form/forms.h"

#include "form/layers.h"
#include "graph/error.h"
#include "op/attention.h"
#include "op/batch_norm.h"
#include "op/cached_attention.h"
#include "op/chain.h"
#include "op/conv2d.h"
#include "op/cross_entropy.h"
#include "op/elementwise.h"
#include "op/loss.h"
#include "op/matmul.h"
#include "op/part.h"
#include "op/pool.h"
#include "op/reduce.h"
#include "op/rotary.h"
#include "op/row_norm.h"
#include "op/upsample2d.h"

#include <quern/graph_file.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- attributes --- */

/* What functions take that have no struct of parameters. */
struct number {
    double value;
};
struct word {
    int value;
};
struct heads {
    int heads, kv_heads;
};
struct normalization {
    struct qn_form_floats mean, deviation;
};
struct cross_entropy {
    qn_cross_entropy_params params;
    struct qn_form_floats class_weights;
};
struct rotary {
    qn_rotary_params params;
    struct qn_form_floats rates;
};

_Static_assert(sizeof(struct rotary) <= QN_FORM_PARAMS &&
                   sizeof(struct cross_entropy) <= QN_FORM_PARAMS &&
                   sizeof(struct qn_form_steps) <= QN_FORM_PARAMS,
               "the largest parameters have room");

static const char *const activations[] = {[QN_ACTIVATION_NONE] = "",
                                          [QN_ACTIVATION_RELU] = "relu",
                                          [QN_ACTIVATION_LEAKY_RELU] = "leaky_relu",
                                          [QN_ACTIVATION_SIGMOID] = "sigmoid",
                                          [QN_ACTIVATION_TANH] = "tanh",
                                          NULL};
static const char *const gelus[] = {[QN_GELU_EXACT] = "exact", [QN_GELU_TANH] = "tanh", NULL};
static const char *const gates[] = {
    [QN_GATE_SILU] = "silu", [QN_GATE_GELU] = "gelu", [QN_GATE_GELU_TANH] = "gelu_tanh", NULL};
static const char *const modes[] = {
    [QN_UPSAMPLE_NEAREST] = "nearest", [QN_UPSAMPLE_BILINEAR] = "bilinear", NULL};
static const char *const reductions[] = {[QN_REDUCE_MEAN] = "mean", [QN_REDUCE_SUM] = "sum", NULL};

/* MEMBER of the struct PARAMS that the function takes, and of the struct KEPT in the node. */
#define FIELD2(name_, kind_, params_, a_, kept_, b_, ...)                                          \
    {                                                                                              \
        .name = (name_), .kind = QN_FIELD_##kind_, .in_params = offsetof(params_, a_),             \
        .in_node = offsetof(struct kept_, b_), __VA_ARGS__                                         \
    }
#define FIELD(kind_, params_, kept_, member_, ...)                                                 \
    FIELD2(#member_, kind_, params_, member_, kept_, member_, __VA_ARGS__)
/* Of the list that is input `input_` of the node. */
#define LIST(name_, params_, member_, input_, ...)                                                 \
    {                                                                                              \
        .name = (name_), .kind = QN_FIELD_FLOATS, .in_params = offsetof(params_, member_),         \
        .in_node = (input_), __VA_ARGS__                                                           \
    }
#define UNKEPT(name_, kind_, params_, member_, ...)                                                \
    {                                                                                              \
        .name = (name_), .kind = QN_FIELD_##kind_, .in_params = offsetof(params_, member_),        \
        .in_node = QN_FIELD_UNKEPT, __VA_ARGS__                                                    \
    }
#define RANGE(least_, most_) .least = (least_), .most = (most_)
#define MOST_INT INT32_MAX
#define MOST_FLOAT 3.4e38

static const struct qn_field linear_activation_fields[] = {
    FIELD(WORD, qn_linear_activation_params, qn_linear_activation_attr, activation,
          .words = activations),
    FIELD(REAL, qn_linear_activation_params, qn_linear_activation_attr, slope, RANGE(1e-37, 1)),
    {0}};
static const struct qn_field batch_matmul_fields[] = {
    FIELD(SWITCH, qn_batch_matmul_params, qn_batch_matmul_attr, transpose_a, .standard = 0),
    FIELD(SWITCH, qn_batch_matmul_params, qn_batch_matmul_attr, transpose_b, .standard = 0),
    {0}};
static const struct qn_field conv2d_fields[] = {
    FIELD(PAIR, qn_conv2d_params, qn_conv2d_attr, stride, RANGE(1, MOST_INT), .standard = 1),
    FIELD(PAIR, qn_conv2d_params, qn_conv2d_attr, padding, RANGE(0, MOST_INT)),
    FIELD(PAIR, qn_conv2d_params, qn_conv2d_attr, dilation, RANGE(1, MOST_INT), .standard = 1),
    FIELD(INT, qn_conv2d_params, qn_conv2d_attr, groups, RANGE(1, MOST_INT), .standard = 1),
    {0}};
#define TRANSPOSED(kind_, member_, ...)                                                            \
    FIELD2(#member_, kind_, qn_conv_transpose2d_params, member_, qn_conv_transpose2d_attr,         \
           conv.member_, __VA_ARGS__)
static const struct qn_field conv_transpose2d_fields[] = {
    TRANSPOSED(PAIR, stride, RANGE(1, MOST_INT), .standard = 1),
    TRANSPOSED(PAIR, padding, RANGE(0, MOST_INT)),
    TRANSPOSED(PAIR, dilation, RANGE(1, MOST_INT), .standard = 1),
    FIELD(PAIR, qn_conv_transpose2d_params, qn_conv_transpose2d_attr, output_padding,
          RANGE(0, MOST_INT)),
    TRANSPOSED(INT, groups, RANGE(1, MOST_INT), .standard = 1),
    {0}};
#define WINDOW                                                                                     \
    FIELD(PAIR, qn_pool2d_params, qn_pool_attr, size, RANGE(1, MOST_INT), .standard = NAN),        \
        FIELD(PAIR, qn_pool2d_params, qn_pool_attr, stride, RANGE(1, MOST_INT), .standard = NAN),  \
        FIELD(PAIR, qn_pool2d_params, qn_pool_attr, padding, RANGE(0, MOST_INT))
static const struct qn_field max_pool2d_fields[] = {WINDOW, {0}};
static const struct qn_field avg_pool2d_fields[] = {
    WINDOW, FIELD(SWITCH, qn_pool2d_params, qn_pool_attr, exclude_padding, .standard = 0), {0}};
static const struct qn_field upsample2d_fields[] = {
    FIELD(PAIR, qn_upsample2d_params, qn_upsample2d_attr, factor, RANGE(1, MOST_INT)),
    FIELD(PAIR, qn_upsample2d_params, qn_upsample2d_attr, size, RANGE(1, MOST_INT)),
    FIELD(WORD, qn_upsample2d_params, qn_upsample2d_attr, mode, .words = modes),
    FIELD(SWITCH, qn_upsample2d_params, qn_upsample2d_attr, align_corners, .standard = 0),
    {0}};
static const struct qn_field batch_norm_fields[] = {
    FIELD(INT, qn_batch_norm_params, qn_batch_norm_attr, group, RANGE(1, MOST_INT), .standard = 16),
    FIELD(REAL, qn_batch_norm_params, qn_batch_norm_attr, eps, RANGE(1e-37, MOST_FLOAT),
          .standard = 1e-5),
    FIELD(REAL, qn_batch_norm_params, qn_batch_norm_attr, momentum, RANGE(1e-37, MOST_FLOAT),
          .standard = 0.1),
    FIELD(SWITCH, qn_batch_norm_params, qn_batch_norm_attr, relu, .standard = 0),
    {0}};
static const struct qn_field layer_norm_fields[] = {
    FIELD(INT, qn_layer_norm_params, qn_layer_norm_attr, dims, RANGE(1, QN_MAX_DIMS),
          .standard = 1),
    FIELD(REAL, qn_layer_norm_params, qn_layer_norm_attr, eps, RANGE(1e-37, MOST_FLOAT),
          .standard = 1e-5),
    {0}};
static const struct qn_field rms_norm_fields[] = {FIELD(REAL, qn_rms_norm_params, qn_rms_norm_attr,
                                                        eps, RANGE(1e-37, MOST_FLOAT),
                                                        .standard = 1e-6),
                                                  {0}};
static const struct qn_field group_norm_fields[] = {
    FIELD(INT, qn_group_norm_params, qn_group_norm_attr, groups, RANGE(1, MOST_INT), .standard = 1),
    FIELD(REAL, qn_group_norm_params, qn_group_norm_attr, eps, RANGE(1e-37, MOST_FLOAT),
          .standard = 1e-5),
    {0}};
static const struct qn_field leaky_relu_fields[] = {
    FIELD2("slope", REAL, struct number, value, qn_leaky_relu_attr, slope, RANGE(1e-37, 1)), {0}};
static const struct qn_field gelu_fields[] = {
    FIELD2("form", WORD, struct word, value, qn_gelu_attr, form, .words = gelus), {0}};
static const struct qn_field gated_fields[] = {
    FIELD2("form", WORD, struct word, value, qn_gated_attr, form, .words = gates), {0}};
static const struct qn_field scale_fields[] = {
    FIELD2("factor", REAL, struct number, value, qn_scale_attr, factor,
           RANGE(-MOST_FLOAT, MOST_FLOAT), .standard = NAN),
    {0}};
static const struct qn_field dropout_fields[] = {
    FIELD2("rate", REAL, struct number, value, qn_dropout_attr, rate, RANGE(0, 1), .standard = NAN),
    {0}};
static const struct qn_field chain_fields[] = {
    {.name = "steps", .kind = QN_FIELD_STEPS, .in_params = 0, .in_node = 0}, {0}};
static const struct qn_field reshape_fields[] = {
    {.name = "shape", .kind = QN_FIELD_SHAPE, .in_params = 0, .in_node = 0}, {0}};
static const struct qn_field transpose_fields[] = {
    {.name = "axes", .kind = QN_FIELD_AXES, .in_params = 0, .in_node = 0}, {0}};
static const struct qn_field concat_fields[] = {FIELD2("axis", INT, struct word, value,
                                                       qn_concat_attr, axis,
                                                       RANGE(0, QN_MAX_DIMS - 1), .standard = NAN),
                                                {0}};
static const struct qn_field slice_fields[] = {
    FIELD(LONG, struct qn_slice_attr, qn_slice_attr, axis, RANGE(0, QN_MAX_DIMS - 1),
          .standard = NAN),
    FIELD(LONG, struct qn_slice_attr, qn_slice_attr, start, RANGE(0, 0x1p62)),
    FIELD(LONG, struct qn_slice_attr, qn_slice_attr, length, RANGE(1, 0x1p62), .standard = NAN),
    {0}};
static const struct qn_field normalize_fields[] = {
    LIST("mean", struct normalization, mean, 1, .spread = true),
    LIST("deviation", struct normalization, deviation, 2, .standard = 1, .spread = true),
    {0}};
static const struct qn_field attention_fields[] = {
    FIELD(INT, qn_attention_params, qn_attention_attr, heads, RANGE(1, MOST_INT), .standard = 1),
    FIELD(INT, qn_attention_params, qn_attention_attr, kv_heads, RANGE(1, MOST_INT),
          .standard = NAN),
    FIELD(SWITCH, qn_attention_params, qn_attention_attr, causal, .standard = 0),
    FIELD(REAL, qn_attention_params, qn_attention_attr, scale, RANGE(-MOST_FLOAT, MOST_FLOAT)),
    FIELD(REAL, qn_attention_params, qn_attention_attr, dropout, RANGE(0, 1)),
    {0}};
static const struct qn_field cached_attention_fields[] = {
    FIELD(INT, struct heads, qn_cached_attention_attr, heads, RANGE(1, MOST_INT), .standard = 1),
    FIELD(INT, struct heads, qn_cached_attention_attr, kv_heads, RANGE(1, MOST_INT),
          .standard = NAN),
    {0}};
#define CROSS_ENTROPY(input_)                                                                      \
    FIELD2("label_smoothing", REAL, struct cross_entropy, params.label_smoothing,                  \
           qn_cross_entropy_attr, smoothing, RANGE(0, 1)),                                         \
        {.name = "ignore_label",                                                                   \
         .kind = QN_FIELD_IGNORE,                                                                  \
         .in_params = offsetof(struct cross_entropy, params),                                      \
         .in_node = 0,                                                                             \
         RANGE(INT32_MIN, INT32_MAX)},                                                             \
        LIST("class_weights", struct cross_entropy, class_weights, input_, .standard = NAN)
static const struct qn_field softmax_cross_entropy_fields[] = {
    CROSS_ENTROPY(2),
    FIELD2("class_dim", INT, struct cross_entropy, params.class_dim, qn_cross_entropy_attr,
           class_dim, RANGE(0, QN_MAX_DIMS - 1)),
    {0}};
static const struct qn_field linear_cross_entropy_fields[] = {CROSS_ENTROPY(3), {0}};
static const struct qn_field sum_fields[] = {FIELD2("first", INT, struct word, value,
                                                    qn_reduce_attr, first,
                                                    RANGE(1, QN_MAX_DIMS - 1), .standard = NAN),
                                             {0}};
static const struct qn_field loss_fields[] = {
    FIELD(WORD, qn_loss_params, qn_graph_loss, reduction, .words = reductions),
    FIELD(DOUBLE, qn_loss_params, qn_graph_loss, coefficient, RANGE(-1e300, 1e300), .standard = 1),
    {0}};

const struct qn_field qn_form_held_fields[] = {
    UNKEPT("init", INIT, struct qn_form_held, init, .standard = 0),
    UNKEPT("frozen", SWITCH, struct qn_form_held, frozen, .standard = 0),
    UNKEPT("rate", DOUBLE, struct qn_form_held, rate, RANGE(0, 1e6)),
    UNKEPT("decay", DOUBLE, struct qn_form_held, decay, RANGE(0, 1e6)),
    {0}};
const struct qn_field qn_form_node_fields[] = {
    {.name = "recompute", .kind = QN_FIELD_SWITCH, .in_node = QN_FIELD_UNKEPT}, {0}};

static bool usual_rates(const qn_graph *graph, const struct qn_node *node);

static const struct qn_field rotary_fields[] = {
    FIELD2("heads", INT, struct rotary, params.heads, qn_rotary_attr, heads, RANGE(1, MOST_INT),
           .standard = 1),
    FIELD2("still", INT, struct rotary, params.still, qn_rotary_attr, still, RANGE(0, MOST_INT)),
    FIELD2("base", REAL, struct rotary, params.base, qn_rotary_attr, base, RANGE(1, MOST_FLOAT),
           .standard = 10000),
    UNKEPT("factor", DOUBLE, struct rotary, params.factor, RANGE(1, 1e12)),
    UNKEPT("low_freq_factor", DOUBLE, struct rotary, params.low_freq_factor, RANGE(1e-12, 1e12)),
    UNKEPT("high_freq_factor", DOUBLE, struct rotary, params.high_freq_factor, RANGE(1e-12, 1e12)),
    UNKEPT("original_positions", LONG, struct rotary, params.original_positions, RANGE(0, 1 << 24)),
    LIST("rates", struct rotary, rates, 1, .usual = usual_rates),
    {0}};

/* --- nodes --- */

/* make_NAME calls qn_NAME(graph, ...); `in` are the operands, `p` the attributes. */
#define MAKE(name_, type_, ...)                                                                    \
    static qn_tensor make_##name_(qn_graph *graph, const qn_tensor *in, const void *params)        \
    {                                                                                              \
        const type_ *p = params;                                                                   \
        (void)p;                                                                                   \
        return qn_##name_(graph, __VA_ARGS__);                                                     \
    }
MAKE(linear, void, in[0], in[1], in[2])
MAKE(linear_residual, void, in[0], in[1], in[2], in[3])
MAKE(linear_activation, qn_linear_activation_params, in[0], in[1], in[2], p)
MAKE(batch_matmul, qn_batch_matmul_params, in[0], in[1], p)
MAKE(conv2d, qn_conv2d_params, in[0], in[1], in[2], p)
MAKE(conv2d_concat, qn_conv2d_params, in[0], in[1], in[2], in[3], p)
MAKE(conv_transpose2d, qn_conv_transpose2d_params, in[0], in[1], in[2], p)
MAKE(max_pool2d, qn_pool2d_params, in[0], p)
MAKE(avg_pool2d, qn_pool2d_params, in[0], p)
MAKE(global_avg_pool2d, void, in[0])
MAKE(upsample2d, qn_upsample2d_params, in[0], p)
MAKE(batch_norm, qn_batch_norm_params, in[0], in[1], in[2], p)
MAKE(layer_norm, qn_layer_norm_params, in[0], in[1], in[2], p)
MAKE(rms_norm, qn_rms_norm_params, in[0], in[1], p)
MAKE(group_norm, qn_group_norm_params, in[0], in[1], in[2], p)
MAKE(relu, void, in[0])
MAKE(leaky_relu, struct number, in[0], p->value)
MAKE(sigmoid, void, in[0])
MAKE(tanh, void, in[0])
MAKE(gelu, struct word, in[0], (qn_gelu_form)p->value)
MAKE(silu, void, in[0])
MAKE(hardswish, void, in[0])
MAKE(scale, struct number, in[0], p->value)
MAKE(add, void, in[0], in[1])
MAKE(multiply, void, in[0], in[1])
MAKE(gated, struct word, in[0], in[1], (qn_gate_form)p->value)
MAKE(bias, void, in[0], in[1])
MAKE(chain, struct qn_form_steps, in, p->step, p->count)
MAKE(dropout, struct number, in[0], p->value)
MAKE(embedding, void, in[0], in[1])
/* Of the batch that the scope's network sees. */
static qn_shape seen_shape(const qn_graph *graph, const qn_shape *shape)
{
    qn_shape seen = *shape;
    for (int i = 0; i < seen.rank && graph->scope.each > 1; i++)
        seen.dim[i] *= seen.dim[i] < 0 ? graph->scope.each : 1;
    return seen;
}

static qn_tensor make_reshape(qn_graph *graph, const qn_tensor *in, const void *params)
{
    const qn_shape shape = seen_shape(graph, params);
    return qn_reshape(graph, in[0], shape.rank, shape.dim);
}

MAKE(flatten, void, in[0])
MAKE(transpose, struct qn_form_axes, in[0], p->rank, p->axis)
MAKE(slice, struct qn_slice_attr, in[0], (int)p->axis, p->start, p->length)
MAKE(softmax, void, in[0])
MAKE(attention, qn_attention_params, in[0], in[1], in[2], in[3], p)
MAKE(cached_attention, struct heads, in[0], in[1], in[2], p->heads, p->kv_heads)
MAKE(squared_error, void, in[0], in[1])
MAKE(absolute_error, void, in[0], in[1])
MAKE(binary_cross_entropy, void, in[0], in[1])
MAKE(sum, struct word, in[0], p->value)
MAKE(mean, struct word, in[0], p->value)
MAKE(masked_mean, void, in[0], in[1])
#undef MAKE

static void refuse_list(qn_graph *graph, const char *name, const struct qn_form_floats *list,
                        int64_t count, const char *what)
{
    qn_graph_fail(graph, QN_ERR_SHAPE, "%s: %s: %lld numbers, but %lld %s", graph->source.name,
                  name, (long long)list->count, (long long)count, what);
}

void qn_form_refuse_numbers(qn_graph *graph, const char *name)
{
    qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: constants have more than %d numbers", name,
                  QN_GRAPH_FILE_NUMBERS);
}

/* Whether the text may have so many numbers more in constants, some of which no line writes. */
static bool affords(qn_graph *graph, int64_t count)
{
    graph->source.numbers -= count;
    if (graph->source.numbers < 0)
        qn_form_refuse_numbers(graph, graph->source.name);
    return graph->source.numbers >= 0;
}

static qn_tensor make_concat(qn_graph *graph, const qn_tensor *in, const void *params)
{
    int count = 0;
    while (count < QN_CONCAT_INPUTS && in[count].id)
        count++;
    return qn_concat(graph, count, in, ((const struct word *)params)->value);
}

/* As many numbers as there are channels, from a list of them or of one for all, for free(); NULL
 * without a list, or with an error. */
static float *for_channels(qn_graph *graph, const char *name, const struct qn_form_floats *list,
                           int64_t channels)
{
    if (!list->count)
        return NULL;
    if (list->count != 1 && list->count != channels) {
        refuse_list(graph, name, list, channels, "channels");
        return NULL;
    }
    float *all = malloc((size_t)channels * sizeof *all);
    for (int64_t i = 0; all && i < channels; i++)
        all[i] = list->values[list->count == 1 ? 0 : i];
    if (!all)
        qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    return all;
}

static qn_tensor make_normalize(qn_graph *graph, const qn_tensor *in, const void *params)
{
    const struct normalization *p = params;
    const qn_shape shape = qn_shape_of(graph, in[0]);
    const int64_t channels = shape.rank == 4 && shape.dim[1] > 0 ? shape.dim[1] : 1;
    if (!affords(graph, channels) || !affords(graph, channels))
        return (qn_tensor){0};
    float *mean = for_channels(graph, "mean", &p->mean, channels);
    float *deviation = for_channels(graph, "deviation", &p->deviation, channels);
    const qn_tensor y = qn_normalize(graph, in[0], mean, deviation);
    free(mean);
    free(deviation);
    return y;
}

/* The class weights are one for each of `classes`; else they are refused. */
static bool weigh(qn_graph *graph, const struct cross_entropy *p, int64_t classes,
                  qn_cross_entropy_params *weighed)
{
    *weighed = p->params;
    weighed->class_weights = p->class_weights.values;
    if (!p->class_weights.values)
        return true;
    if (p->class_weights.count == classes)
        return affords(graph, classes);
    refuse_list(graph, "class_weights", &p->class_weights, classes, "classes");
    return false;
}

static qn_tensor make_softmax_cross_entropy(qn_graph *graph, const qn_tensor *in,
                                            const void *params)
{
    const struct cross_entropy *p = params;
    const qn_shape shape = qn_shape_of(graph, in[0]);
    const int dim = p->params.class_dim ? p->params.class_dim : shape.rank - 1;
    qn_cross_entropy_params weighed;
    return weigh(graph, p, dim > 0 && dim < shape.rank ? shape.dim[dim] : 0, &weighed)
               ? qn_softmax_cross_entropy(graph, in[0], in[1], &weighed)
               : (qn_tensor){0};
}

static qn_tensor make_linear_cross_entropy(qn_graph *graph, const qn_tensor *in, const void *params)
{
    qn_cross_entropy_params weighed;
    const qn_shape weight = qn_shape_of(graph, in[1]);
    return weigh(graph, params, weight.rank ? weight.dim[0] : 0, &weighed)
               ? qn_linear_cross_entropy(graph, in[0], in[1], in[2], in[3], &weighed)
               : (qn_tensor){0};
}

/* Rates that no base gives, as of Llama 3's scaling, are a list. */
static qn_tensor make_rotary(qn_graph *graph, const qn_tensor *in, const void *params)
{
    const struct rotary *p = params;
    const qn_shape shape = qn_shape_of(graph, in[0]);
    if (!affords(graph, p->rates.values ? p->rates.count : shape.rank == 3 ? shape.dim[2] : 0))
        return (qn_tensor){0};
    if (!p->rates.values)
        return qn_rotary(graph, in[0], in[1], &p->params);
    const struct qn_rotary_attr attr = {.heads = p->params.heads ? p->params.heads : 1,
                                        .still = p->params.still,
                                        .base =
                                            (float)(p->params.base != 0 ? p->params.base : 10000)};
    const qn_tensor rates = qn_op_constant(graph, "rates", p->rates.values, p->rates.count);
    return qn_op_apply(graph, qn_op_find("rotary"), (const qn_tensor[]){in[0], rates, in[1]},
                       &attr);
}

/* Whether the rates are those that heads and base give: a graph of that one node tells. */
static bool usual_rates(const qn_graph *graph, const struct qn_node *node)
{
    const struct qn_rotary_attr *attr = node->attr;
    const qn_rotary_params params = {
        .heads = attr->heads, .still = attr->still, .base = (double)attr->base};
    const struct qn_node *rates = &graph->nodes[graph->tensors[node->in[1]].node];
    const int64_t count = rates->leaf.shape.dim[0];
    const int64_t dim[] = {QN_BATCH, 1, count * attr->heads};
    qn_graph *plain = NULL;
    if (qn_graph_create(&plain, NULL) != QN_OK)
        return false;
    qn_rotary(plain, qn_input(plain, "x", QN_F32, 3, dim), (qn_tensor){0}, &params);
    const bool usual =
        qn_graph_status(plain) == QN_OK && plain->nodes[1].kind == QN_NODE_CONSTANT &&
        memcmp(plain->nodes[1].values, rates->values, (size_t)count * sizeof(float)) == 0;
    qn_graph_destroy(&plain);
    return usual;
}

static qn_tensor make_loss(qn_graph *graph, const qn_tensor *in, const void *params)
{
    qn_loss_params p = *(const qn_loss_params *)params;
    p.weights = in[1];
    qn_loss(graph, in[0], graph->source.name, &p);
    return graph->status == QN_OK ? (qn_tensor){graph->nodes[graph->n_nodes - 1].out}
                                  : (qn_tensor){0};
}

/* --- the table --- */

#define ROW_OF(name_, op_, operands_, inputs_, fields_, layer_)                                    \
    {                                                                                              \
        .name = #name_, .op = (op_), .operands = (operands_), .inputs = (inputs_),                 \
        .fields = (fields_), .make = make_##name_, .layer = (layer_)                               \
    }
#define ROW(name_, operands_, fields_) ROW_OF(name_, #name_, operands_, NULL, fields_, NULL)
#define LAYER(name_, operands_, fields_, layer_)                                                   \
    ROW_OF(name_, #name_, operands_, NULL, fields_, &qn_layer_of_##layer_)

const struct qn_form qn_forms[] = {
    LAYER(linear, "x weight bias?", NULL, rows),
    ROW_OF(linear_residual, "linear", "x weight bias? residual", NULL, NULL, NULL),
    LAYER(linear_activation, "x weight bias?", linear_activation_fields, rows),
    ROW(batch_matmul, "a b", batch_matmul_fields),
    LAYER(conv2d, "x weight bias?", conv2d_fields, images),
    ROW_OF(conv2d_concat, "conv2d", "a b weight bias?", "0312", conv2d_fields, NULL),
    LAYER(conv_transpose2d, "x weight bias?", conv_transpose2d_fields, images_back),
    ROW(max_pool2d, "x", max_pool2d_fields),
    ROW(avg_pool2d, "x", avg_pool2d_fields),
    ROW(global_avg_pool2d, "x", NULL),
    ROW(upsample2d, "x", upsample2d_fields),
    LAYER(batch_norm, "x weight? bias?", batch_norm_fields, channels),
    LAYER(layer_norm, "x weight? bias?", layer_norm_fields, last),
    LAYER(rms_norm, "x weight?", rms_norm_fields, last_scale),
    LAYER(group_norm, "x weight? bias?", group_norm_fields, channels),
    ROW(relu, "x", NULL),
    ROW(leaky_relu, "x", leaky_relu_fields),
    ROW(sigmoid, "x", NULL),
    ROW(tanh, "x", NULL),
    ROW(gelu, "x", gelu_fields),
    ROW(silu, "x", NULL),
    ROW(hardswish, "x", NULL),
    ROW(scale, "x", scale_fields),
    ROW(add, "a b", NULL),
    ROW(multiply, "a b", NULL),
    ROW(gated, "gate x", gated_fields),
    ROW(bias, "x bias", NULL),
    ROW(chain, "a b? c? d? e? bias?", chain_fields),
    ROW(dropout, "x", dropout_fields),
    LAYER(embedding, "ids table", NULL, table),
    ROW(reshape, "x", reshape_fields),
    ROW_OF(flatten, NULL, "x", NULL, NULL, NULL),
    ROW(transpose, "x", transpose_fields),
    ROW(concat, "a b c? d? e? f?", concat_fields),
    ROW(slice, "x", slice_fields),
    ROW(normalize, "images", normalize_fields),
    ROW(softmax, "x", NULL),
    ROW_OF(rotary, "rotary", "x positions?", "02", rotary_fields, NULL),
    ROW(attention, "q k? v? lengths?", attention_fields),
    ROW(cached_attention, "q cache positions", cached_attention_fields),
    ROW(softmax_cross_entropy, "logits labels", softmax_cross_entropy_fields),
    ROW_OF(linear_cross_entropy, "linear_cross_entropy", "x weight bias? labels", "0142",
           linear_cross_entropy_fields, NULL),
    ROW(squared_error, "a b", NULL),
    ROW(absolute_error, "a b", NULL),
    ROW(binary_cross_entropy, "logits targets", NULL),
    ROW(sum, "x", sum_fields),
    ROW(mean, "x", sum_fields),
    ROW(masked_mean, "x lengths?", NULL),
    ROW(loss, "rows weights?", loss_fields),
    {0},
};

const struct qn_form *qn_form_find(const char *name)
{
    for (const struct qn_form *form = qn_forms; form->name; form++)
        if (strcmp(form->name, name) == 0)
            return form;
    return NULL;
}

bool qn_form_is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr("(),=#\"", *c))
            return false;
    return *name && strcmp(name, "-") != 0 && qn_escape(NULL, 0, name) == strlen(name);
}

int qn_form_operands(const struct qn_form *form, int *required)
{
    int count = 1;
    int optional = 0;
    for (const char *c = form->operands; *c; c++) {
        count += *c == ' ';
        optional += *c == '?';
    }
    *required = count - optional;
    return count;
}

int qn_form_input(const struct qn_form *form, int i)
{
    return form->inputs ? form->inputs[i] - '0' : i;
}

const struct qn_field *qn_form_constant(const struct qn_form *form, int i)
{
    for (const struct qn_field *field = form->fields; field && field->name; field++)
        if (field->kind == QN_FIELD_FLOATS && field->in_node == (size_t)i)
            return field;
    return NULL;
}

/* Whether each input that the node has is an operand of the row or the constant of an attribute,
 * and all operands that the row needs are there. */
static bool writes(const struct qn_form *form, const struct qn_node *node)
{
    bool operand[QN_MAX_IN] = {false};
    const char *word = form->operands;
    int required;
    if (!form->op || strcmp(form->op, node->op->name) != 0)
        return false;
    const int count = qn_form_operands(form, &required);
    for (int i = 0; i < count; i++) {
        const int input = qn_form_input(form, i);
        const size_t length = strcspn(word, " ");
        operand[input] = true;
        if (!node->in[input] && word[length - 1] != '?')
            return false;
        word += length + (word[length] == ' ');
    }
    for (int i = 0; i < node->op->n_in; i++)
        if (node->in[i] && !operand[i] && !qn_form_constant(form, i))
            return false;
    return true;
}

const struct qn_form *qn_form_of(const struct qn_node *node)
{
    for (const struct qn_form *form = qn_forms; form->name; form++)
        if (writes(form, node))
            return form;
    return NULL;
}
