/* SPDX-License-Identifier: MIT
 *
 * Facts of a device as JSON, so that a plan can be made where the device is not.
 */
#ifndef QUERN_TOOL_FACTS_H
#define QUERN_TOOL_FACTS_H

#include "failure.h"

#include <cjson/cJSON.h>
#include <quern/device.h>

/* NULL when out of memory. */
cJSON *facts_json(const qn_facts *facts);

/* Reads facts from a file: what `quern devices --json` prints (the first device whose name contains
 * `match`, or the first that has facts), one entry of it, or the facts alone. CLBlast's buffer
 * sizes are known to the device alone, so that plans made from a file do without it. */
int facts_read(qn_facts *facts, const char *path, const char *match, struct failure *failure);

#endif
