/* SPDX-License-Identifier: MIT
 *
 * The merges of byte-pair encoding, and a word made into tokens by them.
 */
#ifndef QN_TEXT_BPE_H
#define QN_TEXT_BPE_H

#include "text/bytes.h"
#include "text/pairs.h"
#include "text/sink.h"
#include "text/vocab.h"

struct qn_bpe {
    struct qn_pairs merges; /* rank: place in the list; id: of the token that the pair becomes */
    int32_t byte_id[256];   /* token of a single byte; -1: there is none */
    int32_t unknown;        /* in the place of a byte that has no token; -1: that is an error */
    bool fuse_unknown;      /* one for all in a row */
    bool ignore_merges;     /* a word that is a token is not split, whatever the merges */
};

/* What one encoding needs, kept from word to word. A zeroed struct is none. */
struct qn_bpe_scratch {
    struct qn_symbol *symbol;
    struct qn_candidate *heap;
    size_t room_symbol, room_heap;
    struct qn_bytes text; /* a word in the characters that stand for bytes */
};

/* Fills byte_id. */
void qn_bpe_bytes(struct qn_bpe *bpe, const struct qn_vocab *vocab);
/* Gives the tokens of a word of at least one byte. */
qn_status qn_bpe_word(const struct qn_bpe *bpe, const struct qn_vocab *vocab,
                      struct qn_bpe_scratch *scratch, const char *word, size_t size,
                      struct qn_sink *sink);
void qn_bpe_scratch_free(struct qn_bpe_scratch *scratch);

#endif
