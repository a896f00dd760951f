/* SPDX-License-Identifier: MIT
 *
 * Small files, read and written whole; large ones mapped into memory and written in parts.
 */
#ifndef QUERN_TOOL_FILE_H
#define QUERN_TOOL_FILE_H

#include "failure.h"

#include <stdbool.h>
#include <stddef.h>

enum { FILE_TEXT_BYTES = 1 << 22 };

/* The text of a file of less than FILE_TEXT_BYTES; freed by the caller. */
int file_read(char **text, const char *path, struct failure *failure);
/* Replaces a file: the new text, or bytes, stands under its name whole or not at all. */
int file_replace(const char *path, const char *text, struct failure *failure);
int file_write(const char *path, const void *bytes, size_t size, struct failure *failure);
/* A file under way, beside the one that it will replace. */
struct file_part {
    char name[4096];
    const char *path;
    int descriptor;
};
int file_begin(struct file_part *part, const char *path, struct failure *failure);
int file_add(struct file_part *part, const void *bytes, size_t size, struct failure *failure);
/* Gives the file its name if `code`, of what was written, is CODE_DONE; whatever happens, the part
 * is gone. Gives `code`, or why the file could not have its name. */
int file_end(struct file_part *part, int code, struct failure *failure);
/* Ends a part whose file shall not appear. */
void file_drop(struct file_part *part);

/* The bytes of a regular file that is not empty, to be read and given back. */
int file_map(const void **bytes, size_t *size, const char *path, struct failure *failure);
void file_unmap(const void *bytes, size_t size);
bool file_is_folder(const char *path);
/* Removes a folder and the files in it, as far as that can be done. */
void file_remove_folder(const char *path);

#endif
