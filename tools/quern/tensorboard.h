/* SPDX-License-Identifier: MIT
 *
 * Event files, which TensorBoard shows: records of TFRecord form, each a message Event of
 * tensorflow/core/util/event.proto, of which only scalars are written.
 */
#ifndef QUERN_TOOL_TENSORBOARD_H
#define QUERN_TOOL_TENSORBOARD_H

#include "evaluate.h"
#include "norms.h"

struct tensorboard {
    char path[4096]; /* "": nothing is written */
    int descriptor;
};

/* Begins an event file in a folder, which is made if it is missing; NULL: none. Events of earlier
 * files in it after `updates` are replaced by those that follow. */
int tensorboard_open(struct tensorboard *board, const char *folder, int64_t updates,
                     struct failure *failure);
void tensorboard_close(struct tensorboard *board);

/* train/loss, train/lr, train/grad_norm, train/samples_per_second, of groups grad_norms/NAME and
 * train/grad_norm_ratio. Steps are the updates done. */
int tensorboard_update(const struct tensorboard *board, const qn_metrics *update,
                       const struct norms *norms, double seconds, struct failure *failure);
/* test/accuracy and the like, or validation/accuracy. */
int tensorboard_evaluation(const struct tensorboard *board, const struct moment *moment,
                           const struct evaluation *evaluation, struct failure *failure);

#endif
