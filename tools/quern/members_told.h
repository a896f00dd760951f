/* SPDX-License-Identifier: MIT
 *
 * What each member is told of, on the way between ranks and to the reader: a list of objects with
 * "name", "share", "plan" (a text), "summary", and "cells" and "work", columns of a table.
 */
#ifndef QUERN_TOOL_MEMBERS_TOLD_H
#define QUERN_TOOL_MEMBERS_TOLD_H

#include "members.h"

/* Adds the columns of a session's member (members_print.c). */
void members_tell_cells(cJSON *member, const struct session *session);

#endif
