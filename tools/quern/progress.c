/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include "line.h"
#include "value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

/* Seconds between two writings. */
static const double pause_terminal = 0.2, pause_plain = 10;

double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_end(struct progress *p)
{
    if (p->open)
        printf("\n");
    p->open = false;
    fflush(stdout);
}

void progress_say(struct progress *p, const char *format, ...)
{
    if (p->quiet)
        return;
    if (p->open)
        printf("\r\033[K");
    p->open = false;
    va_list args;
    va_start(args, format);
    line_print_args(stdout, format, args);
    va_end(args);
    fflush(stdout);
}

static void time_left(const struct progress *p, int64_t updates, char text[32])
{
    double mean = p->updates ? p->seconds / (double)p->updates : 0;
    int64_t left = (int64_t)(mean * (double)updates + 0.5);
    if (left >= 3600)
        snprintf(text, 32, "%" PRId64 "h%02dm", left / 3600, (int)(left % 3600 / 60));
    else
        snprintf(text, 32, "%dm%02ds", (int)(left / 60), (int)(left % 60));
}

static void write_status(const struct progress *p, const qn_metrics *m, int64_t position)
{
    char left[32], bytes[SIZE_TEXT_BYTES], budget[SIZE_TEXT_BYTES];
    time_left(p, p->total - m->update - 1, left);
    printf("epoch %.2f  update %" PRId64 "/%" PRId64
           "  loss %.4f  %.0f samples/s  %s left  %s of %s",
           (double)position / (double)p->samples_per_epoch, m->update + 1, p->total, m->loss,
           p->seconds > 0 ? (double)p->samples / p->seconds : 0, left, size_text(p->bytes, bytes),
           size_text(p->budget, budget));
}

void progress_update(struct progress *p, const qn_metrics *m, int64_t position, double seconds)
{
    double now = clock_now();
    p->updates++;
    p->samples += m->samples;
    p->seconds += seconds;
    bool last = m->update + 1 == p->total;
    if (p->quiet || (!last && now - p->shown < (p->terminal ? pause_terminal : pause_plain)))
        return;
    p->shown = now;
    if (p->terminal)
        printf("\r\033[K");
    write_status(p, m, position);
    p->open = p->terminal;
    if (!p->terminal)
        printf("\n");
    fflush(stdout);
}

void progress_evaluation(struct progress *p, const struct moment *moment,
                         const struct evaluation *evaluation)
{
    char text[EVALUATION_TEXT_BYTES];
    progress_say(p, "epoch %.2f  update %" PRId64 "  %s  (%.1f s)", moment->epoch, moment->update,
                 evaluation_text(evaluation, text), moment->seconds);
}
