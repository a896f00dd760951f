/* SPDX-License-Identifier: MIT
 *
 * What stands on the page of a report, one part after another.
 */
#ifndef QUERN_TOOL_REPORT_PAGE_H
#define QUERN_TOOL_REPORT_PAGE_H

#include "page.h"
#include "reported.h"

void report_put(struct page *page, const struct report *report);

#endif
