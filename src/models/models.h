/* SPDX-License-Identifier: MIT
 *
 * The list of models.
 */
#ifndef QN_MODELS_MODELS_H
#define QN_MODELS_MODELS_H

#include "lora.h"

struct qn_model {
    const char *name;
    const char *help; /* a line per key */
    /* Builds into the graph; gives NULL, or a text about the options in `error`. */
    const char *(*build)(qn_graph *graph, const qn_model_data *data, const qn_model_option *options,
                         int n_options, const struct qn_lora *lora, char error[200]);
    bool masks;              /* it learns a class for each pixel, not one for each image */
    bool tokens;             /* a sample is a row of tokens, not an image */
    bool sequences;          /* which may have a class and be padded */
    bool any;                /* it takes any data, and says itself what it wants */
    bool caches;             /* it can be built with a cache (qn_model_data.cache) */
    bool features;           /* a sample may be a row of numbers */
    const char *head;        /* pattern of the last layer's parameters, whose sizes are the classes;
                                NULL: tokens are what it tells */
    const qn_layout *layout; /* of Hugging Face's files; NULL: none is known of */
};

#define QN_MODEL_LIST(X)                                                                           \
    X(bert)                                                                                        \
    X(cnn)                                                                                         \
    X(gpt)                                                                                         \
    X(graph)                                                                                       \
    X(llama)                                                                                       \
    X(mlp)                                                                                         \
    X(resnet)                                                                                      \
    X(unet)                                                                                        \
    X(vgg)

#define QN_MODEL_DECLARE(name) extern const struct qn_model qn_model_##name;
QN_MODEL_LIST(QN_MODEL_DECLARE)
#undef QN_MODEL_DECLARE

#endif
