/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include "line.h"
#include "value.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

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

const char *time_text(double seconds, char text[TIME_TEXT_BYTES])
{
    const int64_t whole = (int64_t)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, TIME_TEXT_BYTES, "%" PRId64 "h%02dm", whole / 3600,
                 (int)(whole % 3600 / 60));
    else
        snprintf(text, TIME_TEXT_BYTES, "%dm%02ds", (int)(whole / 60), (int)(whole % 60));
    return text;
}

static const char *time_left(const struct progress *p, int64_t updates, char text[TIME_TEXT_BYTES])
{
    const double mean = p->updates ? p->seconds / (double)p->updates : 0;
    return time_text(mean * (double)updates, text);
}

static double samples_per_second(const struct progress *p)
{
    return p->seconds > 0 ? (double)p->samples / p->seconds : 0;
}

/* --- on a terminal --- */

/* From left to right; the piece of the highest rank is left out first. */
enum piece { BAR, UPDATE, LOSS, METRIC, SPEED, LEFT, BYTES, EPOCH, PIECES };
static const int rank[PIECES] = {
    [LOSS] = 0,   [UPDATE] = 1, [LEFT] = 2,  [BAR] = 3,
    [METRIC] = 4, [SPEED] = 5,  [BYTES] = 6, [EPOCH] = 7,
};
enum { GAP = 2, BAR_LEAST = 10, BAR_MOST = 30 };

static void put_bar(char *bar, int columns, double share)
{
    const int inner = columns - 2, done = (int)(fmin(share, 1) * inner);
    bar[0] = '[';
    for (int i = 0; i < inner; i++)
        bar[1 + i] = i < done ? '=' : i == done ? '>' : ' ';
    snprintf(bar + 1 + inner, 2, "]");
}

static int width_of(char pieces[PIECES][80])
{
    int width = -GAP;
    for (int i = 0; i < PIECES; i++)
        width += *pieces[i] ? GAP + (int)strlen(pieces[i]) : 0;
    return width;
}

/* Empties pieces until they fit, the last one excepted. */
static void fit(char pieces[PIECES][80], int columns)
{
    for (int worst = PIECES - 1; worst > 0 && width_of(pieces) > columns; worst--)
        for (int i = 0; i < PIECES; i++)
            if (rank[i] == worst)
                *pieces[i] = 0;
}

const char *progress_line(const struct progress *p, const qn_metrics *m, int64_t position,
                          int columns, char text[PROGRESS_LINE_BYTES])
{
    char pieces[PIECES][80] = {{0}}, left[TIME_TEXT_BYTES], bytes[SIZE_TEXT_BYTES],
         budget[SIZE_TEXT_BYTES];
    const int room = columns < 2 ? 1 : columns - 1;
    time_left(p, p->total - m->update - 1, left);
    put_bar(pieces[BAR], BAR_LEAST, 0);
    snprintf(pieces[UPDATE], 80, "%" PRId64 "/%" PRId64, m->update + 1, p->total);
    snprintf(pieces[LOSS], 80, "loss %.4f", m->loss);
    snprintf(pieces[METRIC], 80, "%s", p->metric);
    snprintf(pieces[SPEED], 80, "%.0f samples/s", samples_per_second(p));
    snprintf(pieces[LEFT], 80, "%s left", left);
    snprintf(pieces[BYTES], 80, "%s of %s", size_text(p->bytes, bytes),
             size_text(p->budget, budget));
    snprintf(pieces[EPOCH], 80, "epoch %.2f", (double)position / (double)p->samples_per_epoch);
    fit(pieces, room);
    const int bar = BAR_LEAST + room - width_of(pieces);
    if (*pieces[BAR])
        put_bar(pieces[BAR], bar < BAR_MOST ? bar : BAR_MOST,
                (double)(m->update + 1) / (double)p->total);
    size_t length = 0;
    *text = 0;
    for (int i = 0; i < PIECES; i++)
        if (*pieces[i])
            length += (size_t)snprintf(text + length, PROGRESS_LINE_BYTES - length, "%s%s",
                                       length ? "  " : "", pieces[i]);
    if (room < (int)length)
        text[room] = 0;
    return text;
}

int columns_now(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* --- all of it --- */

static void write_status(const struct progress *p, const qn_metrics *m, int64_t position)
{
    char left[TIME_TEXT_BYTES], bytes[SIZE_TEXT_BYTES], budget[SIZE_TEXT_BYTES],
        line[PROGRESS_LINE_BYTES];
    if (p->terminal) {
        printf("\r\033[K%s", progress_line(p, m, position, columns_now(), line));
        return;
    }
    time_left(p, p->total - m->update - 1, left);
    printf("epoch %.2f  update %" PRId64 "/%" PRId64
           "  loss %.4f  %.0f samples/s  %s left  %s of %s\n",
           (double)position / (double)p->samples_per_epoch, m->update + 1, p->total, m->loss,
           samples_per_second(p), left, size_text(p->bytes, bytes), size_text(p->budget, budget));
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
    write_status(p, m, position);
    p->open = p->terminal;
    fflush(stdout);
}

void progress_evaluation(struct progress *p, const struct moment *moment,
                         const struct evaluation *evaluation)
{
    char text[EVALUATION_TEXT_BYTES];
    progress_say(p, "epoch %.2f  update %" PRId64 "  %s  (%.1f s)", moment->epoch, moment->update,
                 evaluation_text(evaluation, text), moment->seconds);
    char *end = strstr(text, "  ");
    if (end)
        *end = 0;
    snprintf(p->metric, sizeof p->metric, "%.63s", strncmp(text, "test ", 5) ? text : text + 5);
}
