/* SPDX-License-Identifier: MIT
 *
 * Tokens as people and programs see them.
 */
#ifndef QUERN_TOOL_VOCABULARY_H
#define QUERN_TOOL_VOCABULARY_H

#include "note.h"

#include <quern/text.h>

enum vocabulary_form {
    VOCABULARY_QUOTED,  /* "\" the\"", one line without control characters, for people */
    VOCABULARY_ESCAPED, /* the same without quotes */
    VOCABULARY_UTF8, /* " the" as it is, with U+FFFD for a byte that is no character, and for NUL */
};

struct vocabulary {
    const qn_tokenizer *tokenizer; /* NULL: the first 256 tokens are bytes */
    int64_t tokens;
    int64_t mask;     /* a token; below 0: there is none */
    const char *mark; /* what it is written as where neither the tokenizer nor a byte is it */
    enum vocabulary_form form;
};

/* The text of each token: its bytes, a piece of WordPiece as its file has it ("##ing"), of what is
 * no text its number, "<50300>". */
int vocabulary_names(const struct vocabulary *vocabulary, struct class_names *names,
                     struct failure *failure);

#endif
