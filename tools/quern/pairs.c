/* SPDX-License-Identifier: MIT */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

/* Of the pairs of one file a part is for tests, the same in every training. */
static const uint64_t TEST_SEED = 0;
enum { MOST_NEGATIVES = 1 << 10 };

/* --- sides --- */

/* Files are divided as pairs. */
static void set_up(struct pairs *pairs, const struct settings *s, enum side side)
{
    struct settings *own = &pairs->settings[side];
    *own = *s;
    if (side != SIDE_QUERIES)
        own->data = side == SIDE_PASSAGES ? s->passages : s->negatives;
    own->data.held_out = 0;
    own->data.classes = 0;
}

/* Both sides are halves of what the first one opened. */
static int open_halves(struct pairs *pairs, const struct recipe *recipe, struct failure *failure)
{
    struct data *images = &pairs->side[SIDE_QUERIES];
    qn_dataset *const whole[] = {images->train, images->test};
    for (int i = 0; i < 4; i++) {
        const qn_half_params params = {
            .log = failure_log(failure), .whole = whole[i % 2], .right = i / 2 == SIDE_PASSAGES};
        if (params.whole)
            TRY_LIBRARY(failure, recipe->name,
                        qn_dataset_halve(&pairs->half[i / 2][i % 2], &params));
    }
    images->model.width /= 2;
    pairs->side[SIDE_PASSAGES].model = images->model;
    return CODE_DONE;
}

/* A vocabulary is made of the queries' text alone. */
static int open_side(struct pairs *pairs, const struct settings *s, enum side side,
                     const struct recipe *recipe, struct failure *failure)
{
    struct data *data = &pairs->side[side];
    struct data_settings *own = &pairs->settings[side].data;
    const struct text *text = &pairs->side[SIDE_QUERIES].text;
    set_up(pairs, s, side);
    if (side != SIDE_QUERIES && text->made && own->vocabulary) {
        own->tokenizer = text->tokenizer_path;
        own->vocabulary = 0;
    }
    data->text.quiet = text->quiet;
    return data_open_side(data, &pairs->settings[side], recipe, failure);
}

/* Hard negatives are as long as passages, and as many for each pair. */
static int check_negatives(struct pairs *pairs, const struct recipe *recipe,
                           struct failure *failure)
{
    const struct data *own = &pairs->side[SIDE_PASSAGES], *hard = &pairs->side[SIDE_NEGATIVES];
    const int64_t count = qn_dataset_describe(own->train)->count;
    const int64_t more = qn_dataset_describe(hard->train)->count;
    if (more % count != 0 || more / count > MOST_NEGATIVES)
        return failure_set(failure, CODE_FAILED,
                           "%s: negatives: %lld samples, but there are %lld pairs: of each there "
                           "must be as many, at most %d",
                           recipe->name, (long long)more, (long long)count, MOST_NEGATIVES);
    pairs->negatives = (int)(more / count);
    return CODE_DONE;
}

static int open_sides(struct pairs *pairs, const struct settings *s, const struct recipe *recipe,
                      struct failure *failure)
{
    TRY(open_side(pairs, s, SIDE_QUERIES, recipe, failure));
    if (s->data.pairs == PAIRING_HALVES)
        return open_halves(pairs, recipe, failure);
    TRY(open_side(pairs, s, SIDE_PASSAGES, recipe, failure));
    if (!s->has_negatives)
        return CODE_DONE;
    TRY(open_side(pairs, s, SIDE_NEGATIVES, recipe, failure));
    return check_negatives(pairs, recipe, failure);
}

/* --- pairs --- */

static const qn_dataset *side_of(const struct pairs *pairs, enum side side, int split)
{
    const struct data *data = &pairs->side[side];
    return pairs->half[side][split] ? pairs->half[side][split] : split ? data->test : data->train;
}

/* Classes take no part. */
static int pair(const struct pairs *pairs, int split, qn_dataset **dataset,
                const struct recipe *recipe, struct failure *failure)
{
    static const char *const columns[] = {
        "query.images",    "query.tokens", "query.lengths", "passage.images", "passage.tokens",
        "passage.lengths", "ids"};
    const char *wanted[7];
    qn_pair_params params = {.log = failure_log(failure),
                             .queries = side_of(pairs, SIDE_QUERIES, split),
                             .passages = side_of(pairs, SIDE_PASSAGES, split),
                             .negatives = side_of(pairs, SIDE_NEGATIVES, split),
                             .columns = wanted};
    for (int i = 0; i < 7; i++) {
        const char *dot = strchr(columns[i], '.');
        const qn_dataset *side = *columns[i] == 'q' ? params.queries : params.passages;
        if (!dot || qn_dataset_column(side, dot + 1))
            wanted[params.n_columns++] = columns[i];
    }
    TRY_LIBRARY(failure, recipe->name, qn_dataset_pair(dataset, &params));
    return CODE_DONE;
}

static int divide(qn_dataset **rest, qn_dataset **part, const qn_dataset *whole, double fraction,
                  uint64_t seed, const struct recipe *recipe, struct failure *failure)
{
    qn_part_params params = {
        .log = failure_log(failure), .whole = whole, .fraction = fraction, .seed = seed};
    params.split = QN_SPLIT_TRAIN;
    TRY_LIBRARY(failure, recipe->name, qn_dataset_part(rest, &params));
    params.split = QN_SPLIT_TEST;
    TRY_LIBRARY(failure, recipe->name, qn_dataset_part(part, &params));
    return CODE_DONE;
}

/* Gives what is left for training, in `*rest` or as it was in `*whole`. */
static int open_test(struct data *data, const struct settings *s, const struct recipe *recipe,
                     struct failure *failure)
{
    struct pairs *pairs = data->pairs;
    const bool hard = !pairs->negatives || side_of(pairs, SIDE_NEGATIVES, 1);
    if (side_of(pairs, SIDE_QUERIES, 1) && side_of(pairs, SIDE_PASSAGES, 1) && hard)
        return pair(pairs, 1, &data->test, recipe, failure);
    return s->data.held_out > 0 ? divide(&pairs->rest, &data->test, pairs->all, s->data.held_out,
                                         TEST_SEED, recipe, failure)
                                : CODE_DONE;
}

/* What is trained with: a part of the pairs, or all of them, which `data` then owns. */
static int open_training(struct data *data, const struct settings *s, const struct recipe *recipe,
                         struct failure *failure)
{
    struct pairs *pairs = data->pairs;
    qn_dataset **left = pairs->rest ? &pairs->rest : &pairs->all;
    if (s->data.validation > 0)
        return divide(&data->train, &data->validation, *left, s->data.validation,
                      (uint64_t)s->train.seed, recipe, failure);
    data->train = *left;
    *left = NULL;
    return CODE_DONE;
}

static void describe(struct data *data, const struct settings *s)
{
    for (int side = 0; side < SIDES; side++) {
        qn_model_data *model = &data->pairs->side[side].model;
        model->classes = 0;
        model->embedding = (int)s->contrastive.dim;
    }
    data->model = data->pairs->side[SIDE_QUERIES].model;
    data->evaluated = data->validation ? data->validation : data->test;
}

int pairs_open(struct data *data, const struct settings *s, const struct recipe *recipe,
               struct failure *failure)
{
    struct pairs *pairs = data->pairs = calloc(1, sizeof *pairs);
    if (!pairs)
        return failure_set(failure, CODE_FAILED, "out of memory");
    pairs->side[SIDE_QUERIES].text.quiet = data->text.quiet;
    TRY(open_sides(pairs, s, recipe, failure));
    TRY(pair(pairs, 0, &pairs->all, recipe, failure));
    TRY(open_test(data, s, recipe, failure));
    TRY(open_training(data, s, recipe, failure));
    describe(data, s);
    return CODE_DONE;
}

qn_dataset *pairs_all(const struct data *data)
{
    return data->pairs->all ? data->pairs->all : data->train;
}

const struct text *pairs_text(const struct pairs *pairs)
{
    return &pairs->side[SIDE_QUERIES].text;
}

void pairs_close(struct pairs **pairs)
{
    struct pairs *p = *pairs;
    if (!p)
        return;
    qn_dataset_close(&p->rest);
    qn_dataset_close(&p->all);
    for (int side = 0; side < SIDES; side++) {
        qn_dataset_close(&p->half[side][0]);
        qn_dataset_close(&p->half[side][1]);
        data_close(&p->side[side]);
    }
    free(p);
    *pairs = NULL;
}
