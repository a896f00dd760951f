/* SPDX-License-Identifier: MIT
 *
 * The newest checkpoint of a training that may go on: it removes older ones, even one that is being
 * read, and then there is a newer one.
 */
#ifndef QUERN_TOOL_NEWEST_H
#define QUERN_TOOL_NEWEST_H

#include "failure.h"

#include <quern/train.h>

/* `path`: the folder of a training or of a checkpoint. */
qn_status newest_open(qn_checkpoint **checkpoint, const char *path, struct failure *failure);
/* Loads its weights; of a file, those that it has. */
qn_status newest_load(qn_trainer *trainer, const char *path, struct failure *failure);

#endif
