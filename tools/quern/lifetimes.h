/* SPDX-License-Identifier: MIT
 *
 * Lifetime tables: CSV text, one buffer a line.
 */
#ifndef QUERN_TOOL_LIFETIMES_H
#define QUERN_TOOL_LIFETIMES_H

#include "failure.h"

#include <quern/plan.h>
#include <stdint.h>

#define LIFETIMES_HEADER "id,lower,upper,size"

/* Buffers as the lines have them: lower < upper, sizes from 0 on, offsets 0. A zeroed struct is
 * none. */
struct lifetimes {
    const char *path; /* borrowed */
    char *text;       /* what names point into; commas and line ends are overwritten */
    const char **names;
    qn_lifetime *buffers;
    int count;
    int64_t sum; /* of the sizes */
};

/* Reads a file; also after a failure the table is freed by the caller. */
int lifetimes_read(struct lifetimes *table, const char *path, struct failure *failure);
void lifetimes_free(struct lifetimes *table);

#endif
