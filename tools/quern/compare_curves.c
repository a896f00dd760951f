/* SPDX-License-Identifier: MIT */
#include "compare_curves.h"
#include "chart.h"
#include "report_curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of all lines together, so that the page stays small; and of one. */
enum { ALL_BINS = 40000, LEAST_BINS = 10, MOST_BINS = 400 };

/* What a figure is drawn over: of all updates before it the sum of a figure, or as it stands. */
enum over { OVER_SAMPLES, OVER_SECONDS, OVERS, OVER_ITSELF = OVERS };
static const char *const summed[OVERS] = {"samples", "seconds"};
static const struct chart_axis axes[] = {
    {"samples", true}, {"seconds of updates", false}, {"age in samples", true}};

struct figure_name {
    enum figure_kind kind;
    const char *group, *name;
};

struct curves {
    struct page *page;
    const struct comparison *comparison;
    struct series (*sums)[OVERS]; /* of each run: the sum of all updates up to one, over updates */
    struct series *drawn;         /* of the chart under way, as many as its lines */
    struct chart_line *lines;
    int n, bins;
};

/* --- series --- */

static bool add_up(struct series *to, const struct series *of)
{
    double sum = 0;
    for (int64_t i = 0; of && i < of->count; i++) {
        sum += isfinite(of->y[i]) ? of->y[i] : 0;
        if (!series_add(to, of->x[i], sum))
            return false;
    }
    return true;
}

/* The same points over another x; before the first update it is 0. */
static bool move(struct series *to, const struct series *of, const struct series *over)
{
    for (int64_t i = 0; i < of->count; i++) {
        const double x = over ? series_at(over, of->x[i]) : of->x[i];
        if (!series_add(to, isfinite(x) ? x : 0, of->y[i]))
            return false;
    }
    return true;
}

/* The means of x and y of each point, as far as all series have it. */
static bool average(struct series *to, const struct series *of, int count)
{
    int64_t points = of[0].count;
    for (int s = 1; s < count; s++)
        points = of[s].count < points ? of[s].count : points;
    for (int64_t i = 0; i < points; i++) {
        double x = 0, y = 0;
        for (int s = 0; s < count; s++) {
            x += of[s].x[i] / count;
            y += of[s].y[i] / count;
        }
        if (!series_add(to, x, y))
            return false;
    }
    return true;
}

static const struct series *find(const struct reported *t, const struct figure_name *f)
{
    return f->kind == FIGURE_GROUP ? history_group(&t->history, f->group, f->name)
                                   : history_find(&t->history, f->kind, f->name);
}

/* --- charts --- */

static struct series *add_line(struct curves *c, const char *name, int variant, bool pale)
{
    struct series *series = &c->drawn[c->n];
    c->lines[c->n++] = (struct chart_line){name, series, variant, pale};
    return series;
}

static void put_variant(struct curves *c, const struct figure_name *f, enum over over, int variant)
{
    const struct comparison *of = c->comparison;
    const int seeds = of->variants.n_seeds, first = c->n;
    const char *name = of->variant_names[variant];
    for (int r = variant * seeds; r < (variant + 1) * seeds; r++) {
        const struct series *series = find(&of->report.trainings[r], f);
        if (series && series->count)
            c->page->failed |= !move(add_line(c, of->runs[r].name, variant, seeds > 1), series,
                                     over < OVERS ? &c->sums[r][over] : NULL);
    }
    const int count = c->n - first;
    if (seeds > 1 && count)
        c->page->failed |=
            !average(add_line(c, *name ? name : "mean", variant, false), &c->drawn[first], count);
}

static void put_figure(struct curves *c, enum figure_kind kind, const char *group, const char *name,
                       enum over over, const char *title)
{
    const struct figure_name figure = {kind, group, name};
    c->n = 0;
    for (int v = 0; v < c->comparison->variants.n_variants; v++)
        put_variant(c, &figure, over, v);
    const struct chart chart = {title, axes[over], c->lines, c->n, c->bins};
    if (c->n && !c->page->failed)
        chart_put(c->page, &chart);
    while (c->n)
        series_free(&c->drawn[--c->n]);
}

/* What is not known by name, of updates or of evaluations. */
static void put_others(struct curves *c, enum figure_kind kind, enum over over)
{
    const struct report *r = &c->comparison->report;
    char text[FIGURE_NAME_BYTES];
    for (int t = 0; t < r->count; t++)
        for (int i = 0; i < r->trainings[t].history.n_figures; i++) {
            const struct figure_series *f = &r->trainings[t].history.figures[i];
            const char *title = report_figure_title(r, t, i, text);
            if (f->kind == kind && title)
                put_figure(c, kind, "", f->name, over, title);
        }
}

/* Whether a run before this one has a figure of that group and name. */
static bool comes_again(const struct report *r, int training, const struct figure_series *f)
{
    const struct figure_name name = {f->kind, f->group, f->name};
    for (int t = 0; t < training; t++)
        if (find(&r->trainings[t], &name))
            return true;
    return false;
}

/* Each number under the name of a figure of updates. */
static void put_groups(struct curves *c)
{
    const struct report *r = &c->comparison->report;
    char group[FIGURE_NAME_BYTES], title[2 * FIGURE_NAME_BYTES];
    for (int t = 0; t < r->count; t++)
        for (int i = 0; i < r->trainings[t].history.n_figures; i++) {
            const struct figure_series *f = &r->trainings[t].history.figures[i];
            if (f->kind != FIGURE_GROUP || comes_again(r, t, f))
                continue;
            snprintf(title, sizeof title, "%s: %s", report_readable(f->group, group), f->name);
            put_figure(c, FIGURE_GROUP, f->group, f->name, OVER_SAMPLES, title);
        }
}

/* The newest that was measured, by age: cosines of 1 are of what did not change at all. */
static void put_drift(struct curves *c)
{
    put_figure(c, FIGURE_DRIFT, "", "queries", OVER_ITSELF, "drift of queries: mean cosine");
    put_figure(c, FIGURE_DRIFT, "", "passages", OVER_ITSELF, "drift of passages: mean cosine");
}

/* --- the whole --- */

static void put_section(struct curves *c, const char *title, enum over over)
{
    page_section(c->page, "%s", title);
    page_grid(c->page, false);
    put_figure(c, FIGURE_UPDATE, "", "loss", over, "training loss");
    put_others(c, FIGURE_EVALUATION, over);
    page_grid_end(c->page);
    page_section_end(c->page);
}

static void put_rest(struct curves *c)
{
    page_section(c->page, "Gradients and the rest over samples");
    page_grid(c->page, false);
    put_figure(c, FIGURE_UPDATE, "", "grad_norm", OVER_SAMPLES, "gradient norm");
    put_figure(c, FIGURE_UPDATE, "", "grad_norm_ratio", OVER_SAMPLES, "ratio of gradient norms");
    put_groups(c);
    put_drift(c);
    put_figure(c, FIGURE_UPDATE, "", "lr", OVER_SAMPLES, "learning rate");
    put_others(c, FIGURE_UPDATE, OVER_SAMPLES);
    page_grid_end(c->page);
    page_section_end(c->page);
}

static void choose_bins(struct curves *c)
{
    int lines = 1;
    for (int t = 0; t < c->comparison->report.count; t++)
        lines += c->comparison->report.trainings[t].history.n_figures;
    const int bins = ALL_BINS / lines;
    c->bins = bins < LEAST_BINS ? LEAST_BINS : bins > MOST_BINS ? MOST_BINS : bins;
}

static bool add_up_all(struct curves *c)
{
    for (int t = 0; t < c->comparison->report.count; t++)
        for (int over = 0; over < OVERS; over++)
            if (!add_up(&c->sums[t][over], history_find(&c->comparison->report.trainings[t].history,
                                                        FIGURE_UPDATE, summed[over])))
                return false;
    return true;
}

void compare_curves(struct page *page, const struct comparison *comparison)
{
    struct curves c = {.page = page, .comparison = comparison};
    const size_t runs = (size_t)comparison->report.count;
    c.sums = calloc(runs, sizeof *c.sums);
    c.drawn = calloc(2 * runs, sizeof *c.drawn);
    c.lines = calloc(2 * runs, sizeof *c.lines);
    choose_bins(&c);
    page->failed |= !c.sums || !c.drawn || !c.lines || !add_up_all(&c);
    if (!page->failed) {
        put_section(&c, "Over samples", OVER_SAMPLES);
        put_section(&c, "Over the seconds of the updates", OVER_SECONDS);
        put_rest(&c);
    }
    for (size_t i = 0; c.sums && i < runs; i++)
        for (int over = 0; over < OVERS; over++)
            series_free(&c.sums[i][over]);
    free(c.sums);
    free(c.drawn);
    free(c.lines);
}
