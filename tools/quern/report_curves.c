/* SPDX-License-Identifier: MIT */
#include "report_curves.h"
#include "chart.h"

#include <stdlib.h>
#include <string.h>

/* Of all lines together, so that the page stays small; and of one. */
enum { ALL_BINS = 20000, LEAST_BINS = 10, MOST_BINS = 400 };

/* --- which figures there are --- */

/* A figure of one training at least. */
struct kind_of_figure {
    enum figure_kind kind;
    const char *name, *title;
};

static const struct kind_of_figure known[] = {
    {FIGURE_UPDATE, "loss", "training loss"},
    {FIGURE_UPDATE, "grad_norm", "gradient norm"},
    {FIGURE_UPDATE, "grad_norm_ratio", "ratio of gradient norms"},
    {FIGURE_UPDATE, "lr", "learning rate"},
    {FIGURE_UPDATE, "noise_scale", "noise scale"},
    {FIGURE_DRIFT, "queries", "drift of queries: mean cosine"},
    {FIGURE_DRIFT, "passages", "drift of passages: mean cosine"},
    /* Not drawn: */
    {FIGURE_UPDATE, "samples", NULL},
    {FIGURE_UPDATE, "seconds", NULL},
    {FIGURE_UPDATE, "skipped", NULL},
    {FIGURE_EVALUATION, "epoch", NULL},
    {FIGURE_EVALUATION, "seconds", NULL},
    {FIGURE_EVALUATION, "test_samples", NULL},
};

static bool is_known(const struct figure_series *f)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == f->kind && strcmp(known[i].name, f->name) == 0)
            return true;
    return false;
}

/* Whether a training before this one has the figure, too. */
static bool comes_again(const struct report *r, int training, const struct figure_series *f)
{
    for (int t = 0; t < training; t++)
        if (history_find(&r->trainings[t].history, f->kind, f->name))
            return true;
    return false;
}

const char *report_readable(const char *name, char text[FIGURE_NAME_BYTES])
{
    snprintf(text, FIGURE_NAME_BYTES, "%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

const char *report_figure_title(const struct report *r, int training, int figure,
                                char text[FIGURE_NAME_BYTES])
{
    const struct figure_series *f = &r->trainings[training].history.figures[figure];
    return is_known(f) || comes_again(r, training, f) ? NULL : report_readable(f->name, text);
}

/* --- curves --- */

struct curves {
    struct page *page;
    const struct report *report;
    struct chart_line *lines; /* as many as a chart can have */
    int bins;
};

static void put_lines(const struct curves *c, enum figure_kind kind, const char *title, int n)
{
    const char *over = kind == FIGURE_DRIFT ? "age in samples" : "update";
    const struct chart chart = {title, {over, true}, c->lines, n, c->bins};
    if (n)
        chart_put(c->page, &chart);
}

/* A series without points, such as one whose updates were gone back over, has no line. */
static int add_line(const struct curves *c, int n, const char *name, const struct series *series,
                    int colour)
{
    if (!series || !series->count)
        return n;
    c->lines[n] = (struct chart_line){name, series, colour, false};
    return n + 1;
}

/* One figure of all trainings. */
static void put_figure(const struct curves *c, enum figure_kind kind, const char *name,
                       const char *title)
{
    int n = 0;
    for (int t = 0; t < c->report->count; t++) {
        const struct reported *training = &c->report->trainings[t];
        n = add_line(c, n, training->name, history_find(&training->history, kind, name), t);
    }
    put_lines(c, kind, title, n);
}

static void put_speeds(const struct curves *c)
{
    int n = 0;
    for (int t = 0; t < c->report->count; t++)
        n = add_line(c, n, c->report->trainings[t].name, &c->report->trainings[t].speed, t);
    put_lines(c, FIGURE_UPDATE, "samples per second", n);
}

/* What is not known by name, of updates or of evaluations. */
static void put_unknown(const struct curves *c, enum figure_kind kind)
{
    char text[FIGURE_NAME_BYTES];
    for (int t = 0; t < c->report->count; t++)
        for (int i = 0; i < c->report->trainings[t].history.n_figures; i++) {
            const struct figure_series *f = &c->report->trainings[t].history.figures[i];
            const char *title = report_figure_title(c->report, t, i, text);
            if (f->kind == kind && title)
                put_figure(c, kind, f->name, title);
        }
}

/* The numbers under the name of figure `first` in a training. */
static void put_group(const struct curves *c, const struct reported *t, int first)
{
    const struct history *h = &t->history;
    char title[FIGURE_NAME_BYTES], whole[2 * FIGURE_NAME_BYTES];
    int n = 0;
    for (int i = first; i < h->n_figures; i++)
        if (h->figures[i].kind == FIGURE_GROUP &&
            strcmp(h->figures[i].group, h->figures[first].group) == 0)
            n = add_line(c, n, h->figures[i].name, &h->figures[i].series, n);
    report_readable(h->figures[first].group, title);
    snprintf(whole, sizeof whole, "%s%s%.100s", title, c->report->count > 1 ? ": " : "",
             c->report->count > 1 ? t->name : "");
    put_lines(c, FIGURE_GROUP, whole, n);
}

static void put_groups(const struct curves *c, const struct reported *t)
{
    const struct history *h = &t->history;
    for (int i = 0; i < h->n_figures; i++) {
        bool first = h->figures[i].kind == FIGURE_GROUP;
        for (int k = 0; k < i && first; k++)
            first = h->figures[k].kind != FIGURE_GROUP ||
                    strcmp(h->figures[k].group, h->figures[i].group) != 0;
        if (first)
            put_group(c, t, i);
    }
}

void report_curves(struct page *page, const struct report *r)
{
    struct curves c = {.page = page, .report = r};
    int lines = 0;
    for (int t = 0; t < r->count; t++)
        lines += r->trainings[t].history.n_figures;
    c.lines = calloc((size_t)lines + (size_t)r->count, sizeof *c.lines);
    page->failed |= !c.lines;
    if (!c.lines)
        return;
    c.bins = lines ? ALL_BINS / lines : MOST_BINS;
    c.bins = c.bins < LEAST_BINS ? LEAST_BINS : c.bins > MOST_BINS ? MOST_BINS : c.bins;
    page_section(page, "Curves");
    page_grid(page, false);
    put_figure(&c, FIGURE_UPDATE, known[0].name, known[0].title);
    put_unknown(&c, FIGURE_EVALUATION);
    for (size_t i = 1; i < sizeof known / sizeof *known; i++)
        if (known[i].title)
            put_figure(&c, known[i].kind, known[i].name, known[i].title);
    put_speeds(&c);
    put_unknown(&c, FIGURE_UPDATE);
    for (int t = 0; t < r->count; t++)
        put_groups(&c, &r->trainings[t]);
    page_grid_end(page);
    page_section_end(page);
    free(c.lines);
}
