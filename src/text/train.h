/* SPDX-License-Identifier: MIT
 *
 * A byte-level BPE vocabulary on its way from a text to a file.
 */
#ifndef QN_TEXT_TRAIN_H
#define QN_TEXT_TRAIN_H

#include "text/strings.h"

#include <quern/text.h>

/* The different words of a text. */
struct qn_counted {
    struct qn_strings words;
    int64_t *times; /* (words.count): how often each stands in the text */
    size_t room;
};

/* One merge; left < 0: made again later in the list, where it counts. */
struct qn_merge {
    int32_t left, right;
};

/* Tokens as the bytes that they stand for, by id; merges in their order. */
struct qn_learned {
    struct qn_strings tokens;
    struct qn_merge *merge;
    size_t count, room;
};

/* Adds merges and their tokens until there are params->vocabulary tokens, or no pair is left. */
qn_status qn_learn(struct qn_learned *learned, const struct qn_counted *counted,
                   const qn_tokenizer_train_params *params);
/* Writes params->path. */
qn_status qn_learned_write(const struct qn_learned *learned,
                           const qn_tokenizer_train_params *params);

#endif
