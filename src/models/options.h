/* SPDX-License-Identifier: MIT
 *
 * Shared by the models: reading the keys of a recipe's [model] section against a table.
 */
#ifndef QN_MODELS_OPTIONS_H
#define QN_MODELS_OPTIONS_H

#include <quern/model.h>
#include <stddef.h>

/* One key: a number in [least, most], kept as a double at `offset` of the model's settings; or one
 * of some words, kept as its place among them. */
struct qn_model_key {
    const char *name;
    size_t offset;
    double least, most;
    bool whole;               /* integers only */
    const char *const *words; /* ended by NULL; NULL: a number */
    bool text;                /* any text instead, kept as a const char *, borrowed */
};

/* Fills the settings from the options. Gives NULL, or the first error's text in `error`. */
const char *qn_model_read(const struct qn_model_key *keys, const qn_model_option *options,
                          int n_options, void *settings, char error[200]);
/* The same of the keys that all models share, which qn_model_read passes over. */
const char *qn_model_read_shared(const struct qn_model_key *keys, const qn_model_option *options,
                                 int n_options, void *settings, char error[200]);
bool qn_model_is_shared(const char *key);

/* NULL if the width divides into the heads; else what is wrong. */
const char *qn_model_refuse_heads(double width, double heads);

#endif
