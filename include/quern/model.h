/* SPDX-License-Identifier: MIT
 *
 * Models that ship, as graph functions by name. Each makes its inputs ("images" u8 or f32, "labels"
 * i32), its parameters, the outputs "logits" (batch, classes) and "loss" (batch), and the loss.
 * Models of masks have u8 labels for all pixels, and outputs (batch, classes, height, width) and
 * (batch, height, width). Models of text take rows of tokens instead: "tokens" i32 (batch, width)
 * with as many labels, of which QN_IGNORED_LABEL counts nothing, so that outputs are (batch, width,
 * tokens) and (batch, width); an option leaves "logits" out. Some of them can have one class for
 * each row instead, with labels and outputs as of images. Models of numbers take "features" f32
 * (batch, features) in place of images, and have labels, or "targets" f32 (batch, targets): then
 * "loss" is (batch, targets), too, and the output that they are compared with is "predictions", or
 * "logits" where targets are 0 or 1. Those that continue a text can be built with a cache of keys
 * and values, too.
 */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H

#include <quern/io.h>
#include <quern/ops.h>
#include <quern/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QN_MODEL_MAX_CHANNELS = 8 };

/* What the data looks like. Rows of tokens have one channel and height 1. */
typedef struct qn_model_data {
    int channels, height, width;
    int classes; /* of samples, or of pixels; 0: the labels of tokens are tokens */
    float mean[QN_MODEL_MAX_CHANNELS]; /* of pixels in [0, 1], or as `real` says; per channel */
    float deviation[QN_MODEL_MAX_CHANNELS]; /* 0: 1 */
    bool masks; /* a class for each pixel: "labels" are u8 (batch, height, width) */
    int tokens; /* size of the vocabulary; 0: samples are images */
    /* Rows of tokens are padded: the input "lengths" i32 (batch) says how many tokens of each are
     * no padding, at least 1. */
    bool lengths;
    /* Above 0, of models that continue a text: a sample is one token, "tokens" i32 (batch, 1), at
     * the place "positions" i32 (batch, 1) of a text of at most `width` tokens. Keys and values are
     * in appending cells of so many rows, named "cache.0" and so on, one for each layer
     * (qn_model_cells). There is no loss, and "logits" (batch, 1, tokens) are the only output
     * beside those of the cells. 0: samples are whole rows. */
    int cache;
    /* What a training gave is used (predict.h): there are neither labels nor a loss, and "logits"
     * are the only output; parameters have the same names. */
    bool predict;
    /* Above 0: there are graphs for samples of different length, up to this one, which a plan has
     * as alternatives (plan.h). Tables of positions have so many rows, and the inputs of a graph
     * for shorter rows end with their length: "tokens.64", "labels.64"; models in which a token
     * sees those behind it have the input "lengths", too. 0: `width` is the only one.
     */
    int longest;
    /* Of images with one class each: they are mixed (qn_dataset_mix). The inputs "mixed_labels" i32
     * (batch) and "mixed_shares" f32 (batch) are a second class and its share of the loss; the
     * output "loss" is that of "labels" alone. */
    bool mixed;
    /* Above 0: a sample is a row of so many numbers, not an image. */
    int features;
    /* Of such samples, above 0: so many numbers are told in place of a class. */
    int targets;
    bool binary; /* they are 0 or 1: whether the sample has each of several classes */
    bool real;   /* images are f32, as the data has them; mean and deviation are of these numbers */
    /* With `predict`, of models that tell tokens: one token of each row is asked for, so that no
     * other one costs logits. The input "asked" f32 (batch, 1, width) is 1 at its place and 0
     * elsewhere, and "logits" are (batch, tokens). */
    bool asked;
    /* Above 0: the model is a tower of a dual encoder (qn_towers). In place of logits its last
     * layer gives so many numbers of each sample: the one output is "embedding" (batch, embedding),
     * and there are neither labels nor a loss. Not of models that tell tokens or masks. */
    int embedding;
} qn_model_data;

/* A key of a recipe's [model] section. */
typedef struct qn_model_option {
    const char *key, *value;
} qn_model_option;

/* Builds the model `name` into the graph. Unknown names, keys and values that are out of range are
 * errors of the graph, one line each (qn_graph_error). */
QN_API qn_status qn_model_build(qn_graph *graph, const char *name, const qn_model_data *data,
                                const qn_model_option *options, int n_options);

/* The cells of a model that was built with a cache, for qn_run_list: gives how many, and the first
 * `room` of them; their names are borrowed from the graph. Thread-safety: Safe. */
QN_API int qn_model_cells(const qn_graph *graph, const qn_model_data *data, qn_cell *cells,
                          int room);

/* Names of the models, one after another; NULL past the last. */
QN_API const char *qn_model_name(int index);
/* The keys that a model takes with their defaults and meanings, for people; NULL: no such model.
 * `name` NULL: those of low-rank adapters (lora_rank and others), which all models with linear
 * layers take besides. */
QN_API const char *qn_model_help(const char *name);

/* The pattern (qn_weights_params) of the parameters that tell the classes, "fc.*": what a training
 * that begins with the weights of another one with other classes draws anew. NULL: no such model,
 * or it tells tokens. Thread-safety: Safe. */
QN_API const char *qn_model_head(const char *name);

/* How the model's parameters stand in Hugging Face's files of the same network: for
 * qn_weights_params.layout. NULL: no such model, or none that is known of. Thread-safety: Safe. */
QN_API const qn_layout *qn_model_layout(const char *name);
/* How adapters stand in PEFT's files (adapter_model.safetensors), with qn_weights_params.include =
 * QN_ADAPTERS. Thread-safety: Safe. */
QN_API const qn_layout *qn_model_adapter_layout(void);

#ifdef __cplusplus
}
#endif
#endif
