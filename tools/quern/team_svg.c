/* SPDX-License-Identifier: MIT
 *
 * The picture of a team's predictions: above samples per second, on a scale of decades, below the
 * efficiency, both over members on a scale of doublings; a line for each exchange.
 */
#include "file.h"
#include "team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* In pixels. */
enum { WIDTH = 760, LEFT = 80, RIGHT = 24, TOP = 40, PLOT = 240, GAP = 50, FONT = 12 };
enum { SECOND = TOP + PLOT + GAP, LEGEND = SECOND + PLOT + GAP, HEIGHT = LEGEND + 30 };

static const char *const colours[EXCHANGES] = {"#264653", "#d1495b", "#2a9d8f"};
static const char axis_colour[] = "#ddd", alone_colour[] = "#999";

struct picture {
    FILE *out;
    const struct team *team;
    double first, last; /* log2 of members */
    double low, high;   /* log10 of samples per second */
};

static double x_of(const struct picture *p, int members)
{
    const double span = p->last - p->first;
    const double part = span > 0 ? (log2(members) - p->first) / span : 0.5;
    return LEFT + (WIDTH - LEFT - RIGHT) * part;
}

static double y_of_rate(const struct picture *p, double rate)
{
    return TOP + PLOT * (p->high - log10(rate)) / (p->high - p->low);
}

static double y_of_efficiency(double efficiency)
{
    return SECOND + PLOT * (1 - efficiency);
}

static double rate_y(const struct picture *p, const struct team_row *row, int e)
{
    return y_of_rate(p, e < EXCHANGES ? team_rate(row, (enum exchange)e) : row->alone);
}

static double efficiency_y(const struct picture *p, const struct team_row *row, int e)
{
    (void)p;
    return y_of_efficiency(e < EXCHANGES ? team_efficiency(row, (enum exchange)e) : 1);
}

typedef double row_y(const struct picture *p, const struct team_row *row, int exchange);

static void put_text(const struct picture *p, double x, double y, const char *anchor,
                     const char *text)
{
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
            text);
}

static void put_level(const struct picture *p, double y, const char *label)
{
    fprintf(p->out, "<path d=\"M%d %.1fH%d\" stroke=\"%s\"/>\n", LEFT, y, WIDTH - RIGHT,
            axis_colour);
    put_text(p, LEFT - 8, y + 4, "end", label);
}

static const char *colour_of(int e)
{
    return e < EXCHANGES ? colours[e] : alone_colour;
}

static const char *dashes_of(int e)
{
    return e < EXCHANGES ? "" : " stroke-dasharray=\"5,4\"";
}

/* Through all rows; `e` = EXCHANGES: what there would be without an exchange. */
static void put_line(const struct picture *p, row_y *y, int e)
{
    fprintf(p->out, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\"%s d=\"", colour_of(e),
            dashes_of(e));
    for (int r = 0; r < p->team->n_rows; r++)
        fprintf(p->out, "%s%.1f %.1f", r ? "L" : "M", x_of(p, p->team->rows[r].members),
                y(p, &p->team->rows[r], e));
    fprintf(p->out, "\"/>\n");
    for (int r = 0; e < EXCHANGES && r < p->team->n_rows; r++)
        fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                x_of(p, p->team->rows[r].members), y(p, &p->team->rows[r], e), colours[e]);
}

static void put_plot(const struct picture *p, int top, const char *title, row_y *y)
{
    char label[24];
    put_text(p, LEFT, top - 10, "start", title);
    for (int e = EXCHANGES; e >= 0; e--)
        put_line(p, y, e);
    for (int r = 0; r < p->team->n_rows; r++) {
        snprintf(label, sizeof label, "%d", p->team->rows[r].members);
        put_text(p, x_of(p, p->team->rows[r].members), top + PLOT + 18, "middle", label);
    }
}

static void put_levels(const struct picture *p)
{
    char label[24];
    for (int decade = (int)p->low; decade <= (int)p->high; decade++) {
        snprintf(label, sizeof label, "%g", pow(10, decade));
        put_level(p, y_of_rate(p, pow(10, decade)), label);
    }
    for (int percent = 0; percent <= 100; percent += 20) {
        snprintf(label, sizeof label, "%d %%", percent);
        put_level(p, y_of_efficiency(percent / 100.0), label);
    }
}

static void put_legend(const struct picture *p)
{
    double x = LEFT;
    for (int e = 0; e <= EXCHANGES; e++, x += 150) {
        fprintf(p->out, "<path d=\"M%.1f %dh24\" stroke-width=\"2\" stroke=\"%s\"%s/>\n", x, LEGEND,
                colour_of(e), dashes_of(e));
        put_text(p, x + 30, LEGEND + 4, "start",
                 e < EXCHANGES ? exchange_names[e] : "without exchange");
    }
}

static void find_scales(struct picture *p)
{
    p->first = p->low = INFINITY;
    p->last = p->high = -INFINITY;
    for (int r = 0; r < p->team->n_rows; r++) {
        const struct team_row *row = &p->team->rows[r];
        p->first = fmin(p->first, log2(row->members));
        p->last = fmax(p->last, log2(row->members));
        p->high = fmax(p->high, log10(row->alone));
        for (int e = 0; e < EXCHANGES; e++)
            p->low = fmin(p->low, log10(team_rate(row, (enum exchange)e)));
    }
    p->low = floor(p->low);
    p->high = fmax(ceil(p->high), p->low + 1);
}

static void draw(struct picture *p)
{
    find_scales(p);
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"%d\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, FONT);
    put_levels(p);
    put_plot(p, TOP, "samples per second, over members", rate_y);
    put_plot(p, SECOND, "efficiency, over members", efficiency_y);
    put_legend(p);
    fprintf(p->out, "</svg>\n");
}

int team_draw(const struct team *team, const char *path, struct failure *failure)
{
    char *text = NULL;
    size_t size;
    struct picture p = {.team = team, .out = open_memstream(&text, &size)};
    if (p.out)
        draw(&p);
    const bool whole = p.out && fclose(p.out) == 0;
    const int code = whole ? file_replace(path, text, failure)
                           : failure_set(failure, CODE_FAILED, "out of memory");
    free(text);
    return code;
}
