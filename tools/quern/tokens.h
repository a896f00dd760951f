/* SPDX-License-Identifier: MIT
 *
 * Texts as files of tokens: unsigned numbers without a header, little-endian whatever the machine.
 */
#ifndef QUERN_TOOL_TOKENS_H
#define QUERN_TOOL_TOKENS_H

#include "failure.h"

#include <quern/text.h>
#include <stddef.h>

/* Bytes of a token in such a file: 2 where the vocabulary has fewer than 65536, else 4. */
int tokens_width(const qn_tokenizer *tokenizer);
/* Writes the tokens of a text of `size` bytes to the file `path`, which appears whole or not at
 * all.
 * `*count`: how many. */
int tokens_write(const char *path, const qn_tokenizer *tokenizer, const void *text, size_t size,
                 int64_t *count, struct failure *failure);

#endif
