/* SPDX-License-Identifier: MIT
 *
 * Weights that a training begins with (train.weights): a safetensors file as Quern writes it, or
 * Hugging Face's, which have a config.json beside them.
 */
#ifndef QUERN_TOOL_PRETRAINED_H
#define QUERN_TOOL_PRETRAINED_H

#include "config.h"

enum { PRETRAINED_PATH_BYTES = RECIPE_VALUE_BYTES + 32 };

struct pretrained {
    char weights[PRETRAINED_PATH_BYTES];     /* "": the training begins with random numbers */
    char description[PRETRAINED_PATH_BYTES]; /* config.json; "": none, the file is Quern's own */
    struct config config;
};

/* Finds the files that train.weights of the recipe names, if it names any, and puts what
 * config.json says into the recipe. CODE_FAILED: files are missing or contradict the recipe. */
int pretrained_open(struct pretrained *pretrained, struct recipe *recipe, struct failure *failure);
/* Whether the file of weights is there and well-formed. */
int pretrained_check(const struct pretrained *pretrained, struct failure *failure);
/* Whether the network fits the data. */
int pretrained_fits(const struct pretrained *pretrained, const qn_model_data *data,
                    struct failure *failure);
/* Loads them and, unless `quiet`, says what of the file was not taken as it is. `scopes`, ended by
 * NULL: Hugging Face's weights go into each of them (qn_weights_params.scope); NULL: there are
 * none. */
int pretrained_load(const struct pretrained *pretrained, qn_trainer *trainer, const char *model,
                    const char *const *scopes, bool quiet, struct failure *failure);

#endif
