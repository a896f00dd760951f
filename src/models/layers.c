/* SPDX-License-Identifier: MIT */
#include "layers.h"

#include <quern/data.h>
#include <stdio.h>

enum { NAME_BYTES = 96 };

static qn_tensor parameter(qn_graph *graph, const char *layer, const char *what, int rank,
                           const int64_t *dim, qn_init init)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s.%s", layer, what);
    return qn_parameter(graph, name, rank, dim, &init);
}

qn_tensor qn_layer_images(qn_graph *graph, const qn_model_data *data)
{
    const int64_t dim[] = {QN_BATCH, data->channels, data->height, data->width};
    float deviation[QN_MODEL_MAX_CHANNELS];
    for (int c = 0; c < QN_MODEL_MAX_CHANNELS; c++)
        deviation[c] = data->deviation[c] == 0 ? 1 : data->deviation[c];
    qn_tensor images = qn_input(graph, "images", data->real ? QN_F32 : QN_U8, 4, dim);
    return qn_normalize(graph, images, data->mean, deviation);
}

qn_tensor qn_layer_conv(qn_graph *graph, qn_tensor x, const char *name,
                        const struct qn_layer_conv *conv)
{
    const int64_t side = conv->kernel;
    const int64_t in = qn_shape_of(graph, x).dim[1] + qn_shape_of(graph, conv->behind).dim[1];
    const int64_t dim[] = {conv->channels, in, side, side};
    const qn_init init = qn_init_he((conv->fan_out ? conv->channels : in) * side * side);
    const qn_conv2d_params params = {.stride = {conv->stride, conv->stride},
                                     .padding = {conv->kernel / 2, conv->kernel / 2}};
    qn_tensor weight = parameter(graph, name, "weight", 4, dim, init), bias = {0};
    if (conv->bias)
        bias = parameter(graph, name, "bias", 1, &conv->channels, qn_init_constant(0));
    qn_tensor y = conv->behind.id ? qn_conv2d_concat(graph, x, conv->behind, weight, bias, &params)
                                  : qn_conv2d(graph, x, weight, bias, &params);
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_double(qn_graph *graph, qn_tensor x, const char *name,
                          const struct qn_layer_double *how)
{
    const int64_t in = qn_shape_of(graph, x).dim[1], dim[] = {in, how->channels, 2, 2};
    qn_tensor weight = parameter(graph, name, "weight", 4, dim, qn_init_he(in));
    qn_tensor bias = parameter(graph, name, "bias", 1, &how->channels, qn_init_constant(0));
    const qn_conv_transpose2d_params params = {.stride = {2, 2},
                                               .output_padding = {how->more[0], how->more[1]}};
    qn_tensor y = qn_conv_transpose2d(graph, x, weight, bias, &params);
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_batch_norm(qn_graph *graph, qn_tensor x, const char *name, int group)
{
    const int64_t channels = qn_shape_of(graph, x).dim[1];
    qn_tensor scale = parameter(graph, name, "weight", 1, &channels, qn_init_constant(1));
    qn_tensor shift = parameter(graph, name, "bias", 1, &channels, qn_init_constant(0));
    qn_tensor y = qn_batch_norm(graph, x, scale, shift, &(qn_batch_norm_params){.group = group});
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_group_norm(qn_graph *graph, qn_tensor x, const char *name)
{
    enum { MOST_GROUPS = 8, LEAST_CHANNELS = 2 };
    const int64_t channels = qn_shape_of(graph, x).dim[1];
    int groups = MOST_GROUPS;
    while (groups > 1 && (channels % groups || channels / groups < LEAST_CHANNELS))
        groups--;
    qn_tensor scale = parameter(graph, name, "weight", 1, &channels, qn_init_constant(1));
    qn_tensor shift = parameter(graph, name, "bias", 1, &channels, qn_init_constant(0));
    qn_tensor y = qn_group_norm(graph, x, scale, shift, &(qn_group_norm_params){.groups = groups});
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_row_norm(qn_graph *graph, qn_tensor x, const char *name, double eps)
{
    qn_shape shape = qn_shape_of(graph, x);
    const int64_t features = shape.rank ? shape.dim[shape.rank - 1] : 1;
    qn_tensor scale = parameter(graph, name, "weight", 1, &features, qn_init_constant(1));
    qn_tensor shift = parameter(graph, name, "bias", 1, &features, qn_init_constant(0));
    qn_tensor y = qn_layer_norm(graph, x, scale, shift, &(qn_layer_norm_params){.eps = eps});
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_rms_norm(qn_graph *graph, qn_tensor x, const char *name, double eps)
{
    qn_shape shape = qn_shape_of(graph, x);
    const int64_t features = shape.rank ? shape.dim[shape.rank - 1] : 1;
    qn_tensor scale = parameter(graph, name, "weight", 1, &features, qn_init_constant(1));
    qn_tensor y = qn_rms_norm(graph, x, scale, &(qn_rms_norm_params){.eps = eps});
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_table(qn_graph *graph, const char *name, int64_t rows, int64_t width,
                         double deviation)
{
    const qn_init init = {QN_INIT_NORMAL, 0, deviation};
    return qn_parameter(graph, name, 2, (int64_t[]){rows, width}, &init);
}

/* An input with a number for each token; graphs for different lengths have each their own. */
static qn_tensor tokens_input(qn_graph *graph, const qn_model_data *data, const char *what)
{
    const int64_t row[] = {QN_BATCH, data->cache ? 1 : data->width};
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s.%d", what, data->width);
    return qn_input(graph, data->width < data->longest ? name : what, QN_I32, 2, row);
}

qn_tensor qn_layer_text_labels(qn_graph *graph, const qn_model_data *data)
{
    return tokens_input(graph, data, "labels");
}

int64_t qn_layer_text_longest(const qn_model_data *data)
{
    return data->longest ? data->longest : data->width;
}

struct qn_layer_text qn_layer_text(qn_graph *graph, const qn_model_data *data)
{
    const int64_t row[] = {QN_BATCH, 1};
    struct qn_layer_text text = {.cache = data->cache,
                                 .tokens = tokens_input(graph, data, "tokens")};
    if (text.cache)
        text.positions = qn_input(graph, "positions", QN_I32, 2, row);
    return text;
}

qn_tensor qn_layer_cached_attention(qn_graph *graph, const struct qn_layer_text *text, int layer,
                                    qn_tensor q, qn_tensor keys_values,
                                    const qn_attention_params *params)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, QN_LAYER_CACHE "%d", layer);
    const int64_t dim[] = {text->cache, qn_shape_of(graph, keys_values).dim[1]};
    qn_tensor cache = qn_cell_input(graph, name, qn_dtype_of(graph, keys_values), 2, dim);
    qn_output(graph, keys_values, name);
    return qn_cached_attention(graph, q, cache, text->positions, params->heads, params->kv_heads);
}

qn_tensor qn_layer_positions(qn_graph *graph, const struct qn_layer_text *text, qn_tensor x,
                             qn_tensor table)
{
    const qn_shape shape = qn_shape_of(graph, table);
    const qn_shape of_x = qn_shape_of(graph, x);
    const int64_t rows = shape.dim[0], width = shape.dim[1], length = of_x.dim[1];
    if (text && text->cache)
        return qn_add(graph, x, qn_embedding(graph, text->positions, table));
    if (length < rows) {
        table = qn_reshape(graph, table, 2, (int64_t[]){1, rows * width});
        table = qn_slice(graph, table, 1, 0, length * width);
    }
    x = qn_flatten(graph, x);
    x = qn_bias(graph, x, qn_reshape(graph, table, 1, (int64_t[]){length * width}));
    return qn_reshape(graph, x, 3, (int64_t[]){of_x.dim[0], length, width});
}

static qn_tensor product(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                         const struct qn_layer_dense *dense)
{
    const qn_linear_activation_params params = {.activation = QN_ACTIVATION_RELU};
    if (dense->relu)
        return qn_linear_activation(graph, x, weight, bias, &params);
    if (dense->residual.id)
        return qn_linear_residual(graph, x, weight, bias, dense->residual);
    return qn_linear(graph, x, weight, bias);
}

/* `dense`, to which the product of the adapter's low rank is added. */
static qn_tensor adapted(qn_graph *graph, qn_tensor x, const char *name, qn_tensor weight,
                         qn_tensor bias, const struct qn_layer_dense *dense)
{
    const struct qn_lora *lora = dense->lora;
    const int64_t in = qn_shape_of(graph, weight).dim[1], rank = (int64_t)lora->rank;
    const qn_tensor none = {0};
    qn_tensor a =
        parameter(graph, name, "lora_A.weight", 2, (int64_t[]){rank, in}, qn_init_fan_in(in));
    qn_tensor b = parameter(graph, name, "lora_B.weight", 2, (int64_t[]){dense->features, rank},
                            qn_init_constant(0));
    qn_tensor low = lora->dropout > 0 ? qn_dropout(graph, x, lora->dropout) : x;
    low = qn_scale(graph, qn_linear(graph, low, a, none), lora->alpha / lora->rank);
    qn_tensor added = dense->residual.id ? qn_linear_residual(graph, low, b, none, dense->residual)
                                         : qn_linear(graph, low, b, none);
    qn_tensor y = qn_linear_residual(graph, x, weight, bias, added);
    return dense->relu ? qn_relu(graph, y) : y;
}

qn_tensor qn_layer_dense(qn_graph *graph, qn_tensor x, const char *name,
                         const struct qn_layer_dense *dense)
{
    qn_shape shape = qn_shape_of(graph, x);
    const int64_t in = shape.rank ? shape.dim[shape.rank - 1] : 1;
    qn_init weights = qn_init_fan_in(in), shifts = weights;
    if (dense->deviation > 0) {
        weights = (qn_init){QN_INIT_NORMAL, 0, dense->deviation};
        shifts = qn_init_constant(0);
    }
    qn_tensor weight =
        parameter(graph, name, "weight", 2, (int64_t[]){dense->features, in}, weights);
    qn_tensor bias = {0};
    if (!dense->no_bias)
        bias = parameter(graph, name, "bias", 1, &dense->features, shifts);
    qn_tensor y = dense->lora && qn_lora_has(dense->lora, name)
                      ? adapted(graph, x, name, weight, bias, dense)
                      : product(graph, x, weight, bias, dense);
    qn_name(graph, y, name);
    return y;
}

qn_tensor qn_layer_linear(qn_graph *graph, qn_tensor x, const char *name, int64_t features,
                          const struct qn_lora *lora)
{
    const struct qn_layer_dense dense = {.features = features, .lora = lora};
    return qn_layer_dense(graph, x, name, &dense);
}

qn_tensor qn_layer_linear_relu(qn_graph *graph, qn_tensor x, const char *name, int64_t features,
                               const struct qn_lora *lora)
{
    const struct qn_layer_dense dense = {.features = features, .relu = true, .lora = lora};
    return qn_layer_dense(graph, x, name, &dense);
}

static const qn_cross_entropy_params counted = {.ignore = true, .ignore_label = QN_IGNORED_LABEL};

static void minimize(qn_graph *graph, qn_tensor losses)
{
    qn_output(graph, losses, "loss");
    qn_loss(graph, losses, "objective", NULL);
}

static void learn(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                  const qn_cross_entropy_params *params)
{
    minimize(graph, qn_softmax_cross_entropy(graph, logits, labels, params));
}

/* The loss of a second label comes in by its share. */
static void learn_mixed(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                        const qn_cross_entropy_params *params)
{
    const int64_t rows = QN_BATCH;
    qn_tensor others = qn_input(graph, "mixed_labels", QN_I32, 1, &rows);
    qn_tensor shares = qn_input(graph, "mixed_shares", QN_F32, 1, &rows);
    qn_tensor own = qn_softmax_cross_entropy(graph, logits, labels, params);
    qn_tensor other = qn_softmax_cross_entropy(graph, logits, others, params);
    qn_tensor more = qn_add(graph, other, qn_scale(graph, own, -1));
    qn_output(graph, own, "loss");
    qn_loss(graph, qn_add(graph, own, qn_multiply(graph, shares, more)), "objective", NULL);
}

void qn_layer_classify(qn_graph *graph, qn_tensor logits, const qn_model_data *data,
                       double label_smoothing)
{
    qn_shape shape = qn_shape_of(graph, logits);
    qn_output(graph, logits, data->embedding ? "embedding" : "logits");
    if (data->predict || data->embedding)
        return;
    qn_tensor labels = qn_input(graph, "labels", QN_I32, shape.rank - 1, shape.dim);
    (data->mixed ? learn_mixed : learn)(
        graph, logits, labels, &(qn_cross_entropy_params){.label_smoothing = label_smoothing});
}

void qn_layer_tell_targets(qn_graph *graph, qn_tensor x, const qn_model_data *data, bool absolute)
{
    qn_output(graph, x, data->binary ? "logits" : "predictions");
    if (data->predict)
        return;
    qn_tensor targets = qn_input(graph, "targets", QN_F32, 2, (int64_t[]){QN_BATCH, data->targets});
    minimize(graph, data->binary ? qn_binary_cross_entropy(graph, x, targets)
                    : absolute   ? qn_absolute_error(graph, x, targets)
                                 : qn_squared_error(graph, x, targets));
}

void qn_layer_classify_tokens(qn_graph *graph, qn_tensor logits, const qn_model_data *data)
{
    qn_output(graph, logits, "logits");
    learn(graph, logits, qn_layer_text_labels(graph, data), &counted);
}

/* The one row of x (b, t, c) at the place that is asked for, (b, c): 0 and 1 as factors change no
 * bit. */
static qn_tensor take_asked(qn_graph *graph, qn_tensor x)
{
    const qn_shape shape = qn_shape_of(graph, x);
    const int64_t length = shape.dim[1], width = shape.dim[2];
    qn_tensor asked = qn_input(graph, "asked", QN_F32, 3, (int64_t[]){QN_BATCH, 1, length});
    x = qn_batch_matmul(graph, asked, x, NULL);
    return qn_reshape(graph, x, 2, (int64_t[]){QN_BATCH, width});
}

static void give_logits(qn_graph *graph, qn_tensor x, const struct qn_layer_words *last)
{
    if (last->data->asked)
        x = take_asked(graph, x);
    x = qn_linear(graph, x, last->words, last->bias);
    qn_name(graph, x, last->name);
    qn_output(graph, x, "logits");
}

void qn_layer_learn_tokens(qn_graph *graph, qn_tensor x, const struct qn_layer_words *last)
{
    if (last->data->cache || last->data->predict) {
        if (last->logits || last->data->predict)
            give_logits(graph, x, last);
        return;
    }
    qn_tensor labels = qn_layer_text_labels(graph, last->data);
    qn_tensor losses = qn_linear_cross_entropy(graph, x, last->words, last->bias, labels, &counted);
    qn_name(graph, losses, last->name);
    qn_loss(graph, losses, "objective", NULL);
    if (last->logits) {
        x = qn_linear(graph, x, last->words, last->bias);
        qn_output(graph, x, "logits");
        losses = qn_softmax_cross_entropy(graph, x, labels, &counted);
    }
    qn_output(graph, losses, "loss");
}

void qn_layer_segment(qn_graph *graph, qn_tensor logits, const qn_model_data *data)
{
    qn_shape shape = qn_shape_of(graph, logits);
    const int64_t dim[] = {QN_BATCH, shape.dim[2], shape.dim[3]};
    qn_output(graph, logits, "logits");
    if (data->predict)
        return;
    qn_tensor labels = qn_input(graph, "labels", QN_U8, 3, dim);
    learn(graph, logits, labels, &(qn_cross_entropy_params){.class_dim = 1});
}
