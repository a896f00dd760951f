/* SPDX-License-Identifier: MIT
 *
 * A checkpoint of rank 0, for all ranks: where its folder is seen it is read there, the others
 * receive its files.
 */
#ifndef QUERN_TOOL_RANKS_CHECKPOINT_H
#define QUERN_TOOL_RANKS_CHECKPOINT_H

#include "failure.h"

#include <limits.h>
#include <stdbool.h>

struct ranks_checkpoint {
    char path[PATH_MAX]; /* where this rank reads it */
    bool copied;         /* into a folder of its own */
};

/* Called by all ranks at the same point. `path`: rank 0's folder, with checksums.txt. */
int ranks_checkpoint_open(struct ranks_checkpoint *checkpoint, const char *path,
                          struct failure *failure);
/* Removes the copy, if there is one. */
void ranks_checkpoint_close(struct ranks_checkpoint *checkpoint);

#endif
