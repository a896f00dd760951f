/* SPDX-License-Identifier: MIT
 *
 * An encoder of tokens, BERT (Devlin et al., "BERT: pre-training of deep bidirectional
 * transformers", 2019): every token sees all others, layer norm stands behind attention and behind
 * the perceptron, GELU is exact. Two heads: the masked language model, whose last layer has the
 * table of tokens as its weight and whose labels are -100 where no token is asked for; and
 * classification of sequences, from the state of the first token. Names and layouts are those of
 * Hugging Face's BertForMaskedLM and BertForSequenceClassification. Or embeddings in the place of a
 * head: the first token's state, or the mean over the tokens of a sequence (Reimers and Gurevych,
 * "Sentence-BERT: sentence embeddings using siamese BERT-networks", 2019). The row of the padding
 * token learns like any other; where `lengths` says which tokens are padding no other one sees it.
 */
#include "layers.h"
#include "models.h"
#include "options.h"

#include <math.h>
#include <stdio.h>

enum { NAME_BYTES = 64, TYPES = 2 };

static const double DEVIATION = 0.02; /* of all weights at the start */
static const double EPS = 1e-12;      /* of layer norms */
static const double LEAST = 1e-24;    /* mean square of an embedding that gets the length 1 */

struct settings {
    double layers, heads, width, inner, dropout, types, logits, pooling;
};

enum { POOLING_NONE, POOLING_MEAN, POOLING_CLS };
static const char *const poolings[] = {"none", "mean", "cls", NULL};

static const struct qn_model_key keys[] = {
    {"layers", offsetof(struct settings, layers), 1, 1024, true},
    {"heads", offsetof(struct settings, heads), 1, 1024, true},
    {"width", offsetof(struct settings, width), 8, 65536, true},
    {"inner", offsetof(struct settings, inner), 0, 1 << 20, true},
    {"dropout", offsetof(struct settings, dropout), 0, 0.99, false},
    {"types", offsetof(struct settings, types), 0, 1, true},
    {"logits", offsetof(struct settings, logits), 0, 1, true},
    {"pooling", offsetof(struct settings, pooling), .words = poolings},
    {0},
};

/* One of the layers of the encoder; its parts are named "bert.encoder.layer.2.output.dense". */
struct block {
    qn_graph *graph;
    const struct qn_lora *lora;
    int number, heads;
    int64_t width, inner;
    double dropout;
    qn_tensor lengths; /* none: every token is seen */
    char name[NAME_BYTES];
};

static const char *name_of(struct block *block, const char *part, const char *layer)
{
    snprintf(block->name, NAME_BYTES, "bert.encoder.layer.%d.%s.%s", block->number, part, layer);
    return block->name;
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t features,
                       const struct qn_lora *lora)
{
    const struct qn_layer_dense how = {.features = features, .deviation = DEVIATION, .lora = lora};
    return qn_layer_dense(graph, x, name, &how);
}

static qn_tensor drop(qn_graph *graph, qn_tensor x, double rate)
{
    return rate > 0 ? qn_dropout(graph, x, rate) : x;
}

/* norm(stream + dropout(dense(x))); without dropout the sum is in the pass of the product. */
static qn_tensor add_to(struct block *block, qn_tensor stream, qn_tensor x, const char *part)
{
    struct qn_layer_dense how = {
        .features = block->width, .deviation = DEVIATION, .lora = block->lora};
    if (block->dropout == 0)
        how.residual = stream;
    x = qn_layer_dense(block->graph, x, name_of(block, part, "dense"), &how);
    if (block->dropout > 0)
        x = qn_add(block->graph, stream, qn_dropout(block->graph, x, block->dropout));
    return qn_layer_row_norm(block->graph, x, name_of(block, part, "LayerNorm"), EPS);
}

static qn_tensor attend(struct block *block, qn_tensor stream)
{
    static const char *const layers[] = {"query", "key", "value"};
    const qn_attention_params params = {.heads = block->heads, .dropout = block->dropout};
    qn_tensor in[3];
    for (int i = 0; i < 3; i++)
        in[i] = dense(block->graph, stream, name_of(block, "attention.self", layers[i]),
                      block->width, block->lora);
    qn_tensor x = qn_attention(block->graph, in[0], in[1], in[2], block->lengths, &params);
    return add_to(block, stream, x, "attention.output");
}

static qn_tensor think(struct block *block, qn_tensor stream)
{
    const char *name = name_of(block, "intermediate", "dense");
    qn_tensor x = dense(block->graph, stream, name, block->inner, block->lora);
    return add_to(block, stream, qn_gelu(block->graph, x, QN_GELU_EXACT), "output");
}

/* Adds the row of each token's type (which of two sentences it belongs to); without the input
 * "types" that of type 0. */
static qn_tensor add_types(qn_graph *graph, qn_tensor x, bool given)
{
    const qn_shape shape = qn_shape_of(graph, x);
    const int64_t rows = shape.dim[0], length = shape.dim[1], width = shape.dim[2];
    qn_tensor table = qn_layer_table(graph, "bert.embeddings.token_type_embeddings.weight", TYPES,
                                     width, DEVIATION);
    if (given) {
        qn_tensor types = qn_input(graph, "types", QN_I32, 2, shape.dim);
        return qn_add(graph, x, qn_embedding(graph, types, table));
    }
    qn_tensor first = qn_reshape(graph, table, 2, (int64_t[]){1, TYPES * width});
    first = qn_reshape(graph, qn_slice(graph, first, 1, 0, width), 1, &width);
    x = qn_reshape(graph, x, 2, (int64_t[]){length * rows, width});
    x = qn_bias(graph, x, first);
    return qn_reshape(graph, x, 3, (int64_t[]){rows, length, width});
}

static qn_tensor embed(qn_graph *graph, const struct settings *s, const qn_model_data *data,
                       qn_tensor words)
{
    qn_tensor tokens = qn_layer_text(graph, data).tokens;
    qn_tensor positions = qn_layer_table(graph, "bert.embeddings.position_embeddings.weight",
                                         qn_layer_text_longest(data), (int64_t)s->width, DEVIATION);
    qn_tensor x = qn_layer_positions(graph, NULL, qn_embedding(graph, tokens, words), positions);
    x = add_types(graph, x, s->types != 0);
    x = qn_layer_row_norm(graph, x, "bert.embeddings.LayerNorm", EPS);
    return drop(graph, x, s->dropout);
}

/* Asks for tokens: labels (b, t). */
static void learn_tokens(qn_graph *graph, qn_tensor x, qn_tensor words, const struct settings *s,
                         const qn_model_data *data, const struct qn_lora *lora)
{
    const int64_t width = (int64_t)s->width;
    const int64_t tokens = qn_shape_of(graph, words).dim[0];
    const qn_init zero = qn_init_constant(0);
    x = dense(graph, x, "cls.predictions.transform.dense", width, lora);
    x = qn_gelu(graph, x, QN_GELU_EXACT);
    x = qn_layer_row_norm(graph, x, "cls.predictions.transform.LayerNorm", EPS);
    const struct qn_layer_words last = {
        .name = "cls.predictions.decoder",
        .words = words,
        .bias = qn_parameter(graph, "cls.predictions.bias", 1, &tokens, &zero),
        .logits = s->logits != 0,
        .data = data};
    qn_layer_learn_tokens(graph, x, &last);
}

/* The state of the first token, (b, width). */
static qn_tensor first_token(qn_graph *graph, qn_tensor x, int64_t width)
{
    const int64_t rows = qn_shape_of(graph, x).dim[0];
    return qn_reshape(graph, qn_slice(graph, x, 1, 0, 1), 2, (int64_t[]){rows, width});
}

/* Asks for the class of a sequence: labels (b). */
static void learn_sequences(qn_graph *graph, qn_tensor x, const struct settings *s,
                            const qn_model_data *data, const struct qn_lora *lora)
{
    x = first_token(graph, x, (int64_t)s->width);
    x = qn_tanh(graph, dense(graph, x, "bert.pooler.dense", (int64_t)s->width, lora));
    x = dense(graph, drop(graph, x, s->dropout), "classifier", data->classes, lora);
    qn_layer_classify(graph, x, data, 0);
}

/* (b, width) of states (b, t, width). */
static qn_tensor pool(const struct block *block, const struct settings *s, qn_tensor x)
{
    return s->pooling == POOLING_MEAN ? qn_masked_mean(block->graph, x, block->lengths)
                                      : first_token(block->graph, x, block->width);
}

/* Gives embeddings (b, width) of length 1; nothing is learned. */
static void give_embeddings(const struct block *block, const struct settings *s, qn_tensor x)
{
    const qn_rms_norm_params params = {.eps = LEAST};
    x = qn_rms_norm(block->graph, pool(block, s, x), (qn_tensor){0}, &params);
    qn_output(block->graph, qn_scale(block->graph, x, 1 / sqrt((double)block->width)), "embedding");
}

/* Gives the vectors of a tower, (b, embedding). */
static void give_vectors(const struct block *block, const struct settings *s,
                         const qn_model_data *data, qn_tensor x)
{
    x = pool(block, s, x);
    if (data->embedding != block->width)
        x = dense(block->graph, x, "projection", data->embedding, block->lora);
    qn_output(block->graph, x, "embedding");
}

static const char *build(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200])
{
    struct settings s = {.layers = 12, .heads = 12, .width = 768, .dropout = 0.1, .logits = 1};
    const char *wrong = qn_model_read(keys, options, n_options, &s, error);
    if (!wrong)
        wrong = qn_model_refuse_heads(s.width, s.heads);
    if (!wrong && s.pooling != POOLING_NONE && data->classes > 0 && !data->embedding)
        wrong = "model.pooling: gives embeddings, and so has no classes";
    if (!wrong && s.pooling != POOLING_NONE && data->asked)
        wrong = "model.pooling: gives embeddings, and so tells no tokens";
    if (wrong)
        return wrong;
    struct block block = {.graph = graph,
                          .lora = lora,
                          .heads = (int)s.heads,
                          .width = (int64_t)s.width,
                          .inner = (int64_t)(s.inner > 0 ? s.inner : 4 * s.width),
                          .dropout = s.dropout};
    qn_tensor words = qn_layer_table(graph, "bert.embeddings.word_embeddings.weight", data->tokens,
                                     block.width, DEVIATION);
    if (data->lengths || data->longest)
        block.lengths = qn_input(graph, "lengths", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor x = embed(graph, &s, data, words);
    for (block.number = 0; block.number < (int)s.layers; block.number++)
        x = think(&block, attend(&block, x));
    if (data->embedding)
        give_vectors(&block, &s, data, x);
    else if (s.pooling != POOLING_NONE)
        give_embeddings(&block, &s, x);
    else if (data->classes > 0)
        learn_sequences(graph, x, &s, data, lora);
    else
        learn_tokens(graph, x, words, &s, data, lora);
    return NULL;
}

/* The decoder's weight and bias stand there under two names each. Heads of the other kind, and that
 * of next sentences, may lie beside the network, and the numbers of positions as a buffer. */
static const qn_layout_rule rules[] = {
    {"bert.embeddings.position_embeddings.weight", QN_LAYOUT_FIRST_ROWS, NULL},
    {"cls.predictions.decoder.weight", QN_LAYOUT_TIED, "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", QN_LAYOUT_TIED, "cls.predictions.bias"},
    {"*embeddings.position_ids", QN_LAYOUT_SKIPPED, NULL},
    {"*pooler.dense.*", QN_LAYOUT_SKIPPED, NULL},
    {"cls.*", QN_LAYOUT_SKIPPED, NULL},
    {"classifier.*", QN_LAYOUT_SKIPPED, NULL},
};
static const qn_layout huggingface = {"huggingface", "bert.", rules, sizeof rules / sizeof *rules};

const struct qn_model qn_model_bert = {
    "bert",
    "layers           of attention and perceptron (12)\n"
    "heads            of attention; divides width (12)\n"
    "width            features of a token (768)\n"
    "inner            features inside the perceptron; 0: four times width (0)\n"
    "dropout          in [0, 1): of embeddings, probabilities and what each layer adds (0.1)\n"
    "types            1: the input \"types\" says which of two sentences a token is of (0)\n"
    "logits           0: a masked language model's evaluation gives the loss alone and never holds "
    "logits (1)\n"
    "pooling          mean: no head, but the output \"embedding\" (batch, width), the mean over "
    "the tokens that are no padding, of length 1; cls: the first token's state (none; of a tower "
    "cls)\n",
    build,
    .head = "classifier.*",
    .tokens = true,
    .sequences = true,
    .layout = &huggingface,
};
