/* SPDX-License-Identifier: MIT
 *
 * The data of a recipe: its two splits, and what a model must know about them.
 */
#ifndef QUERN_TOOL_DATA_H
#define QUERN_TOOL_DATA_H

#include "feature_list.h"
#include "settings.h"
#include "text.h"

#include <quern/data.h>

struct data {
    qn_dataset *train, *test; /* test NULL: the recipe names none */
    /* With data.validation `train` is a part of the whole, and `validation` the other one, of
     * `seen`, which is the whole without augmentation. All NULL without. */
    qn_dataset *validation, *whole, *seen;
    qn_dataset *unmixed;         /* what `train` mixes; NULL: it does not */
    const qn_dataset *evaluated; /* what evaluations measure; NULL: there is none */
    qn_model_data model;
    bool side; /* it is one side of pairs */
    struct text text;
    struct features features; /* of rows of numbers; of the checkpoint where there is one */
    double bytes_per_token;   /* of text that those of the test split stand for; 0: nobody knows */
    struct pairs *pairs;      /* of dual encoders; NULL: samples are single */
};

/* Opens the splits and checks that they fit each other and the recipe. Evaluations measure what is
 * kept for validation, else the test split. */
int data_open(struct data *data, const struct settings *settings, const struct recipe *recipe,
              struct failure *failure);
/* The same of one side of pairs, without a part for validation. */
int data_open_side(struct data *data, const struct settings *settings, const struct recipe *recipe,
                   struct failure *failure);
/* Fills data->model alone, from the recipe if it says all, else from the training split. */
int data_look(struct data *data, const struct settings *settings, const struct recipe *recipe,
              struct failure *failure);
/* The token that stands where one is asked for, of data that was looked at; below 0: masks nothing,
 * each token has the next one as its label. */
int64_t data_mask_token(const struct data *data, const struct settings *settings);
/* The text whose tokenizer the data has; of pairs that of the queries. */
const struct text *data_text(const struct data *data);
/* The key of [data] that names a test split of this kind. */
const char *data_test_key(enum data_kind kind);
/* "COUNT-CRC32" of a split. */
enum { DATA_DIGEST_BYTES = 40 };
void data_digest(const qn_dataset *dataset, char digest[DATA_DIGEST_BYTES]);
void data_close(struct data *data);

#endif
