/* SPDX-License-Identifier: MIT
 *
 * Low-rank adapters of linear layers (Hu et al., "LoRA: low-rank adaptation of large language
 * models", 2021): the layer W gives W x + alpha / rank * B A dropout(x), where A (rank, in) and B
 * (out, rank) alone are trained. Names, defaults and first values are those of PEFT.
 */
#ifndef QN_MODELS_LORA_H
#define QN_MODELS_LORA_H

#include <quern/model.h>

/* Patterns are of names of layers, whole or from a dot on: "c_attn" is all layers that are called
 * so, "h.0.*" all in block 0. */
struct qn_lora {
    double rank; /* 0: there are no adapters */
    double alpha, dropout;
    const char *targets; /* layers that have one */
    const char *whole;   /* layers that are trained as a whole besides; "": none */
};

/* The lines of help of the keys. */
extern const char qn_lora_help[];

/* Reads the keys from the options; gives NULL, or the first error's text in `error`. */
const char *qn_lora_read(struct qn_lora *lora, const qn_model_option *options, int n_options,
                         char error[200]);
/* Whether the linear layer of that name has an adapter. */
bool qn_lora_has(const struct qn_lora *lora, const char *layer);
/* Freezes all that is not trained once the model is built. Gives NULL, or an error's text: a
 * pattern names no layer. */
const char *qn_lora_finish(const struct qn_lora *lora, qn_graph *graph, char error[200]);

#endif
