/* SPDX-License-Identifier: MIT
 *
 * The texts of a file of JSON lines, one after another.
 */
#ifndef QUERN_TOOL_JSON_TEXTS_H
#define QUERN_TOOL_JSON_TEXTS_H

#include "tokens.h"

/* Begins a part beside the file `beside` and writes the texts under `field` to it, a line end
 * behind each. The caller drops the part, unless this fails. */
int json_texts_join(struct file_part *part, const char *beside, const char *path, const char *field,
                    struct failure *failure);
/* Adds their tokens to a file of tokens, the separator behind each. */
int json_texts_add(struct tokens_file *file, const char *path, const char *field,
                   int32_t separator);

#endif
