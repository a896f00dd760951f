/* SPDX-License-Identifier: MIT */
#include "check_progress.h"
#include "progress.h"

#include <stdio.h>

/* Seconds between two plain lines. A terminal shows each check, since any may take long. */
static const double pause_plain = 10;

enum { TEXT_BYTES = 256 };

/* By the mean time of the checks so far. */
static void write_counter(const struct check_progress *p, const struct check_message *begun,
                          double now, char text[TEXT_BYTES])
{
    const int done = begun->number - 1, left = begun->total - done;
    char time[TIME_TEXT_BYTES] = "";
    if (done > 0)
        time_text((now - p->start) / done * left, time);
    snprintf(text, TEXT_BYTES, "%d/%d%s%s%s", begun->number, begun->total, done ? "  " : "", time,
             done ? " left" : "");
}

void check_progress_show(struct check_progress *p, const struct check_message *begun)
{
    char counter[TEXT_BYTES], line[2 * TEXT_BYTES];
    const double now = clock_now();
    if (p->start <= 0)
        p->start = p->shown = now;
    if (p->quiet || (!p->terminal && now - p->shown < pause_plain))
        return;
    p->shown = now;
    write_counter(p, begun, now, counter);
    snprintf(line, sizeof line, "%s  %s/%s %s %s", counter, begun->op, begun->item, begun->storage,
             begun->variant);
    if (p->terminal)
        printf("\r\033[K%.*s", columns_now() - 1, line);
    else
        printf("%s\n", line);
    p->open = p->terminal;
    fflush(stdout);
}

void check_progress_clear(struct check_progress *p)
{
    if (p->open)
        printf("\r\033[K");
    p->open = false;
}
