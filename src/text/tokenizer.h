/* SPDX-License-Identifier: MIT
 *
 * What a tokenizer is made of, and the readers of its files.
 */
#ifndef QN_TEXT_TOKENIZER_H
#define QN_TEXT_TOKENIZER_H

#include "text/added.h"
#include "text/bert.h"
#include "text/bpe.h"
#include "text/json.h"
#include "text/pattern.h"
#include "text/wordpiece.h"

enum qn_tokenizer_kind { QN_BPE, QN_WORDPIECE };

/* Ids before and behind a text. */
struct qn_frame {
    int32_t *id;
    size_t count, room;
    size_t before; /* the first so many stand before it */
};

struct qn_tokenizer {
    qn_log log;
    char *path; /* of the file, for messages */
    enum qn_tokenizer_kind kind;
    struct qn_vocab vocab;
    struct qn_added raw;    /* found in the text as it is */
    struct qn_added normal; /* found in the normalised text */
    struct qn_bpe bpe;
    struct qn_pattern *pattern; /* BPE; NULL: the whole text is one word */
    bool blank_first;           /* BPE: a blank before a text that does not begin with one */
    struct qn_wordpiece wordpiece;
    struct qn_bert bert;
    struct qn_frame frame;
};

/* All of a tokenizer.json, which is open; `tokenizer` is zeroed but for log and path. What was made
 * when a line is wrong is freed by the caller. */
qn_status qn_tokenizer_read(struct qn_tokenizer *tokenizer, const struct qn_json *json);
/* A vocab.json, which is open, and the merges.txt beside it. */
qn_status qn_tokenizer_read_gpt2(struct qn_tokenizer *tokenizer, const struct qn_json *json);

/* The parts of a tokenizer.json, each in a file of its own name. */
qn_status qn_read_model(struct qn_tokenizer *tokenizer, const struct qn_json *json);
qn_status qn_read_words(struct qn_tokenizer *tokenizer, const struct qn_json *json);
qn_status qn_read_added(struct qn_tokenizer *tokenizer, const struct qn_json *json);
qn_status qn_read_frame(struct qn_tokenizer *tokenizer, const struct qn_json *json);

/* The pieces that the readers share. */
qn_status qn_read_vocab(struct qn_tokenizer *tokenizer, const struct qn_json *json,
                        const cJSON *vocab, const char *where);
/* Merge number `rank` of two tokens, whose place is `where` in `path`. */
qn_status qn_read_merge(struct qn_tokenizer *tokenizer, const char *path, const char *where,
                        const char *left, size_t n_left, const char *right, size_t n_right,
                        int32_t rank);
qn_status qn_read_special(struct qn_tokenizer *tokenizer, const char *text);

#endif
