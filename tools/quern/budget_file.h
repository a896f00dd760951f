/* SPDX-License-Identifier: MIT
 *
 * A file with a size in it ("512MiB"), which somebody may change while a training runs.
 */
#ifndef QUERN_TOOL_BUDGET_FILE_H
#define QUERN_TOOL_BUDGET_FILE_H

#include "failure.h"

#include <stdbool.h>
#include <stdint.h>

struct budget_file {
    const char *path; /* NULL: there is none */
    char text[64];    /* what it said last, without blanks at the end */
    bool empty;       /* it is, or was about to be written */
    char why[192];    /* why it says no size; "": it says one */
};

/* Reads the size for the first time. CODE_USAGE: it cannot be read, or holds no size. */
int budget_file_open(struct budget_file *file, const char *path, int64_t *bytes,
                     struct failure *failure);
/* Whether it says something new: then file->why tells why that is no size, or *bytes is the size. A
 * file that cannot be read or is empty, since somebody is about to write it, says nothing new. */
bool budget_file_changed(struct budget_file *file, int64_t *bytes);

#endif
