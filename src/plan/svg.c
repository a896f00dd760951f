/* SPDX-License-Identifier: MIT
 *
 * The picture of a plan: bytes alive over the steps of the whole timeline, coloured by tag.
 */
#include "base/text.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WIDTH = 960, HEIGHT = 420, LEFT = 80, TOP = 40, BOTTOM = 60, LEGEND = 210 };

static const char *const colours[QN_TAG_COUNT] = {
    "#264653", "#2a6f97", "#8ab17d", "#468faf", "#a9d6e5", "#e9c46a",
    "#bc6c25", "#dda15e", "#f4a261", "#e76f51", "#9d4edd", "#adb5bd",
};

static double x_of(const struct qn_plan *plan, int position)
{
    return LEFT + (double)(WIDTH - LEFT - LEGEND) * position / plan->program.length;
}

static double y_of(int64_t bytes, int64_t top)
{
    return HEIGHT - BOTTOM - (double)(HEIGHT - TOP - BOTTOM) * (double)bytes / (double)top;
}

/* Bytes by tag at every position: sums[position * QN_TAG_COUNT + tag]. */
static int64_t *tag_sums(const struct qn_plan *plan)
{
    int64_t *sums = calloc((size_t)plan->program.length * QN_TAG_COUNT + 1, sizeof *sums);
    for (int i = 0; sums && i < plan->program.n_storages; i++) {
        const struct qn_storage *s = &plan->program.storages[i];
        for (int t = s->start; t <= s->end; t++)
            sums[(size_t)t * QN_TAG_COUNT + s->tag] += s->bytes;
    }
    return sums;
}

/* One attribute. Six digits are a hundredth of a pixel. */
static void add_number(struct qn_text *text, const char *name, double value)
{
    qn_text_add(text, " %s=\"", name);
    qn_text_number(text, 6, value);
    qn_text_add(text, "\"");
}

static void add_bar(struct qn_text *text, double x, double y, double width, double height,
                    const char *colour)
{
    qn_text_add(text, "<rect");
    add_number(text, "x", x);
    add_number(text, "y", y);
    add_number(text, "width", width);
    add_number(text, "height", height);
    qn_text_add(text, " fill=\"%s\"/>\n", colour);
}

static void add_bars(struct qn_text *text, const struct qn_plan *plan, const int64_t *sums,
                     int64_t top)
{
    for (int t = 0; t < plan->program.length; t++) {
        int64_t below = 0;
        for (int tag = 0; tag < QN_TAG_COUNT; tag++) {
            int64_t bytes = sums[(size_t)t * QN_TAG_COUNT + tag];
            if (!bytes)
                continue;
            double y = y_of(below + bytes, top);
            add_bar(text, x_of(plan, t), y, x_of(plan, t + 1) - x_of(plan, t), y_of(below, top) - y,
                    colours[tag]);
            below += bytes;
        }
    }
}

static void add_rule(struct qn_text *text, double x1, double y1, double x2, double y2)
{
    qn_text_add(text, "<line");
    add_number(text, "x1", x1);
    add_number(text, "y1", y1);
    add_number(text, "x2", x2);
    add_number(text, "y2", y2);
}

static void add_phases(struct qn_text *text, const struct qn_plan *plan)
{
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        double x = x_of(plan, phase->start);
        add_rule(text, x, TOP, x, HEIGHT - BOTTOM);
        qn_text_add(text, " stroke=\"#888\" stroke-dasharray=\"2,3\"/>\n<text");
        add_number(text, "x", x + 2);
        qn_text_add(text, " y=\"%d\" font-size=\"10\">%s</text>\n",
                    HEIGHT - BOTTOM + 14 + 12 * (p % 3), phase->name);
    }
}

static void add_line(struct qn_text *text, int64_t bytes, int64_t top, const char *label,
                     const char *colour)
{
    char size[32];
    double y = y_of(bytes, top);
    add_rule(text, LEFT, y, WIDTH - LEGEND, y);
    qn_text_add(text, " stroke=\"%s\"/>\n<text x=\"4\"", colour);
    add_number(text, "y", y - 3);
    qn_text_add(text, " font-size=\"11\" fill=\"%s\">%s %s</text>\n", colour, label,
                qn_size_text(bytes, size, sizeof size));
}

static void add_legend(struct qn_text *text, const struct qn_plan *plan)
{
    int row = 0;
    for (int tag = 0; tag < QN_TAG_COUNT; tag++) {
        char size[32];
        if (!plan->info.bytes_by_tag[tag])
            continue;
        int y = TOP + 18 * row++;
        qn_text_add(text,
                    "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                    "<text x=\"%d\" y=\"%d\" font-size=\"11\">%s %s</text>\n",
                    WIDTH - LEGEND + 10, y, colours[tag], WIDTH - LEGEND + 28, y + 10,
                    qn_tag_name(tag),
                    qn_size_text(plan->info.bytes_by_tag[tag], size, sizeof size));
    }
}

char *qn_plan_svg(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    struct qn_text text = {0};
    const struct qn_plan_info *info = &plan->info;
    int64_t top = info->budget_bytes < 2 * info->peak_bytes ? info->budget_bytes : info->peak_bytes;
    int64_t *sums = tag_sums(plan);
    if (!sums)
        return NULL;
    qn_text_add(
        &text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"white\"/>\n<text x=\"%d\" y=\"20\" font-size=\"13\">bytes alive, micro-batch "
        "%" PRId64 ", plan %016" PRIx64 "</text>\n",
        WIDTH, HEIGHT, LEFT, info->micro_batch, info->hash);
    add_bars(&text, plan, sums, top);
    add_phases(&text, plan);
    add_line(&text, info->peak_bytes, top, "peak", "#c1121f");
    if (info->budget_bytes < 2 * info->peak_bytes)
        add_line(&text, info->budget_bytes, top, "budget", "#000");
    add_legend(&text, plan);
    qn_text_add(&text, "</svg>\n");
    free(sums);
    return qn_text_take(&text);
}
