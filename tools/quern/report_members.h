/* SPDX-License-Identifier: MIT
 *
 * The members of trainings by several devices, on the page of a report.
 */
#ifndef QUERN_TOOL_REPORT_MEMBERS_H
#define QUERN_TOOL_REPORT_MEMBERS_H

#include "page.h"
#include "reported.h"

bool report_has_members(const struct reported *training);
/* A table: a row for each member, with its plan and with what it did in the newest run. */
void report_members(struct page *page, const struct reported *training);

#endif
