/* SPDX-License-Identifier: MIT
 *
 * A trained model that a text is continued with: a checkpoint, or a folder in Hugging Face's
 * layout.
 */
#ifndef QUERN_TOOL_SOURCE_H
#define QUERN_TOOL_SOURCE_H

#include "pretrained.h"

#include <quern/quern.h>

struct source {
    struct recipe recipe; /* of the checkpoint, or what config.json says */
    struct pretrained pretrained;
    qn_checkpoint *checkpoint; /* NULL: `pretrained` has the weights */
    const char *model;
    qn_model_option options[MAX_MODEL_OPTIONS];
    int n_options;
    qn_model_data data;
};

int source_open(struct source *source, const char *path, struct failure *failure);
int source_load(const struct source *source, qn_trainer *trainer, struct failure *failure);
void source_close(struct source *source);

#endif
