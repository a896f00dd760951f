/* SPDX-License-Identifier: MIT
 *
 * What recipes of dual encoders say besides: [contrastive], [passages], [passage_model].
 */
#ifndef QUERN_TOOL_CONTRASTIVE_SETTINGS_H
#define QUERN_TOOL_CONTRASTIVE_SETTINGS_H

#include "settings.h"

/* Whether the keys go together. */
int contrastive_check(const struct settings *settings, const struct recipe *recipe,
                      struct failure *failure);
/* Puts in what follows from others. */
void contrastive_complete(struct settings *settings);

#endif
