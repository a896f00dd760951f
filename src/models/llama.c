/* SPDX-License-Identifier: MIT
 *
 * A decoder of tokens in the manner of Llama (Touvron et al., "LLaMA: open and efficient foundation
 * language models", 2023): RMS norm before attention and before the perceptron, rotary positions,
 * fewer heads of keys and values than of queries, SwiGLU, no bias anywhere. Names and layouts are
 * those of Hugging Face's LlamaForCausalLM. The numbers that keys have by default are TinyLlama's
 * (1.1 billion parameters). A sample is a row of tokens, each with the next one as its label, or
 * QN_IGNORED_LABEL.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <math.h>
#include <stdio.h>

enum { NAME_BYTES = 64 };

static const double DEVIATION = 0.02; /* of all weights at the start */

struct settings {
    double layers, heads, kv_heads, width, inner, tied, base, eps, logits;
    double factor, low_freq_factor, high_freq_factor, original_positions;
};

static const struct qn_model_key keys[] = {
    {"layers", offsetof(struct settings, layers), 1, 1024, true},
    {"heads", offsetof(struct settings, heads), 1, 1024, true},
    {"kv_heads", offsetof(struct settings, kv_heads), 1, 1024, true},
    {"width", offsetof(struct settings, width), 8, 65536, true},
    {"inner", offsetof(struct settings, inner), 1, 1 << 20, true},
    {"tied", offsetof(struct settings, tied), 0, 1, true},
    {"base", offsetof(struct settings, base), 2, 1e9, false},
    {"eps", offsetof(struct settings, eps), 1e-12, 1e-2, false},
    {"logits", offsetof(struct settings, logits), 0, 1, true},
    {"factor", offsetof(struct settings, factor), 1, 1e12, false},
    {"low_freq_factor", offsetof(struct settings, low_freq_factor), 1e-12, 1e12, false},
    {"high_freq_factor", offsetof(struct settings, high_freq_factor), 1e-12, 1e12, false},
    {"original_positions", offsetof(struct settings, original_positions), 0, 1 << 24, true},
    {0},
};

/* One of the layers; its parts are named "model.layers.2.mlp.up_proj". */
struct block {
    qn_graph *graph;
    const struct qn_lora *lora;
    int number;
    const struct settings *settings;
    struct qn_layer_text text;
    char name[NAME_BYTES];
};

static const char *name_of(struct block *block, const char *layer)
{
    snprintf(block->name, NAME_BYTES, "model.layers.%d.%s", block->number, layer);
    return block->name;
}

/* `residual`: none, or what is added in the pass of the product. */
static qn_tensor dense(struct block *block, qn_tensor x, const char *layer, double features,
                       qn_tensor residual)
{
    const struct qn_layer_dense how = {.features = (int64_t)features,
                                       .deviation = DEVIATION,
                                       .residual = residual,
                                       .no_bias = true,
                                       .lora = block->lora};
    return qn_layer_dense(block->graph, x, name_of(block, layer), &how);
}

static qn_tensor norm(struct block *block, qn_tensor x, const char *layer)
{
    return qn_layer_rms_norm(block->graph, x, name_of(block, layer), block->settings->eps);
}

static qn_tensor turn(struct block *block, qn_tensor x, double heads)
{
    const struct settings *s = block->settings;
    const qn_rotary_params params = {.heads = (int)heads,
                                     .base = s->base,
                                     .factor = s->factor,
                                     .low_freq_factor = s->low_freq_factor,
                                     .high_freq_factor = s->high_freq_factor,
                                     .original_positions = (int64_t)s->original_positions};
    return qn_rotary(block->graph, x, block->text.positions, &params);
}

static qn_tensor cached_attention(struct block *block, qn_tensor q, qn_tensor k, qn_tensor v,
                                  const qn_attention_params *params)
{
    qn_graph *graph = block->graph;
    const qn_tensor both[] = {qn_flatten(graph, k), qn_flatten(graph, v)};
    qn_tensor keys_values = qn_concat(graph, 2, both, 1);
    return qn_layer_cached_attention(graph, &block->text, block->number, q, keys_values, params);
}

static qn_tensor attend(struct block *block, qn_tensor stream)
{
    const struct settings *s = block->settings;
    const double size = s->width / s->heads;
    const qn_attention_params params = {
        .heads = (int)s->heads, .kv_heads = (int)s->kv_heads, .causal = true};
    const qn_tensor none = {0}, x = norm(block, stream, "input_layernorm");
    qn_tensor q = dense(block, x, "self_attn.q_proj", s->width, none);
    qn_tensor k = dense(block, x, "self_attn.k_proj", s->kv_heads * size, none);
    qn_tensor v = dense(block, x, "self_attn.v_proj", s->kv_heads * size, none);
    q = turn(block, q, s->heads);
    k = turn(block, k, s->kv_heads);
    qn_tensor seen = block->text.cache ? cached_attention(block, q, k, v, &params)
                                       : qn_attention(block->graph, q, k, v, none, &params);
    return dense(block, seen, "self_attn.o_proj", s->width, stream);
}

static qn_tensor think(struct block *block, qn_tensor stream)
{
    const struct settings *s = block->settings;
    const qn_tensor none = {0}, x = norm(block, stream, "post_attention_layernorm");
    qn_tensor gate = dense(block, x, "mlp.gate_proj", s->inner, none);
    qn_tensor up = dense(block, x, "mlp.up_proj", s->inner, none);
    qn_tensor made = qn_gated(block->graph, gate, up, QN_GATE_SILU);
    return dense(block, made, "mlp.down_proj", s->width, stream);
}

static const char *refuse(const struct settings *s)
{
    const char *wrong = qn_model_refuse_heads(s->width, s->heads);
    if (wrong)
        return wrong;
    if (fmod(s->heads, s->kv_heads) != 0)
        return "model.heads: is not a multiple of kv_heads";
    if (s->original_positions > 0 && s->high_freq_factor <= s->low_freq_factor)
        return "model.high_freq_factor: is not above low_freq_factor";
    return NULL;
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.layers = 22,
                         .heads = 32,
                         .kv_heads = 4,
                         .width = 2048,
                         .inner = 5632,
                         .base = 10000,
                         .eps = 1e-5,
                         .logits = 1,
                         .factor = 1,
                         .low_freq_factor = 1,
                         .high_freq_factor = 4};
    const char *wrong = qn_model_read(keys, options, n_options, &s, error);
    if (!wrong)
        wrong = refuse(&s);
    if (wrong)
        return wrong;
    const int64_t width = (int64_t)s.width;
    struct block block = {
        .graph = graph, .lora = lora, .settings = &s, .text = qn_layer_text(graph, data)};
    qn_tensor words =
        qn_layer_table(graph, "model.embed_tokens.weight", data->tokens, width, DEVIATION);
    qn_tensor x = qn_embedding(graph, block.text.tokens, words);
    for (block.number = 0; block.number < (int)s.layers; block.number++)
        x = think(&block, attend(&block, x));
    x = qn_layer_rms_norm(graph, x, "model.norm", s.eps);
    if (s.tied == 0)
        words = qn_layer_table(graph, "lm_head.weight", data->tokens, width, DEVIATION);
    qn_layer_learn_tokens(
        graph, x,
        &(struct qn_layer_words){
            .name = "lm_head", .words = words, .logits = s.logits != 0, .data = data});
    return NULL;
}

static const qn_layout_rule rules[] = {
    {"lm_head.weight", QN_LAYOUT_TIED, "model.embed_tokens.weight"},
    {"*.rotary_emb.inv_freq", QN_LAYOUT_SKIPPED, NULL},
    {"score.weight", QN_LAYOUT_SKIPPED, NULL},
};
static const qn_layout huggingface = {"huggingface", "model.", rules, sizeof rules / sizeof *rules};

const struct qn_model qn_model_llama = {
    "llama",
    "layers           of attention and perceptron (22)\n"
    "heads            of queries; divides width (32)\n"
    "kv_heads         of keys and values; divides heads (4)\n"
    "width            features of a token (2048)\n"
    "inner            features inside the perceptron (5632)\n"
    "tied             1: the table of tokens is the last layer's weight, too (0)\n"
    "base             of the angles of positions (10000)\n"
    "factor           that angles are divided by, for longer texts (1)\n"
    "original_positions  of Llama 3's scaling by parts; 0: all are divided alike (0)\n"
    "low_freq_factor  turns in so many positions, below which angles are divided whole (1)\n"
    "high_freq_factor  turns in them, above which angles stay as they are (4)\n"
    "eps              of the norms (1e-5)\n"
    "logits           0: evaluation gives the loss alone and never holds logits (1)\n",
    build,
    .tokens = true,
    .caches = true,
    .layout = &huggingface,
};
