/* SPDX-License-Identifier: MIT
 *
 * The picture of a plan: bytes alive over the steps of the whole timeline, coloured by tag. From
 * top to bottom: a title, the plot with its axes, the names of the phases, and the legend.
 */
#include "base/text.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In pixels; the plot lies between margins. */
enum { WIDTH = 1000, LEFT = 64, RIGHT = 140, TOP = 44, PLOT = 340, FONT = 11, ROW = 16 };
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, BOTTOM = TOP + PLOT };
enum { Y_TICKS = 8, X_TICK_PIXELS = 40, LEGEND_COLUMNS = 3 };

static const char *const colours[QN_TAG_COUNT] = {
    "#264653", "#2a6f97", "#8ab17d", "#468faf", "#a9d6e5", "#e9c46a", "#bc6c25",
    "#dda15e", "#6d597a", "#f4a261", "#d1495b", "#9d4edd", "#adb5bd",
};

struct picture {
    const struct qn_plan *plan;
    struct qn_text text;
    int64_t top;    /* bytes at the upper end of the plot */
    int64_t *edges; /* bytes between which each tag is drawn: see find_edges */
    int y;          /* of the next row below the plot */
};

static double x_of(const struct picture *p, double position)
{
    return LEFT + PLOT_WIDTH * position / p->plan->program.length;
}

static double y_of(const struct picture *p, int64_t bytes)
{
    return BOTTOM - PLOT * (double)bytes / (double)p->top;
}

static bool is_budget_drawn(const struct qn_plan_info *info)
{
    return info->budget_bytes < 2 * info->peak_bytes;
}

/* At a position, tag t is drawn from edges[position * (QN_TAG_COUNT + 1) + t] to the next edge. */
static bool find_edges(struct picture *p)
{
    const struct qn_program *program = &p->plan->program;
    enum { EDGES = QN_TAG_COUNT + 1 };
    p->edges = calloc((size_t)program->length * EDGES + 1, sizeof *p->edges);
    if (!p->edges)
        return false;
    for (int i = 0; i < program->n_storages; i++) {
        const struct qn_storage *s = &program->storages[i];
        for (int t = s->start; t <= s->end; t++)
            p->edges[(size_t)t * EDGES + s->tag + 1] += s->bytes;
    }
    for (int t = 0; t < program->length; t++) {
        int64_t *edge = p->edges + (size_t)t * EDGES;
        edge[QN_TAG_SCRATCH + 1] += program->blas_temp;
        for (int tag = 0; tag < QN_TAG_COUNT; tag++)
            edge[tag + 1] += edge[tag];
    }
    return true;
}

static const int64_t *edges_of(const struct picture *p, int position, int tag)
{
    return p->edges + (size_t)position * (QN_TAG_COUNT + 1) + tag;
}

static bool is_alive(const struct picture *p, int position, int tag)
{
    const int64_t *edge = edges_of(p, position, tag);
    return edge[1] > edge[0];
}

/* --- shapes --- */

/* Six digits: exact to a hundredth of a pixel. */
static void add_number(struct picture *p, const char *before, double value)
{
    qn_text_add(&p->text, "%s", before);
    qn_text_number(&p->text, 6, value);
}

static void add_line(struct picture *p, double x1, double y1, double x2, double y2,
                     const char *style)
{
    add_number(p, "<path d=\"M", x1);
    add_number(p, " ", y1);
    add_number(p, "L", x2);
    add_number(p, " ", y2);
    qn_text_add(&p->text, "\" %s/>\n", style);
}

/* `anchor` is the end of the text at x: start, middle or end. */
__attribute__((format(printf, 6, 7))) static void add_label(struct picture *p, double x, double y,
                                                            const char *anchor, const char *colour,
                                                            const char *format, ...)
{
    char label[160];
    va_list args;
    va_start(args, format);
    vsnprintf(label, sizeof label, format, args);
    va_end(args);
    add_number(p, "<text x=\"", x);
    add_number(p, "\" y=\"", y);
    qn_text_add(&p->text, "\" text-anchor=\"%s\" fill=\"%s\">", anchor, colour);
    qn_text_xml(&p->text, label);
    qn_text_add(&p->text, "</text>\n");
}

/* Pixels: an upper bound of the label's width in any font. */
static double width_of(const char *label)
{
    return 0.68 * FONT * (double)strlen(label);
}

/* --- the plot --- */

/* The area of a tag from position `from` to the last one at which it is alive: its upper edge from
 * left to right, its lower edge back. Gives the position behind it. */
static int add_area(struct picture *p, int tag, int from)
{
    int end = from;
    add_number(p, "M", x_of(p, from));
    add_number(p, " ", y_of(p, edges_of(p, from, tag)[0]));
    for (; end < p->plan->program.length && is_alive(p, end, tag); end++) {
        add_number(p, "V", y_of(p, edges_of(p, end, tag)[1]));
        add_number(p, "H", x_of(p, end + 1));
    }
    for (int t = end - 1; t >= from; t--) {
        add_number(p, "V", y_of(p, edges_of(p, t, tag)[0]));
        add_number(p, "H", x_of(p, t));
    }
    qn_text_add(&p->text, "Z");
    return end;
}

/* Gives whether any byte of the tag is alive anywhere. */
static bool add_areas(struct picture *p, int tag)
{
    bool any = false;
    for (int t = 0; t < p->plan->program.length; t++) {
        if (!is_alive(p, t, tag))
            continue;
        qn_text_add(&p->text, "%s", any ? "" : "<path d=\"");
        any = true;
        t = add_area(p, tag, t);
    }
    if (any)
        qn_text_add(&p->text, "\" fill=\"%s\"/>\n", colours[tag]);
    return any;
}

/* The smallest s of 1, 2, 5, 10, 20, ... with s * count >= length. */
static int64_t tick_step(double length, double count)
{
    static const int factors[] = {1, 2, 5};
    int64_t step = 1, decade = 1;
    for (int i = 0; (double)step * count < length; i++) {
        decade *= i % 3 == 2 ? 10 : 1;
        step = factors[(i + 1) % 3] * decade;
    }
    return step;
}

/* Ticks are whole numbers of the largest unit that gives enough of them. */
static void add_bytes_axis(struct picture *p)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    int64_t bytes = 1;
    for (; unit < 4 && p->top / bytes >= 4096; unit++)
        bytes *= 1024;
    const int64_t step = tick_step((double)p->top / (double)bytes, Y_TICKS);
    for (int64_t tick = 0; tick * bytes <= p->top; tick += step) {
        const double y = y_of(p, tick * bytes);
        add_line(p, LEFT - 5, y, WIDTH - RIGHT, y, "stroke=\"#ddd\"");
        add_label(p, LEFT - 8, y + 4, "end", "#333", "%" PRId64, tick);
    }
    add_label(p, LEFT - 8, TOP - 10, "end", "#333", "%s", units[unit]);
}

/* Steps are counted from the beginning of their phase, as in the plan's text. */
static void add_step_axis(struct picture *p)
{
    const struct qn_program *program = &p->plan->program;
    const int64_t step = tick_step(program->length, (double)PLOT_WIDTH / X_TICK_PIXELS);
    double free = 0;
    for (int i = 0; i < program->n_phases; i++) {
        const struct qn_phase_run *phase = &program->phases[i];
        for (int64_t tick = 0; tick < phase->n_steps; tick += step) {
            char number[24];
            const double x = x_of(p, (double)(phase->start + tick) + 0.5);
            snprintf(number, sizeof number, "%" PRId64, tick);
            const double half = width_of(number) / 2;
            add_line(p, x, BOTTOM, x, BOTTOM + 4, "stroke=\"#333\"");
            if (x - half < free)
                continue;
            add_label(p, x, BOTTOM + ROW, "middle", "#333", "%s", number);
            free = x + half + 2;
        }
    }
    add_label(p, WIDTH - RIGHT + 20, BOTTOM + ROW, "start", "#333", "step");
}

/* Each name in the middle below its phase, in the first row that has room for it. */
static void add_phases(struct picture *p)
{
    const struct qn_program *program = &p->plan->program;
    double taken[QN_MAX_PHASES] = {0};
    int rows = 0;
    for (int i = 0; i < program->n_phases; i++) {
        const struct qn_phase_run *phase = &program->phases[i];
        const double from = x_of(p, phase->start), to = x_of(p, phase->start + phase->n_steps);
        const double half = width_of(phase->name) / 2, least = half, most = WIDTH - half;
        double x = (from + to) / 2;
        x = x < least ? least : x > most ? most : x;
        int row = 0;
        while (x - half < taken[row])
            row++;
        taken[row] = x + half + 4;
        rows = row >= rows ? row + 1 : rows;
        add_line(p, from, TOP, from, BOTTOM, "stroke=\"#888\" stroke-dasharray=\"2,3\"");
        add_line(p, from + 1, p->y, to - 1, p->y, "stroke=\"#333\"");
        add_label(p, x, p->y + ROW * (row + 1) - 2, "middle", "#333", "%s", phase->name);
    }
    p->y += ROW * rows + 10;
}

/* Lines across the plot with labels beside it, at least a row apart. */
static void add_limits(struct picture *p)
{
    const struct qn_plan_info *info = &p->plan->info;
    char size[32];
    const double peak = y_of(p, info->peak_bytes), right = WIDTH - RIGHT;
    add_line(p, LEFT, peak, right, peak, "stroke=\"#c1121f\"");
    add_label(p, right + 6, peak + 4, "start", "#c1121f", "peak %s",
              qn_size_text(info->peak_bytes, size, sizeof size));
    if (!is_budget_drawn(info))
        return;
    const double budget = y_of(p, info->budget_bytes);
    add_line(p, LEFT, budget, right, budget, "stroke=\"black\"");
    add_label(p, right + 6, 4 + (budget < peak - ROW ? budget : peak - ROW), "start", "black",
              "budget %s", qn_size_text(info->budget_bytes, size, sizeof size));
}

/* --- around the plot --- */

/* Legend: a tag that is drawn, with its bytes at the peak, which may be 0. */
static void add_tag(struct picture *p, int tag, int number)
{
    char size[32];
    const int column = number % LEGEND_COLUMNS, row = number / LEGEND_COLUMNS;
    const int x = LEFT + (WIDTH - LEFT) / LEGEND_COLUMNS * column, y = p->y + ROW * row;
    qn_text_add(&p->text, "<rect x=\"%d\" y=\"%d\" width=\"11\" height=\"11\" fill=\"%s\"/>\n", x,
                y, colours[tag]);
    add_label(p, x + 16, y + 10, "start", "#333", "%s, %s at the peak", qn_tag_name((qn_tag)tag),
              qn_size_text(p->plan->info.bytes_by_tag[tag], size, sizeof size));
}

static void add_title(struct picture *p)
{
    const struct qn_plan_info *info = &p->plan->info;
    char size[32];
    add_label(p, LEFT, 18, "start", "black",
              "device memory, micro-batch %" PRId64 ", budget %s, plan %016" PRIx64,
              info->micro_batch, qn_size_text(info->budget_bytes, size, sizeof size), info->hash);
}

static void draw(struct picture *p)
{
    int drawn = 0;
    bool shown[QN_TAG_COUNT];
    add_title(p);
    add_bytes_axis(p);
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        shown[tag] = add_areas(p, tag);
    add_step_axis(p);
    p->y = BOTTOM + ROW + 6;
    add_phases(p);
    add_limits(p);
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        if (shown[tag])
            add_tag(p, tag, drawn++);
    p->y += ROW * ((drawn + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS);
}

char *qn_plan_svg(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    const struct qn_plan_info *info = &plan->info;
    struct picture inner = {.plan = plan,
                            .top = is_budget_drawn(info) ? info->budget_bytes : info->peak_bytes};
    if (!find_edges(&inner))
        return NULL;
    draw(&inner);
    free(inner.edges);
    char *body = qn_text_take(&inner.text);
    struct qn_text text = {0};
    qn_text_add(&text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"%d\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
                WIDTH, inner.y, FONT, body ? body : "");
    text.failed |= !body;
    free(body);
    return qn_text_take(&text);
}
