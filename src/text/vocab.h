/* SPDX-License-Identifier: MIT
 *
 * The tokens of a vocabulary by their text, as the file writes it, and by their id.
 */
#ifndef QN_TEXT_VOCAB_H
#define QN_TEXT_VOCAB_H

#include "text/strings.h"

#include <stdbool.h>

/* Ids lie below. */
enum { QN_MOST_TOKENS = 1 << 24 };

/* A zeroed struct is empty. Thread-safety: Unsafe for adding, Safe for reading. */
struct qn_vocab {
    struct qn_strings texts;
    int32_t *id;      /* (texts.count): by the number of a text */
    int32_t *text_of; /* (size): number of the text of an id, -1: the id has none */
    uint8_t *marks;   /* (size): bits of enum qn_vocab_mark */
    size_t room_id, room_text, room_marks;
    int32_t size; /* 1 + the largest id */
};

/* Found in the text as it is; a mark, not a piece of text. */
enum qn_vocab_mark { QN_MARK_ADDED = 1, QN_MARK_SPECIAL = 2 };

enum qn_vocab_added {
    QN_VOCAB_NEW,
    QN_VOCAB_SAME,
    QN_VOCAB_HAS_TEXT,
    QN_VOCAB_HAS_ID,
    QN_VOCAB_MEMORY
};

/* Adds a token, with an id from 0 to QN_MOST_TOKENS - 1. Tells whether the very token was there
 * (QN_VOCAB_SAME), its text has another id, or its id another text, which change nothing. */
enum qn_vocab_added qn_vocab_add(struct qn_vocab *vocab, const char *text, size_t bytes,
                                 int32_t id);
/* -1: there is none. */
int32_t qn_vocab_id(const struct qn_vocab *vocab, const char *text, size_t bytes);
/* NULL: no token has this id. With a NUL behind it; valid until the next token is added. */
const char *qn_vocab_text(const struct qn_vocab *vocab, int32_t id, size_t *bytes);
void qn_vocab_free(struct qn_vocab *vocab);

#endif
