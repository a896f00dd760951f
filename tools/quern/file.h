/* SPDX-License-Identifier: MIT
 *
 * Small files, read and written whole.
 */
#ifndef QUERN_TOOL_FILE_H
#define QUERN_TOOL_FILE_H

#include "failure.h"

#include <stdbool.h>

enum { FILE_TEXT_BYTES = 1 << 22 };

/* The text of a file of less than FILE_TEXT_BYTES; freed by the caller. */
int file_read(char **text, const char *path, struct failure *failure);
/* Replaces a file: the new text stands under its name whole or not at all. */
int file_replace(const char *path, const char *text, struct failure *failure);
bool file_is_folder(const char *path);

#endif
