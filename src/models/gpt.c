/* SPDX-License-Identifier: MIT
 *
 * A decoder of tokens in the manner of GPT-2 (Radford et al., "Language models are unsupervised
 * multitask learners", 2019): learned positions, layer norm before attention and before the
 * perceptron, GELU by tanh. Names and layouts are those of nanoGPT: weights are (out, in), where
 * Hugging Face keeps GPT-2's the other way round. A sample is a row of tokens, each with the next
 * one as its label.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <math.h>
#include <stdio.h>

enum { NAME_BYTES = 48 };

static const double DEVIATION = 0.02; /* of all weights at the start */

struct settings {
    double layers, heads, width, tied;
};

static const struct qn_model_key keys[] = {
    {"layers", offsetof(struct settings, layers), 1, 1024, true},
    {"heads", offsetof(struct settings, heads), 1, 1024, true},
    {"width", offsetof(struct settings, width), 8, 65536, true},
    {"tied", offsetof(struct settings, tied), 0, 1, true},
    {0},
};

/* Names of a block's layers: "transformer.h.2.attn.c_proj". */
struct block {
    qn_graph *graph;
    int number;
    int heads;
    double last; /* deviation of what is added to the residual stream */
    char name[NAME_BYTES];
};

static const char *name_of(struct block *block, const char *layer)
{
    snprintf(block->name, NAME_BYTES, "transformer.h.%d.%s", block->number, layer);
    return block->name;
}

/* The width of the stream, and some times that of what the layer makes of it. */
static qn_tensor widen(struct block *block, qn_tensor x, const char *layer, int times)
{
    qn_shape shape = qn_shape_of(block->graph, x);
    const struct qn_layer_dense dense = {
        .features = times * (shape.rank ? shape.dim[shape.rank - 1] : 1), .deviation = DEVIATION};
    return qn_layer_dense(block->graph, x, name_of(block, layer), &dense);
}

static qn_tensor add_to(struct block *block, qn_tensor stream, qn_tensor x, const char *layer)
{
    qn_shape shape = qn_shape_of(block->graph, stream);
    const struct qn_layer_dense dense = {.features = shape.rank ? shape.dim[shape.rank - 1] : 1,
                                         .deviation = block->last,
                                         .residual = stream};
    return qn_layer_dense(block->graph, x, name_of(block, layer), &dense);
}

static qn_tensor attend(struct block *block, qn_tensor stream)
{
    qn_tensor x = qn_layer_row_norm(block->graph, stream, name_of(block, "ln_1"));
    const qn_attention_params params = {.heads = block->heads, .causal = true};
    x = widen(block, x, "attn.c_attn", 3);
    x = qn_attention(block->graph, x, (qn_tensor){0}, (qn_tensor){0}, (qn_tensor){0}, &params);
    return add_to(block, stream, x, "attn.c_proj");
}

static qn_tensor think(struct block *block, qn_tensor stream)
{
    qn_tensor x = qn_layer_row_norm(block->graph, stream, name_of(block, "ln_2"));
    x = qn_gelu(block->graph, widen(block, x, "mlp.c_fc", 4), QN_GELU_TANH);
    return add_to(block, stream, x, "mlp.c_proj");
}

static qn_tensor table(qn_graph *graph, const char *name, int64_t rows, int64_t width)
{
    const qn_init init = {QN_INIT_NORMAL, 0, DEVIATION};
    return qn_parameter(graph, name, 2, (int64_t[]){rows, width}, &init);
}

/* Every sample begins at position 0: the table of positions is one bias for all samples. */
static qn_tensor embed(qn_graph *graph, qn_tensor tokens, qn_tensor words, int64_t length,
                       int64_t width)
{
    qn_tensor positions = table(graph, "transformer.wpe.weight", length, width);
    qn_tensor x = qn_flatten(graph, qn_embedding(graph, tokens, words));
    x = qn_bias(graph, x, qn_reshape(graph, positions, 1, (int64_t[]){length * width}));
    return qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, length, width});
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, char error[200])
{
    struct settings s = {.layers = 12, .heads = 12, .width = 768, .tied = 1};
    if (qn_model_read(keys, options, n_options, &s, error))
        return error;
    if (data->channels != 1 || data->height != 1)
        return "model gpt: a sample is a row of tokens: data of one channel and height 1";
    if (fmod(s.width, s.heads) != 0)
        return "model.width: is not a multiple of heads";
    const int64_t length = data->width, width = (int64_t)s.width;
    struct block block = {
        .graph = graph, .heads = (int)s.heads, .last = DEVIATION / sqrt(2 * s.layers)};
    qn_tensor tokens = qn_input(graph, "tokens", QN_I32, 2, (int64_t[]){QN_BATCH, length});
    qn_tensor words = table(graph, "transformer.wte.weight", data->classes, width);
    qn_tensor x = embed(graph, tokens, words, length, width);
    for (block.number = 0; block.number < (int)s.layers; block.number++)
        x = think(&block, attend(&block, x));
    x = qn_layer_row_norm(graph, x, "transformer.ln_f");
    if (s.tied == 0)
        words = table(graph, "lm_head.weight", data->classes, width);
    x = qn_linear(graph, x, words, (qn_tensor){0});
    qn_name(graph, x, "lm_head");
    qn_layer_classify(graph, x, 0);
    return NULL;
}

const struct qn_model qn_model_gpt = {
    "gpt",
    "layers           blocks of attention and perceptron (12)\n"
    "heads            of attention; divides width (12)\n"
    "width            features of a token (768)\n"
    "tied             1: the table of tokens is the last layer's weight, too (1)\n",
    build,
};
