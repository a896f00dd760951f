/* SPDX-License-Identifier: MIT
 *
 * Layers made of operators and their parameters, named as PyTorch's modules name them
 * ("conv1.weight"). Each takes the name of the layer.
 */
#ifndef QN_MODELS_LAYERS_H
#define QN_MODELS_LAYERS_H

#include "lora.h"

/* The images of the data, normalised. */
qn_tensor qn_layer_images(qn_graph *graph, const qn_model_data *data);

/* Convolution of `kernel` x `kernel`, padding kernel / 2, so that with stride 1 an odd kernel keeps
 * the size. NAME.weight and, where asked for, NAME.bias, which starts at 0. */
struct qn_layer_conv {
    int64_t channels;
    int kernel, stride;
    bool bias;
    bool fan_out; /* He's deviation counts what goes out, as torchvision's networks have it; false:
                     what comes in */
    qn_tensor behind; /* none, or an image whose channels follow those of x */
};
qn_tensor qn_layer_conv(qn_graph *graph, qn_tensor x, const char *name,
                        const struct qn_layer_conv *conv);

/* Transposed convolution of 2 x 2 that makes an image twice as large, and `more` rows and columns
 * (0 or 1) in which there is the bias alone. NAME.weight and NAME.bias, which starts at 0. */
struct qn_layer_double {
    int64_t channels;
    int more[2];
};
qn_tensor qn_layer_double(qn_graph *graph, qn_tensor x, const char *name,
                          const struct qn_layer_double *how);

/* NAME.weight and NAME.bias; `group` samples are normalised together. */
qn_tensor qn_layer_batch_norm(qn_graph *graph, qn_tensor x, const char *name, int group);

/* NAME.weight and NAME.bias: group norm of up to 8 groups of at least 2 channels each. */
qn_tensor qn_layer_group_norm(qn_graph *graph, qn_tensor x, const char *name);

/* NAME.weight and NAME.bias: layer norm over the last dimension. `eps` as in
 * qn_layer_norm_params. */
qn_tensor qn_layer_row_norm(qn_graph *graph, qn_tensor x, const char *name, double eps);

/* NAME.weight: RMS norm over the last dimension. `eps` as in qn_rms_norm_params. */
qn_tensor qn_layer_rms_norm(qn_graph *graph, qn_tensor x, const char *name, double eps);

/* What a model of tokens is built for: whole rows of them, or single tokens and a cache
 * (qn_model_data.cache). */
struct qn_layer_text {
    int64_t cache;       /* rows; 0: whole rows */
    qn_tensor tokens;    /* (b, t) or (b, 1) */
    qn_tensor positions; /* (b, 1) with a cache, else none: each row begins at 0 */
};
/* Makes the inputs. */
struct qn_layer_text qn_layer_text(qn_graph *graph, const qn_model_data *data);
/* Labels, one for each token. */
qn_tensor qn_layer_text_labels(qn_graph *graph, const qn_model_data *data);
/* Rows of a table of positions. */
int64_t qn_layer_text_longest(const qn_model_data *data);

/* Attention of single tokens, q (b, 1, n), to their own keys and values, (b, 2 k), and to those of
 * the tokens before them, which are in the cell QN_LAYER_CACHE and the number of the layer. */
#define QN_LAYER_CACHE "cache."
qn_tensor qn_layer_cached_attention(qn_graph *graph, const struct qn_layer_text *text, int layer,
                                    qn_tensor q, qn_tensor keys_values,
                                    const qn_attention_params *params);

/* A parameter (rows, width), normal around 0. */
qn_tensor qn_layer_table(qn_graph *graph, const char *name, int64_t rows, int64_t width,
                         double deviation);
/* x (b, t, c) + the first t rows of the table (rows, c) of positions. Where every sample begins at
 * position 0 they are one bias for all of them. `text` NULL: that is so. */
qn_tensor qn_layer_positions(qn_graph *graph, const struct qn_layer_text *text, qn_tensor x,
                             qn_tensor table);

/* NAME.weight and, unless there is none, NAME.bias; of an adapter NAME.lora_A.weight, started as
 * PyTorch starts linear layers, and NAME.lora_B.weight, zeros. */
struct qn_layer_dense {
    int64_t features;
    bool relu;          /* in the same pass; or */
    qn_tensor residual; /* what is added in it */
    double deviation;   /* of the weight, normal; the bias starts at 0. 0: both start as
                                 PyTorch's linear layers do */
    bool no_bias;
    const struct qn_lora *lora; /* adapters of linear layers; NULL: this one has none in any case */
};
qn_tensor qn_layer_dense(qn_graph *graph, qn_tensor x, const char *name,
                         const struct qn_layer_dense *dense);
/* The same, started as PyTorch does; the second with ReLU. */
qn_tensor qn_layer_linear(qn_graph *graph, qn_tensor x, const char *name, int64_t features,
                          const struct qn_lora *lora);
qn_tensor qn_layer_linear_relu(qn_graph *graph, qn_tensor x, const char *name, int64_t features,
                               const struct qn_lora *lora);

/* Labels, one for every row of logits, cross entropy, the outputs "logits" and "loss", and the
 * loss, with a second label where images are mixed; to predict, "logits" alone; of a tower
 * "embedding" in their place. */
void qn_layer_classify(qn_graph *graph, qn_tensor logits, const qn_model_data *data,
                       double label_smoothing);
/* Targets of rows of numbers (qn_model_data.targets): "predictions" (batch,
 * targets) and their squared or absolute error, or where targets are 0 or 1 "logits" and the binary
 * cross entropy. */
void qn_layer_tell_targets(qn_graph *graph, qn_tensor x, const qn_model_data *data, bool absolute);
/* The same for a row of tokens: logits (b, t, tokens), labels (b, t), of which QN_IGNORED_LABEL
 * counts nothing. */
void qn_layer_classify_tokens(qn_graph *graph, qn_tensor logits, const qn_model_data *data);
/* The same where logits are linear(x, words, bias) of the states x (b, t, c), a table of tokens and
 * a bias or none: last layer and loss in one operator, NAME, so that training never holds all
 * logits. Evaluation does where it is to give them, and has the loss from them. */
struct qn_layer_words {
    const char *name;
    qn_tensor words, bias;
    bool logits;               /* evaluation gives them */
    const qn_model_data *data; /* with a cache, or to predict, there are neither labels nor loss */
};
void qn_layer_learn_tokens(qn_graph *graph, qn_tensor x, const struct qn_layer_words *last);
/* The same for logits (b, classes, h, w) and a mask for each image. */
void qn_layer_segment(qn_graph *graph, qn_tensor logits, const qn_model_data *data);

#endif
