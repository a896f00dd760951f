/* SPDX-License-Identifier: MIT
 *
 * What each member is told of, on the way between ranks and to the reader: a list of objects with
 * "name", "share", "plan" (a text), "summary", and "cells" and "work", columns of a table.
 */
#ifndef QUERN_TOOL_MEMBERS_TOLD_H
#define QUERN_TOOL_MEMBERS_TOLD_H

#include "members.h"

/* What is said of a member; NULL: out of memory. */
typedef cJSON *(*members_describe)(const struct session *session, void *user);

/* Gathers what `describe` says of each member, of all ranks, which call it at the same point: *list
 * is an array by number on rank 0, freed by the caller, NULL on the others and after a failure.
 * Without members, of the session (members_gather.c). */
int members_gather(struct session *session, members_describe describe, void *user, cJSON **list);

/* Adds the columns of a session's member (members_print.c). */
void members_tell_cells(cJSON *member, const struct session *session);

#endif
