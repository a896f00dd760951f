/* SPDX-License-Identifier: MIT
 *
 * A trace of one update in the Chrome trace format, which chrome://tracing and Perfetto show; of
 * several members a process of it for each, those of other ranks, too.
 */
#ifndef QUERN_TOOL_PROFILE_H
#define QUERN_TOOL_PROFILE_H

#include "session.h"

#include <cjson/cJSON.h>

/* The update that is traced, counted from that with which a run begins: the first ones are slower.
 */
enum { PROFILE_UPDATE = 2 };

/* One update, step by step, by all ranks, which call it at the same point. *profiles: on rank 0
 * what each member did, freed by the caller: objects with "begin" of the first step, in seconds of
 * rank 0's clock, "seconds" by kind of step, and "events" of the trace, in microseconds since
 * `begin`. NULL on the others and after a failure. */
int profile_update(struct session *session, const qn_cycle *cycle, qn_metrics *previous,
                   cJSON **profiles);
/* Writes the trace of all, and takes the events out of them. */
int profile_write(cJSON *profiles, const char *path, struct failure *failure);

#endif
