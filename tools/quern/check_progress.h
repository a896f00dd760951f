/* SPDX-License-Identifier: MIT
 *
 * What a person sees of `quern check` between two lines of its report: what is checked, how many
 * checks are done of how many, and the time left. On a terminal one line written again and again,
 * elsewhere plain lines now and then.
 */
#ifndef QUERN_TOOL_CHECK_PROGRESS_H
#define QUERN_TOOL_CHECK_PROGRESS_H

#include "check_workers.h"

#include <stdbool.h>

struct check_progress {
    bool quiet, terminal;
    double start, shown; /* moments: of the first check, of the newest line */
    bool open;           /* a line without its end stands on the terminal */
};

/* A check begins. */
void check_progress_show(struct check_progress *progress, const struct check_message *begun);
/* Makes room for a line of the report. */
void check_progress_clear(struct check_progress *progress);

#endif
