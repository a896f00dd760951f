/* SPDX-License-Identifier: MIT
 *
 * A trace of one update in the Chrome trace format, which chrome://tracing and Perfetto show; of
 * several members of this process, a process of it for each.
 */
#ifndef QUERN_TOOL_PROFILE_H
#define QUERN_TOOL_PROFILE_H

#include "failure.h"

#include <cjson/cJSON.h>
#include <quern/quern.h>

/* The update that is traced, counted from that with which a run begins: the first ones are slower.
 */
enum { PROFILE_UPDATE = 2 };

/* Names of qn_profile_kind. */
enum { PROFILE_KINDS = QN_PROFILE_TRANSFER + 1 };
extern const char *const profile_kinds[PROFILE_KINDS];

struct profile {
    int member; /* its number */
    cJSON *events;
    double seconds[PROFILE_KINDS]; /* of all steps of a kind */
    double begin;                  /* of the first step */
    bool failed;                   /* out of memory */
};

/* For qn_trainer_profile; `profile` zeroed but for its member to begin. */
void profile_step(void *profile, const qn_profile_step *step);
/* Writes and frees the traces of all; the seconds stay. */
int profile_write(struct profile *profiles, int count, const char *path, struct failure *failure);

#endif
