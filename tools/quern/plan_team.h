/* SPDX-License-Identifier: MIT
 *
 * quern plan --members: what updates of members that are not here take.
 */
#ifndef QUERN_TOOL_PLAN_TEAM_H
#define QUERN_TOOL_PLAN_TEAM_H

#include "session.h"

int plan_team(struct session *session, const struct arguments *arguments);

#endif
