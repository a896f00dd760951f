/* SPDX-License-Identifier: MIT */
#include "report_page.h"
#include "chart.h"
#include "report_curves.h"
#include "report_members.h"
#include "value.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

/* --- facts of trainings, side by side --- */

/* "1 h 02 min", "3 min 04 s", "1.25 s" */
static void put_duration(struct page *page, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e12))
        page_cell(page, "%s", "");
    else if (seconds >= 3600)
        page_cell(page, "%" PRId64 " h %02d min", (int64_t)seconds / 3600,
                  (int)((int64_t)seconds % 3600 / 60));
    else if (seconds >= 60)
        page_cell(page, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        page_cell(page, "%.3g s", seconds);
}

static void put_state(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_state(t));
}

static void put_begun(struct page *page, const struct reported *t)
{
    const double seconds = reported_number(t->history.beginning, "time");
    char text[32] = "";
    struct tm parts;
    if (seconds >= 0 && seconds < 1e11) {
        const time_t moment = (time_t)seconds;
        if (gmtime_r(&moment, &parts))
            strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
    }
    page_cell(page, "%s", text);
}

static void put_recipe(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_text(t->history.beginning, "recipe"));
}

static void put_device(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_text(t->history.plan, "device"));
}

static void put_driver(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_text(reported_environment(t), "driver"));
}

static void put_version(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_text(reported_environment(t), "quern"));
}

static void put_updates(struct page *page, const struct reported *t)
{
    const struct series *loss = history_find(&t->history, FIGURE_UPDATE, "loss");
    page_number(page, loss && loss->count ? loss->x[loss->count - 1] : 0, 15);
}

/* Updates that changed nothing. */
static void put_skipped(struct page *page, const struct reported *t)
{
    const double skipped = reported_sum(t, FIGURE_UPDATE, "skipped");
    page_number(page, isfinite(skipped) ? skipped : 0, 15);
}

static void put_samples(struct page *page, const struct reported *t)
{
    page_number(page, reported_sum(t, FIGURE_UPDATE, "samples"), 15);
}

static void put_speed(struct page *page, const struct reported *t)
{
    const double speed = reported_speed(t);
    page_number(page, speed > 1000 ? round(speed) : speed, speed > 1000 ? 15 : 4);
}

static void put_update_time(struct page *page, const struct reported *t)
{
    put_duration(page, reported_sum(t, FIGURE_UPDATE, "seconds"));
}

static void put_evaluation_time(struct page *page, const struct reported *t)
{
    put_duration(page, reported_sum(t, FIGURE_EVALUATION, "seconds"));
}

static void put_micro_batch(struct page *page, const struct reported *t)
{
    page_number(page, reported_number(t->history.plan, "micro_batch"), 15);
}

static void put_recomputed(struct page *page, const struct reported *t)
{
    const double steps = reported_number(t->history.plan, "steps");
    if (isfinite(steps))
        page_cell(page, "%.15g of %.15g", reported_number(t->history.plan, "recomputed_steps"),
                  steps);
    else
        page_cell(page, "%s", "");
}

static void put_peak(struct page *page, const struct reported *t)
{
    page_bytes(page, reported_number(t->history.plan, "peak_bytes_planned"));
}

static void put_budget(struct page *page, const struct reported *t)
{
    page_bytes(page, reported_number(t->history.plan, "budget_bytes"));
}

static void put_hash(struct page *page, const struct reported *t)
{
    page_cell(page, "%s", reported_text(t->history.plan, "hash"));
}

static void put_loss(struct page *page, const struct reported *t)
{
    page_number(page, reported_last(t, FIGURE_UPDATE, "loss"), 6);
}

static const struct {
    const char *name;
    void (*put)(struct page *page, const struct reported *t); /* one cell */
} facts[] = {
    {"state", put_state},
    {"begun", put_begun},
    {"recipe", put_recipe},
    {"device", put_device},
    {"driver", put_driver},
    {"quern", put_version},
    {"updates", put_updates},
    {"of them without effect", put_skipped},
    {"samples", put_samples},
    {"samples per second", put_speed},
    {"time of updates", put_update_time},
    {"time of evaluations", put_evaluation_time},
    {"micro-batch", put_micro_batch},
    {"recomputed steps", put_recomputed},
    {"planned peak", put_peak},
    {"budget", put_budget},
    {"plan", put_hash},
    {"last training loss", put_loss},
};

/* --- the table of trainings --- */

static void put_last_evaluations(struct page *page, const struct report *r)
{
    char text[FIGURE_NAME_BYTES];
    for (int t = 0; t < r->count; t++)
        for (int i = 0; i < r->trainings[t].history.n_figures; i++) {
            const struct figure_series *f = &r->trainings[t].history.figures[i];
            const char *title = report_figure_title(r, t, i, text);
            if (f->kind != FIGURE_EVALUATION || !title)
                continue;
            page_cell(page, "last %s", title);
            for (int k = 0; k < r->count; k++)
                page_number(page, reported_last(&r->trainings[k], f->kind, f->name), 6);
        }
}

static void put_notes(struct page *page, const struct reported *t)
{
    const struct history *h = &t->history;
    if (h->cut_line)
        page_paragraph(page,
                       "%s: line %" PRId64 " of the metrics is not whole and was left out: the "
                       "training is under way, or was killed.",
                       t->name, h->cut_line);
    for (const cJSON *key = h->changed ? h->changed->child : NULL; key; key = key->next)
        page_paragraph(page, "%s: resumed with %s = %s.", t->name, key->string,
                       cJSON_IsString(key) ? key->valuestring : "");
}

static void put_facts(struct page *page, const struct report *r)
{
    struct page_column *columns = calloc((size_t)r->count + 1, sizeof *columns);
    page->failed |= !columns;
    if (!columns)
        return;
    columns[0].name = "";
    for (int t = 0; t < r->count; t++)
        columns[t + 1].name = r->trainings[t].name;
    page_section(page, "Trainings");
    page_table(page, NULL, columns, r->count + 1);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        page_cell(page, "%s", facts[i].name);
        for (int t = 0; t < r->count; t++)
            facts[i].put(page, &r->trainings[t]);
    }
    put_last_evaluations(page, r);
    page_table_end(page);
    for (int t = 0; t < r->count; t++)
        put_notes(page, &r->trainings[t]);
    page_section_end(page);
    free(columns);
}

/* --- memory and time --- */

static void put_memory(struct page *page, const struct reported *t)
{
    static const struct page_column columns[] = {{"bytes at the peak", false}, {"", true}};
    const cJSON *tags = cJSON_GetObjectItemCaseSensitive(t->history.plan, "bytes_by_tag");
    page_table(page, t->name, columns, 2);
    for (const cJSON *tag = cJSON_IsObject(tags) ? tags->child : NULL; tag; tag = tag->next) {
        if (!cJSON_IsNumber(tag) || !(tag->valuedouble > 0))
            continue;
        page_cell(page, "%s", tag->string);
        page_bytes(page, tag->valuedouble);
    }
    page_cell(page, "planned peak");
    put_peak(page, t);
    page_cell(page, "budget");
    put_budget(page, t);
    page_table_end(page);
    if (t->picture)
        page_picture(page, "image/svg+xml", t->picture, t->picture_size, 0,
                     "bytes over the steps of the plan of %s%s", t->name,
                     report_has_members(t) ? ", member 0" : "");
}

/* Seconds that the steps of one update took, by their kind; `name` of whose. */
static void put_seconds(struct page *page, const cJSON *kinds, const char *name)
{
    static const struct page_column columns[] = {
        {"steps of one update", false}, {"seconds", true}, {"share", true}};
    double sum = 0;
    for (const cJSON *kind = cJSON_IsObject(kinds) ? kinds->child : NULL; kind; kind = kind->next)
        sum += cJSON_IsNumber(kind) ? kind->valuedouble : 0;
    if (!(sum > 0))
        return;
    page_table(page, name, columns, 3);
    for (const cJSON *kind = kinds->child; kind; kind = kind->next) {
        page_cell(page, "%s", kind->string);
        page_cell(page, "%.3g", kind->valuedouble);
        page_cell(page, "%.1f %%", 100 * kind->valuedouble / sum);
    }
    page_table_end(page);
}

static void put_profile(struct page *page, const struct reported *t)
{
    const cJSON *kinds, *profile = t->history.profile;
    const cJSON *members = cJSON_GetObjectItemCaseSensitive(profile, "members");
    char name[32];
    int number = 0;
    if (!members)
        put_seconds(page, cJSON_GetObjectItemCaseSensitive(profile, "seconds"), NULL);
    cJSON_ArrayForEach(kinds, members)
    {
        snprintf(name, sizeof name, "member %d", number++);
        put_seconds(page, kinds, name);
    }
}

/* What the plan foresees. */
static void put_phases(struct page *page, const struct reported *t)
{
    static const struct page_column columns[] = {
        {"phase of the plan", false}, {"steps", true}, {"predicted seconds", true}};
    const cJSON *phases = cJSON_GetObjectItemCaseSensitive(t->history.plan, "phases");
    page_table(page, t->name, columns, 3);
    for (const cJSON *phase = cJSON_IsArray(phases) ? phases->child : NULL; phase;
         phase = phase->next) {
        page_cell(page, "%s", reported_text(phase, "name"));
        page_cell(page, "%d", cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(phase, "steps")));
        page_number(page, reported_number(phase, "seconds"), 3);
    }
    page_table_end(page);
}

static void put_side_by_side(struct page *page, const struct report *r, const char *title,
                             void (*put)(struct page *page, const struct reported *t))
{
    page_section(page, "%s", title);
    page_grid(page, true);
    for (int t = 0; t < r->count; t++) {
        if (!r->trainings[t].history.plan)
            continue;
        fprintf(page->out, "<div>\n");
        put(page, &r->trainings[t]);
        fprintf(page->out, "</div>\n");
    }
    page_grid_end(page);
    page_section_end(page);
}

static void put_time(struct page *page, const struct reported *t)
{
    put_phases(page, t);
    put_profile(page, t);
}

static void put_members(struct page *page, const struct report *r)
{
    bool any = false;
    for (int t = 0; t < r->count; t++)
        any |= report_has_members(&r->trainings[t]);
    if (!any)
        return;
    page_section(page, "Members");
    for (int t = 0; t < r->count; t++)
        if (report_has_members(&r->trainings[t]))
            report_members(page, &r->trainings[t]);
    page_section_end(page);
}

void report_put(struct page *page, const struct report *r)
{
    put_facts(page, r);
    report_curves(page, r);
    put_members(page, r);
    put_side_by_side(page, r, "Memory", put_memory);
    put_side_by_side(page, r, "Time", put_time);
    chart_script(page);
}
