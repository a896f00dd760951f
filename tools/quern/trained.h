/* SPDX-License-Identifier: MIT
 *
 * What was learned, as commands that use it are told: DIR, the folder of a training or a
 * checkpoint, which has its own recipe, or a RECIPE with --weights.
 */
#ifndef QUERN_TOOL_TRAINED_H
#define QUERN_TOOL_TRAINED_H

#include "session.h"

/* A zeroed struct is none. */
struct trained {
    const char *weights;            /* a file, or a folder for newest_load; borrowed */
    const qn_checkpoint_info *info; /* of the folder's newest checkpoint; NULL: a file */
    qn_checkpoint *checkpoint;
};

/* Finds the weights and reads the recipe into the session: that of the checkpoint, unless one is
 * named. `command` is for messages. */
int trained_open(struct trained *trained, struct session *session,
                 const struct arguments *arguments, const char *command);
/* A trainer with these weights, of a session that has its data. */
int trained_load(const struct trained *trained, struct session *session,
                 const struct arguments *arguments);
void trained_close(struct trained *trained);

#endif
