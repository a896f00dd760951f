/* SPDX-License-Identifier: MIT
 *
 * A decoder of tokens in the manner of GPT-2 (Radford et al., "Language models are unsupervised
 * multitask learners", 2019): learned positions, layer norm before attention and before the
 * perceptron, GELU by tanh. Names and layouts are those of nanoGPT: weights are (out, in), where
 * Hugging Face keeps GPT-2's the other way round. A sample is a row of tokens, each with the next
 * one as its label, or QN_IGNORED_LABEL.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 48 };

static const double DEVIATION = 0.02; /* of all weights at the start */

struct settings {
    double layers, heads, width, tied, fused, logits;
};

static const struct qn_model_key keys[] = {
    {"layers", offsetof(struct settings, layers), 1, 1024, true},
    {"heads", offsetof(struct settings, heads), 1, 1024, true},
    {"width", offsetof(struct settings, width), 8, 65536, true},
    {"tied", offsetof(struct settings, tied), 0, 1, true},
    {"fused", offsetof(struct settings, fused), 0, 1, true},
    {"logits", offsetof(struct settings, logits), 0, 1, true},
    {0},
};

/* Names of a block's layers: "transformer.h.2.attn.c_proj". */
struct block {
    qn_graph *graph;
    const struct qn_lora *lora;
    int number;
    int heads;
    struct qn_layer_text text;
    qn_tensor mask; /* for attention in steps; none: in one operator */
    double last;    /* deviation of what is added to the residual stream */
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
    const struct qn_layer_dense dense = {.features =
                                             times * (shape.rank ? shape.dim[shape.rank - 1] : 1),
                                         .deviation = DEVIATION,
                                         .lora = block->lora};
    return qn_layer_dense(block->graph, x, name_of(block, layer), &dense);
}

static qn_tensor add_to(struct block *block, qn_tensor stream, qn_tensor x, const char *layer)
{
    qn_shape shape = qn_shape_of(block->graph, stream);
    const struct qn_layer_dense dense = {.features = shape.rank ? shape.dim[shape.rank - 1] : 1,
                                         .deviation = block->last,
                                         .residual = stream,
                                         .lora = block->lora};
    return qn_layer_dense(block->graph, x, name_of(block, layer), &dense);
}

static qn_tensor cached_attention(struct block *block, qn_tensor x,
                                  const qn_attention_params *params)
{
    qn_graph *graph = block->graph;
    const int64_t width = qn_shape_of(graph, x).dim[2] / 3;
    qn_tensor q = qn_slice(graph, x, 2, 0, width);
    qn_tensor keys_values = qn_slice(graph, qn_flatten(graph, x), 1, width, 2 * width);
    return qn_layer_cached_attention(graph, &block->text, block->number, q, keys_values, params);
}

static qn_tensor attention(struct block *block, qn_tensor x)
{
    const qn_attention_params params = {.heads = block->heads, .causal = true};
    if (block->text.cache)
        return cached_attention(block, x, &params);
    return qn_attention(block->graph, x, (qn_tensor){0}, (qn_tensor){0}, (qn_tensor){0}, &params);
}

/* Part 0, 1 or 2 of what attention works on: (b, t, 3 c) -> (b, heads, t, c / heads). */
static qn_tensor heads_of(struct block *block, qn_tensor x, int part)
{
    const qn_shape shape = qn_shape_of(block->graph, x);
    const int64_t length = shape.dim[1], width = shape.dim[2] / 3;
    const int64_t split[] = {QN_BATCH, length, block->heads, width / block->heads};
    x = qn_slice(block->graph, x, 2, part * width, width);
    return qn_transpose(block->graph, qn_reshape(block->graph, x, 4, split), 4,
                        (int[]){0, 2, 1, 3});
}

/* The same from its parts, each with its result in memory: what attention costs where no operator
 * does it whole. The mask is a bias of every matrix of scores. */
static qn_tensor attention_in_steps(struct block *block, qn_tensor x)
{
    qn_graph *graph = block->graph;
    qn_tensor q = heads_of(block, x, 0), k = heads_of(block, x, 1), v = heads_of(block, x, 2);
    const qn_shape shape = qn_shape_of(graph, q);
    const int64_t heads = shape.dim[1], length = shape.dim[2], size = shape.dim[3];
    const qn_batch_matmul_params turned = {.transpose_b = true};
    x = qn_scale(graph, qn_batch_matmul(graph, q, k, &turned), 1 / sqrt((double)size));
    x = qn_reshape(graph, x, 2, (int64_t[]){heads * QN_BATCH, length * length});
    x = qn_bias(graph, x, block->mask);
    x = qn_reshape(graph, x, 4, (int64_t[]){QN_BATCH, heads, length, length});
    x = qn_batch_matmul(graph, qn_softmax(graph, x), v, NULL);
    x = qn_transpose(graph, x, 4, (int[]){0, 2, 1, 3});
    return qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, length, heads * size});
}

static qn_tensor attend(struct block *block, qn_tensor stream)
{
    qn_tensor x = qn_layer_row_norm(block->graph, stream, name_of(block, "ln_1"), 0);
    x = widen(block, x, "attn.c_attn", 3);
    x = block->mask.id ? attention_in_steps(block, x) : attention(block, x);
    qn_name(block->graph, x, name_of(block, "attn"));
    return add_to(block, stream, x, "attn.c_proj");
}

static qn_tensor think(struct block *block, qn_tensor stream)
{
    qn_tensor x = qn_layer_row_norm(block->graph, stream, name_of(block, "ln_2"), 0);
    x = qn_gelu(block->graph, widen(block, x, "mlp.c_fc", 4), QN_GELU_TANH);
    qn_name(block->graph, x, name_of(block, "mlp.gelu"));
    return add_to(block, stream, x, "mlp.c_proj");
}

static qn_tensor embed(qn_graph *graph, const struct qn_layer_text *text, qn_tensor words,
                       int64_t rows, int64_t width)
{
    qn_tensor positions = qn_layer_table(graph, "transformer.wpe.weight", rows, width, DEVIATION);
    return qn_layer_positions(graph, text, qn_embedding(graph, text->tokens, words), positions);
}

/* Added to scores, (t, t): of later tokens nothing is left. The number is one that f16 holds. */
static qn_tensor causal_mask(qn_graph *graph, int64_t length)
{
    float *values = calloc((size_t)(length * length), sizeof *values);
    for (int64_t i = 0; values && i < length * length; i++)
        values[i] = i % length > i / length ? -3e4f : 0;
    qn_tensor mask = qn_constant(graph, "mask", values, length * length);
    free(values);
    return mask;
}

static void learn_in_steps(qn_graph *graph, qn_tensor x, qn_tensor words, const qn_model_data *data)
{
    x = qn_linear(graph, x, words, (qn_tensor){0});
    qn_name(graph, x, "lm_head");
    qn_layer_classify_tokens(graph, x, data);
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {
        .layers = 12, .heads = 12, .width = 768, .tied = 1, .fused = 1, .logits = 1};
    const char *wrong = qn_model_read(keys, options, n_options, &s, error);
    if (!wrong)
        wrong = qn_model_refuse_heads(s.width, s.heads);
    if (wrong)
        return wrong;
    const int64_t length = data->width, width = (int64_t)s.width;
    struct block block = {.graph = graph,
                          .lora = lora,
                          .heads = (int)s.heads,
                          .last = DEVIATION / sqrt(2 * s.layers)};
    block.text = qn_layer_text(graph, data);
    qn_tensor words =
        qn_layer_table(graph, "transformer.wte.weight", data->tokens, width, DEVIATION);
    qn_tensor x = embed(graph, &block.text, words, qn_layer_text_longest(data), width);
    if (s.fused == 0 && !data->cache)
        block.mask = causal_mask(graph, length);
    for (block.number = 0; block.number < (int)s.layers; block.number++)
        x = think(&block, attend(&block, x));
    x = qn_layer_row_norm(graph, x, "transformer.ln_f", 0);
    if (s.tied == 0)
        words = qn_layer_table(graph, "lm_head.weight", data->tokens, width, DEVIATION);
    if (s.fused == 0 && !data->cache && !data->predict)
        learn_in_steps(graph, x, words, data);
    else
        qn_layer_learn_tokens(
            graph, x,
            &(struct qn_layer_words){
                .name = "lm_head", .words = words, .logits = s.logits != 0, .data = data});
    return NULL;
}

/* GPT-2's dense weights are (in, out) there. Masks of attention were saved as buffers, of bytes or
 * booleans; heads of other tasks may lie beside the network. The table of positions is as long as
 * the longest text, ours as a sample. */
static const qn_layout_rule rules[] = {
    {"*.attn.c_attn.weight", QN_LAYOUT_TRANSPOSED, NULL},
    {"*.attn.c_proj.weight", QN_LAYOUT_TRANSPOSED, NULL},
    {"*.mlp.c_fc.weight", QN_LAYOUT_TRANSPOSED, NULL},
    {"*.mlp.c_proj.weight", QN_LAYOUT_TRANSPOSED, NULL},
    {"transformer.wpe.weight", QN_LAYOUT_FIRST_ROWS, NULL},
    {"lm_head.weight", QN_LAYOUT_TIED, "transformer.wte.weight"},
    {"*.attn.bias", QN_LAYOUT_SKIPPED, NULL},
    {"*.attn.masked_bias", QN_LAYOUT_SKIPPED, NULL},
    {"score.weight", QN_LAYOUT_SKIPPED, NULL},
    {"multiple_choice_head.*", QN_LAYOUT_SKIPPED, NULL},
};
static const qn_layout huggingface = {"huggingface", "transformer.", rules,
                                      sizeof rules / sizeof *rules};

const struct qn_model qn_model_gpt = {
    "gpt",
    "layers           blocks of attention and perceptron (12)\n"
    "heads            of attention; divides width (12)\n"
    "width            features of a token (768)\n"
    "tied             1: the table of tokens is the last layer's weight, too (1)\n"
    "fused            0: attention and last layer in steps, with all scores and logits in memory "
    "(1)\n"
    "logits           0: with fused 1, evaluation gives the loss alone and never holds logits "
    "(1)\n",
    build,
    .tokens = true,
    .caches = true,
    .layout = &huggingface,
};
