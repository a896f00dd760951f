/* SPDX-License-Identifier: MIT
 *
 * Texts as files of tokens: unsigned numbers without a header, little-endian whatever the machine.
 */
#ifndef QUERN_TOOL_TOKENS_H
#define QUERN_TOOL_TOKENS_H

#include "file.h"

#include <quern/text.h>
#include <stddef.h>

/* Bytes of a token in such a file: 2 where the vocabulary has fewer than 65536, else 4; without a
 * tokenizer 1. */
int tokens_width(const qn_tokenizer *tokenizer);

/* A file under way, which appears whole or not at all. */
struct tokens_file {
    struct file_part part;
    struct failure *failure;
    const qn_tokenizer *tokenizer; /* NULL: bytes are tokens */
    int width;
    int64_t count; /* tokens so far */
    size_t used;   /* of `bytes`, which are not written yet */
    unsigned char bytes[1 << 14];
};
int tokens_begin(struct tokens_file *file, const char *path, const qn_tokenizer *tokenizer,
                 struct failure *failure);
int tokens_add(struct tokens_file *file, const void *text, size_t size);
int tokens_add_id(struct tokens_file *file, int32_t id);
/* As file_end. */
int tokens_end(struct tokens_file *file, int code);

/* Writes the tokens of a text of `size` bytes to the file `path`. `*count`: how many. */
int tokens_write(const char *path, const qn_tokenizer *tokenizer, const void *text, size_t size,
                 int64_t *count, struct failure *failure);

#endif
