/* SPDX-License-Identifier: MIT
 *
 * Pictures of the plans that run, in the folder of a training.
 */
#ifndef QUERN_TOOL_PICTURES_H
#define QUERN_TOOL_PICTURES_H

#include "session.h"

/* Writes one for each member, of all ranks, which call it at the same point, into rank 0's folder:
 * HISTORY_PICTURE, plan-1.svg and so on. `out` NULL: there is none. */
int pictures_keep(struct session *session, const char *out);

#endif
