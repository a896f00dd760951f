/* SPDX-License-Identifier: MIT
 *
 * Low-rank adapters of a recipe's model ([model] lora_rank), and PEFT's files of them:
 * adapter_config.json beside adapter_model.safetensors.
 */
#ifndef QUERN_TOOL_ADAPTERS_H
#define QUERN_TOOL_ADAPTERS_H

#include "settings.h"

/* What the product of an adapter's matrices counts: alpha / rank. 0: the model has none. */
double adapters_scale(const struct settings *settings);

/* Writes adapters, and the layers that are trained as a whole, from a checkpoint's file of weights,
 * so that PEFT loads them: the two files are called `weights` and `description`. */
int adapters_write(const char *weights, const char *description, const struct settings *settings,
                   const qn_tensors *file, struct failure *failure);

/* Whether a parameter is an adapter's or of a layer that is trained as a whole beside them. */
bool adapters_have(const struct settings *settings, const char *parameter);

/* Those that a training begins with. */
struct adapters {
    char weights[RECIPE_VALUE_BYTES + 32]; /* "": none */
};
/* Finds the files of the folder train.adapters of the recipe, if there is that key, and puts what
 * adapter_config.json says into the recipe where it says nothing. CODE_FAILED: files are missing,
 * are of another kind of adapter or contradict the recipe. */
int adapters_open(struct adapters *adapters, struct recipe *recipe, struct failure *failure);
/* Puts what the text of an adapter_config.json says into the recipe, as adapters_open does, but for
 * layers that the file of adapters does not have; `file` NULL: all of them. */
int adapters_give(const char *text, const qn_tensors *file, struct recipe *recipe, const char *path,
                  struct failure *failure);
/* Loads them; unless `quiet`, says so. */
int adapters_load(const struct adapters *adapters, qn_trainer *trainer,
                  const struct settings *settings, bool quiet, struct failure *failure);

#endif
