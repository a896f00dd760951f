/* SPDX-License-Identifier: MIT
 *
 * What stands on the page of a report, one part after another.
 */
#ifndef QUERN_TOOL_REPORT_PAGE_H
#define QUERN_TOOL_REPORT_PAGE_H

#include "history.h"
#include "page.h"

#include <stddef.h>

/* A training that is reported. */
struct reported {
    const char *name; /* as it was written on the command line; borrowed */
    struct history history;
    struct series speed; /* samples per second */
    const void *picture; /* SVG of the newest plan; NULL: there is none */
    size_t picture_size;
};

struct report {
    struct reported *trainings;
    int count;
};

void report_put(struct page *page, const struct report *report);

#endif
