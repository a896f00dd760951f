/* SPDX-License-Identifier: MIT
 *
 * Texts that are learned as tokens, a file of them or JSON lines: the tokenizer, which is there or
 * is made of the text, and the files of their tokens. What is made lies in the cache folder and is
 * made once, for as long as text and tokenizer stay as they are; without a cache folder, in a
 * folder that is removed at the end.
 */
#ifndef QUERN_TOOL_TEXT_H
#define QUERN_TOOL_TEXT_H

#include "settings.h"

#include <quern/data.h>
#include <quern/text.h>

enum { TEXT_PATH_BYTES = 4096 };

/* A zeroed struct is none: bytes are the tokens. */
struct text {
    const struct data_settings *settings; /* borrowed by text_open */
    qn_tokenizer *tokenizer;
    char tokenizer_path[TEXT_PATH_BYTES];
    bool made;                    /* the tokenizer is */
    char folder[TEXT_PATH_BYTES]; /* of what is made; "": not asked for yet */
    bool temporary;
    bool quiet; /* nothing is said while it takes long */
};

/* Opens the tokenizer of the settings, or makes it of the text; nothing where they have none. */
int text_open(struct text *text, const struct data_settings *settings, struct failure *failure);
/* The file of the tokens of a text, or of those of JSON lines with the separator behind each, and
 * its type. */
int text_tokens(struct text *text, const char *path, char tokens[TEXT_PATH_BYTES],
                qn_token_type *type, struct failure *failure);
/* Writes the tokenizer to a file of its own, which appears whole or not at all. */
int text_save(const struct text *text, const char *path, struct failure *failure);
/* Bytes of text that each of the labels of a dataset of tokens stands for, on average over those
 * that count. */
int text_measure(const struct text *text, const qn_dataset *dataset, double *bytes_per_token,
                 struct failure *failure);
void text_close(struct text *text);

#endif
