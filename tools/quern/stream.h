/* SPDX-License-Identifier: MIT
 *
 * Text that is printed as it is made, token by token.
 */
#ifndef QUERN_TOOL_STREAM_H
#define QUERN_TOOL_STREAM_H

#include "failure.h"

#include <quern/text.h>
#include <stdbool.h>
#include <stddef.h>

struct stream {
    const qn_tokenizer *tokenizer; /* NULL: tokens are bytes, or `numbers` */
    bool numbers;                  /* tokens are printed as numbers */
    bool silent;
    const char *const *stops; /* texts that end it */
    int n_stops;
    const int32_t *ids; /* all tokens so far, borrowed */
    int64_t count;
    char *text; /* of them, without the stop text */
    size_t size, shown;
    bool stopped;
};

/* Takes the next token, of `count` in all, and prints what is certain: no part of a character that
 * is not whole yet, and nothing that may become a stop text. */
int stream_take(struct stream *stream, const int32_t *ids, int64_t count, struct failure *failure);
/* Prints the rest. */
int stream_end(struct stream *stream, struct failure *failure);
/* The text in UTF-8, with U+FFFD for each byte that belongs to no character and for NUL; freed by
 * the caller. NULL: out of memory. */
char *stream_text(const struct stream *stream);
void stream_free(struct stream *stream);

#endif
