/* SPDX-License-Identifier: MIT
 *
 * What ranks must have alike before any of them opens a device.
 */
#ifndef QUERN_TOOL_RANKS_COMPARE_H
#define QUERN_TOOL_RANKS_COMPARE_H

#include "session.h"

/* Refuses another version of the program, another recipe or other samples than those of rank 0.
 * Recipes may differ in paths and in what is said of devices. */
int ranks_compare(const struct session *session);
/* Refuses other weights than those of rank 0. Needs a trainer. */
int ranks_compare_weights(const struct session *session);

#endif
