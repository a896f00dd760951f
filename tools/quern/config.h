/* SPDX-License-Identifier: MIT
 *
 * The config.json of Hugging Face that lies beside a model's weights: what it says about a recipe,
 * and what a recipe says as one.
 */
#ifndef QUERN_TOOL_CONFIG_H
#define QUERN_TOOL_CONFIG_H

#include "settings.h"

#include <quern/io.h>

struct config {
    const char *model; /* that ships with Quern: "gpt" */
    /* 0: not there, or none */
    double layers, heads, kv_heads, width, inner, tied, vocabulary, positions, labels;
    double base, factor, low, high, original; /* of rotary positions and their scaling */
    double eps;                               /* of norms */
    double dropout, attention;                /* the second of attention's probabilities */
    double lost; /* the largest dropout of those that the model has not */
    double context, fourfold,
        head;       /* what the model has otherwise: positions, 4 width, width / heads */
    qn_dtype dtype; /* of the weights; not of a file that was read */
};

/* Reads a config.json; `path` begins messages. A field that is missing, that is not known, or that
 * asks for what no model computes is refused: CODE_FAILED, with file and field. */
int config_read(struct config *config, const char *text, const char *path, struct failure *failure);

/* Puts into the recipe what it leaves out. CODE_FAILED: it says something else. */
int config_give(const struct config *config, struct recipe *recipe, const char *path,
                struct failure *failure);
/* CODE_FAILED: the model's table of positions is too short for the samples, or there are other
 * classes than tokens. */
int config_fits(const struct config *config, const qn_model_data *data, const char *path,
                struct failure *failure);

/* Fills in what the keys of the recipe's [model] say, or their defaults. False: the model has no
 * config.json. */
bool config_of(struct config *config, const struct settings *settings);
/* Fills in what the tables of a file of weights show: tokens, type, classes, and positions if there
 * is a table of them; else they are those of the recipe's samples. */
int config_measure(struct config *config, const qn_tensors *file, const char *path,
                   struct failure *failure);
/* The text, freed by the caller; NULL when out of memory. */
char *config_text(const struct config *config);

#endif
