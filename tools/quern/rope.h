/* SPDX-License-Identifier: MIT
 *
 * What a config.json says about rotary positions: rope_scaling, or rope_parameters of transformers
 * 5, which has the base, too.
 */
#ifndef QUERN_TOOL_ROPE_H
#define QUERN_TOOL_ROPE_H

#include "config.h"

#include <cjson/cJSON.h>

/* Reads either of them; gives NULL or a reason, valid until the next call. */
const char *rope_read(struct config *config, const cJSON *item);
/* Adds rope_scaling to a file that is written. False: out of memory. */
bool rope_put(cJSON *object, const struct config *config);

#endif
