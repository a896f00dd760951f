/* SPDX-License-Identifier: MIT
 *
 * Where a line has more points than bins, what it is drawn by are the ends of each bin, pale, and
 * on top of them the means. The y axis is logarithmic where the values, all above 0, differ by more
 * than a thousand times.
 */
#include "chart.h"
#include "embedded.h"

#include <math.h>
#include <stdlib.h>

/* Of the picture, in its own units, which are pixels or somewhat less. */
enum { WIDTH = 440, HEIGHT = 250, LEFT = 58, RIGHT = WIDTH - 26, TOP = 12, BOTTOM = HEIGHT - 40 };
enum { X_TICKS = 5, Y_TICKS = 6, ROWS = 20, MOST_DECADES = 8 };
static const double LOGARITHMIC = 1000;
/* Of the first colours, the next ones, and so on; the last ones stay with what is left. */
static const struct {
    const char *dashes, *sample; /* attribute of a line, and how the legend shows it */
} strokes[] = {{"", "&#9473;"},
               {" stroke-dasharray=\"5 3\"", "&#9477;"},
               {" stroke-dasharray=\"1 3\"", "&#9481;"},
               {" stroke-dasharray=\"9 3 2 3\"", "&#9549;"}};
enum { STROKES = sizeof strokes / sizeof *strokes };
/* A range that is so small a part of its values is none. */
static const double NARROWEST = 1e-9;

/* A line as it is drawn. */
struct curve_points {
    struct series ends, means;
};

struct plot {
    struct page *page;
    const struct chart *chart;
    struct curve_points *points; /* (n_lines) */
    double x0, x1, y0, y1;       /* values at the ends of the axes; y0 and y1 as scaled */
    bool logarithmic;
};

static double scaled(const struct plot *p, double y)
{
    return p->logarithmic ? log10(y) : y;
}

static double x_of(const struct plot *p, double x)
{
    const double share = p->x1 > p->x0 ? (x - p->x0) / (p->x1 - p->x0) : 0.5;
    return LEFT + (RIGHT - LEFT) * share;
}

static double y_of(const struct plot *p, double y)
{
    return BOTTOM - (BOTTOM - TOP) * (scaled(p, y) - p->y0) / (p->y1 - p->y0);
}

static int stroke_of(const struct chart_line *line)
{
    const int round = line->colour / CHART_COLOURS;
    return round < STROKES ? round : STROKES - 1;
}

/* --- the ends of the axes --- */

static bool find_range(struct plot *p)
{
    double least = INFINITY, most = -INFINITY;
    p->x0 = INFINITY;
    p->x1 = -INFINITY;
    for (int l = 0; l < p->chart->n_lines; l++) {
        const struct series *s = &p->points[l].ends;
        for (int64_t i = 0; i < s->count; i++) {
            p->x0 = fmin(p->x0, s->x[i]);
            p->x1 = fmax(p->x1, s->x[i]);
            least = fmin(least, s->y[i]); /* NAN is passed over */
            most = fmax(most, s->y[i]);
        }
    }
    if (!(least <= most))
        return false;
    p->logarithmic = least > 0 && most / least > LOGARITHMIC;
    p->y0 = scaled(p, least);
    p->y1 = scaled(p, most);
    const double range = p->y1 - p->y0, size = fmax(fabs(p->y0), fabs(p->y1));
    const double room = range > NARROWEST * size ? 0.05 * range : fmax(0.05 * size, 1e-12);
    p->y0 -= room;
    p->y1 += room;
    return true;
}

/* The least of 1, 2, 5, 10, ... times a power of ten of which no more than `count` go into the
 * range. */
static double tick_step(double range, int count)
{
    const double decade = pow(10, floor(log10(range / count)));
    static const double factors[] = {1, 2, 5, 10};
    for (int i = 0; i < 3; i++)
        if (factors[i] * decade * count >= range)
            return factors[i] * decade;
    return 10 * decade;
}

/* --- the picture --- */

static void put_y_tick(const struct plot *p, double value)
{
    const double y = y_of(p, value);
    fprintf(p->page->out,
            "<path class=\"rule\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.4g</text>\n",
            LEFT, y, RIGHT, LEFT - 6, y + 4, value);
}

static void put_axes(const struct plot *p)
{
    FILE *out = p->page->out;
    const double step = p->logarithmic ? fmax(1, ceil((p->y1 - p->y0) / MOST_DECADES))
                                       : tick_step(p->y1 - p->y0, Y_TICKS);
    for (double tick = ceil(p->y0 / step); tick * step <= p->y1; tick++)
        put_y_tick(p, p->logarithmic ? pow(10, tick * step) : tick * step + 0.0);
    const double range = p->x1 - p->x0, finest = p->chart->axis.whole ? 1 : 0;
    const double wide = range > 0 ? fmax(finest, tick_step(range, X_TICKS)) : 1;
    for (double tick = ceil(p->x0 / wide); tick * wide <= p->x1; tick++)
        fprintf(out,
                "<path class=\"axis\" d=\"M%.1f %dv4\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%.12g</text>\n",
                x_of(p, tick * wide), BOTTOM, x_of(p, tick * wide), BOTTOM + 17, tick * wide);
    fprintf(out,
            "<path class=\"axis\" d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" "
            "text-anchor=\"middle\">",
            LEFT, BOTTOM, RIGHT, (LEFT + RIGHT) / 2, HEIGHT - 6);
    page_text(p->page, "%s", p->chart->axis.name);
    fprintf(out, "</text>\n");
}

static void put_path(const struct plot *p, const struct series *s, const char *style)
{
    bool drawing = false;
    fprintf(p->page->out, "<path%s d=\"", style);
    for (int64_t i = 0; i < s->count; i++) {
        if (isfinite(s->y[i]))
            fprintf(p->page->out, "%c%.1f %.1f", drawing ? 'L' : 'M', x_of(p, s->x[i]),
                    y_of(p, s->y[i]));
        /* A point between gaps is a line without length, with round ends. */
        if (isfinite(s->y[i]) && !drawing)
            fprintf(p->page->out, "h0");
        drawing = isfinite(s->y[i]);
    }
    fprintf(p->page->out, "\"/>\n");
}

static void put_line(const struct plot *p, int index)
{
    const struct chart_line *line = &p->chart->lines[index];
    const struct curve_points *points = &p->points[index];
    const bool thinned = points->ends.count != line->series->count;
    fprintf(p->page->out, "<g class=\"line s%d%s\"%s>\n", line->colour % CHART_COLOURS,
            line->pale ? " pale" : "", strokes[stroke_of(line)].dashes);
    if (thinned)
        put_path(p, &points->ends, " class=\"ends\"");
    put_path(p, &points->means, "");
    fprintf(p->page->out, "</g>\n");
}

static void put_picture(const struct plot *p)
{
    FILE *out = p->page->out;
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    page_text(p->page, "%s over %s %.12g to %.12g", p->chart->title, p->chart->axis.name, p->x0,
              p->x1);
    fprintf(out, "\">\n");
    put_axes(p);
    for (int i = 0; i < p->chart->n_lines; i++)
        put_line(p, i);
    fprintf(out, "<path class=\"cursor\" d=\"M0 %dV%d\"/>\n</svg>\n", TOP, BOTTOM);
}

/* --- around the picture --- */

static void put_legend(const struct plot *p)
{
    fprintf(p->page->out, "<p class=\"legend\">");
    for (int i = 0; i < p->chart->n_lines; i++) {
        const struct chart_line *line = &p->chart->lines[i];
        if (line->pale)
            continue;
        fprintf(p->page->out, "<span><b class=\"s%d\">%s</b> ", line->colour % CHART_COLOURS,
                strokes[stroke_of(line)].sample);
        page_text(p->page, "%s", line->name);
        fprintf(p->page->out, "</span> ");
    }
    fprintf(p->page->out, "</p>\n");
}

static void put_numbers(const struct plot *p, const char *key, const double *values, int64_t count)
{
    fprintf(p->page->out, ",\"%s\":[", key);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            fprintf(p->page->out, "%s%.7g", i ? "," : "", values[i]);
        else
            fprintf(p->page->out, "%snull", i ? "," : "");
    fprintf(p->page->out, "]");
}

/* For the script. */
static void put_data(const struct plot *p)
{
    FILE *out = p->page->out;
    fprintf(out,
            "<script type=\"application/json\">{\"left\":%d,\"right\":%d,\"from\":%.17g,"
            "\"to\":%.17g,\"lines\":[",
            LEFT, RIGHT, p->x0, p->x1);
    for (int i = 0; i < p->chart->n_lines; i++) {
        const struct series *s = &p->points[i].ends;
        fprintf(out, "%s\n{\"name\":", i ? "," : "");
        page_json(p->page, p->chart->n_lines > 1 ? p->chart->lines[i].name : "");
        if (p->chart->lines[i].pale)
            fprintf(out, ",\"pale\":true");
        put_numbers(p, "x", s->x, s->count);
        put_numbers(p, "y", s->y, s->count);
        fprintf(out, "}");
    }
    fprintf(out, "]}</script>\n");
}

static void put_row(const struct plot *p, double x)
{
    page_cell(p->page, "%.*g", p->chart->axis.whole ? 12 : 6, x);
    for (int i = 0; i < p->chart->n_lines; i++) {
        if (p->chart->lines[i].pale)
            continue;
        const double y = series_at(p->chart->lines[i].series, x);
        if (isfinite(y))
            page_cell(p->page, "%.6g", y);
        else
            page_cell(p->page, "%s", "");
    }
}

/* Its rows are at points of the line with the most of them, as evenly as can be. */
static void put_table(const struct plot *p)
{
    const int n = p->chart->n_lines;
    int column = 1;
    struct page_column *columns = calloc((size_t)n + 1, sizeof *columns);
    p->page->failed |= !columns;
    if (!columns)
        return;
    const struct series *longest = p->chart->lines[0].series;
    columns[0] = (struct page_column){p->chart->axis.name, true};
    for (int i = 0; i < n; i++) {
        const struct chart_line *line = &p->chart->lines[i];
        if (!line->pale)
            columns[column++] = (struct page_column){n > 1 ? line->name : p->chart->title, true};
        longest = line->series->count > longest->count ? line->series : longest;
    }
    const int64_t rows = longest->count < ROWS ? longest->count : ROWS;
    page_fold(p->page, "values");
    page_table(p->page, NULL, columns, column);
    for (int64_t row = 0; row < rows; row++)
        put_row(p, longest->x[rows > 1 ? row * (longest->count - 1) / (rows - 1) : 0]);
    page_table_end(p->page);
    page_fold_end(p->page);
    free(columns);
}

static void put_plot(const struct plot *p)
{
    FILE *out = p->page->out;
    fprintf(out, "<figure class=\"chart\">\n<figcaption>");
    page_text(p->page, "%s%s", p->chart->title, p->logarithmic ? " (logarithmic)" : "");
    fprintf(out, "</figcaption>\n");
    put_picture(p);
    if (p->chart->n_lines > 1)
        put_legend(p);
    fprintf(out, "<p class=\"read note\">&nbsp;</p>\n");
    put_data(p);
    put_table(p);
    fprintf(out, "</figure>\n");
}

/* --- the whole --- */

void chart_put(struct page *page, const struct chart *chart)
{
    struct plot plot = {.page = page, .chart = chart};
    plot.points = calloc((size_t)chart->n_lines + 1, sizeof *plot.points);
    bool done = plot.points != NULL;
    for (int i = 0; done && i < chart->n_lines; i++)
        done = series_thin(&plot.points[i].ends, &plot.points[i].means, chart->lines[i].series,
                           chart->bins);
    if (done && find_range(&plot))
        put_plot(&plot);
    page->failed |= !done;
    for (int i = 0; plot.points && i < chart->n_lines; i++) {
        series_free(&plot.points[i].ends);
        series_free(&plot.points[i].means);
    }
    free(plot.points);
}

void chart_script(struct page *page)
{
    fprintf(page->out, "<script>\n%s</script>\n", chart_js);
}
