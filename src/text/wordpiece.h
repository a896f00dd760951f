/* SPDX-License-Identifier: MIT
 *
 * WordPiece: a word as the longest known beginning, then the longest known continuations.
 */
#ifndef QN_TEXT_WORDPIECE_H
#define QN_TEXT_WORDPIECE_H

#include "text/bytes.h"
#include "text/sink.h"
#include "text/vocab.h"

/* The most characters of a word that a file may allow: each is a token at most. */
enum { QN_LONGEST_PIECES = 1000 };

struct qn_wordpiece {
    char *prefix;    /* of a continuation, "##" */
    size_t n_prefix; /* bytes of it */
    int64_t longest; /* characters of a word that is split; a longer one is unknown */
    int32_t unknown; /* id */
    bool cleanup;    /* decoding: no blank before . , ! ? and the like */
};

/* Gives the tokens of a word, or the unknown one if any part of it has none. `scratch` is kept from
 * word to word and freed by the caller. */
qn_status qn_wordpiece_word(const struct qn_wordpiece *wordpiece, const struct qn_vocab *vocab,
                            struct qn_bytes *scratch, const char *word, size_t size,
                            struct qn_sink *sink);
/* Adds a token to a text that is decoded; `first`: no blank before it. False: out of memory. */
bool qn_wordpiece_decode(const struct qn_wordpiece *wordpiece, struct qn_bytes *to,
                         const char *token, size_t size, bool first);

#endif
