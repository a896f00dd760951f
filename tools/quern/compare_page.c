/* SPDX-License-Identifier: MIT */
#include "compare_page.h"
#include "chart.h"
#include "compare_curves.h"
#include "compare_table.h"

#include <stdlib.h>

enum { PAGE_DIGITS = 6 };

/* --- what all runs have in common --- */

/* The first run that has a plan; -1: none has. `variant` below 0: of any. */
static int find_planned(const struct comparison *c, int variant)
{
    for (int i = 0; i < c->report.count; i++)
        if ((variant < 0 || c->runs[i].variant == variant) && c->report.trainings[i].history.plan)
            return i;
    return -1;
}

static void put_head(struct page *page, const struct comparison *c)
{
    const struct arguments *a = c->arguments;
    const int first = find_planned(c, -1);
    page_paragraph(page, "Recipe: %s", a->operand);
    if (first >= 0) {
        const struct history *h = &c->report.trainings[first].history;
        const cJSON *environment = reported_environment(&c->report.trainings[first]);
        page_paragraph(page, "Device: %s, driver %s, quern %s", reported_text(h->plan, "device"),
                       reported_text(environment, "driver"), reported_text(environment, "quern"));
    }
    for (int i = 0; i < a->n_overrides; i++)
        page_paragraph(page, "All with %s = %s", a->overrides[i].name, a->overrides[i].value);
}

/* --- tables --- */

static void put_cells(struct page *page, const struct compare_columns *columns,
                      const struct comparison *c, int index, bool variant)
{
    char text[COMPARE_TEXT_BYTES];
    for (int i = 0; i < columns->count; i++) {
        const struct compare_column *column = &columns->columns[i];
        const struct spread spread =
            variant ? compare_of_variant(column, c, index) : compare_of_run(column, c, index);
        page_cell(page, "%s", compare_text(column, &spread, PAGE_DIGITS, text));
    }
}

static void put_variants(struct page *page, const struct compare_columns *columns,
                         const struct comparison *c)
{
    const char *recipe = c->arguments->operand;
    for (int v = 0; v < c->variants.n_variants; v++) {
        const char *name = c->variant_names[v];
        page_cell(page, "%s", *name ? name : recipe);
        page_cell(page, "%d of %d done", compare_done(c, v), c->variants.n_seeds);
        put_cells(page, columns, c, v, true);
    }
}

static void put_runs(struct page *page, const struct compare_columns *columns,
                     const struct comparison *c)
{
    for (int r = 0; r < c->report.count; r++) {
        page_cell(page, "%s", c->runs[r].name);
        page_cell(page, "%s", compare_state(c, r));
        put_cells(page, columns, c, r, false);
    }
}

static void put_table(struct page *page, const struct compare_columns *columns,
                      const struct comparison *c, const char *title,
                      void (*put)(struct page *page, const struct compare_columns *columns,
                                  const struct comparison *c))
{
    struct page_column *heads = calloc((size_t)columns->count + 2, sizeof *heads);
    page->failed |= !heads;
    if (!heads)
        return;
    heads[0].name = "";
    heads[1] = (struct page_column){"state", true};
    for (int i = 0; i < columns->count; i++)
        heads[i + 2] = (struct page_column){columns->columns[i].title, true};
    page_section(page, "%s", title);
    page_table(page, NULL, heads, columns->count + 2);
    put(page, columns, c);
    page_table_end(page);
    page_section_end(page);
    free(heads);
}

/* Budgets that would do, each once, since no seed changes them. */
static void put_refused(struct page *page, const struct comparison *c)
{
    char text[COMPARE_TEXT_BYTES];
    for (int r = 0; r < c->report.count; r += c->variants.n_seeds)
        if (c->runs[r].state == RUN_NO_PLAN)
            page_paragraph(page, "%s: %s", c->variant_names[c->runs[r].variant],
                           compare_reason(c, r, text));
}

static void put_tables(struct page *page, const struct comparison *c)
{
    struct compare_columns columns;
    page->failed |= !compare_columns_make(&columns, &c->report);
    if (columns.columns && c->variants.n_seeds > 1)
        put_table(page, &columns, c, "Mean ± standard deviation over seeds", put_variants);
    if (columns.columns)
        put_table(page, &columns, c, "Trainings", put_runs);
    put_refused(page, c);
    compare_columns_free(&columns);
}

/* --- bytes by tag, which no seed changes --- */

static const cJSON *tags_of(const struct comparison *c, int run)
{
    return cJSON_GetObjectItemCaseSensitive(c->report.trainings[run].history.plan, "bytes_by_tag");
}

static void put_tag(struct page *page, const struct comparison *c, const char *tag)
{
    double sum = 0;
    for (int v = 0; v < c->variants.n_variants; v++) {
        const int run = find_planned(c, v);
        const double bytes = run < 0 ? 0 : reported_number(tags_of(c, run), tag);
        sum += bytes > 0 ? bytes : 0;
    }
    if (!(sum > 0))
        return;
    page_cell(page, "%s", tag);
    for (int v = 0; v < c->variants.n_variants; v++)
        if (find_planned(c, v) >= 0)
            page_bytes(page, reported_number(tags_of(c, find_planned(c, v)), tag));
}

static void put_memory(struct page *page, const struct comparison *c)
{
    const int first = find_planned(c, -1);
    const cJSON *tags = first < 0 ? NULL : tags_of(c, first);
    struct page_column *heads = calloc((size_t)c->variants.n_variants + 1, sizeof *heads);
    int n = 1;
    page->failed |= !heads;
    if (!heads || !cJSON_IsObject(tags)) {
        free(heads);
        return;
    }
    heads[0].name = "bytes at the peak";
    for (int v = 0; v < c->variants.n_variants; v++)
        if (find_planned(c, v) >= 0)
            heads[n++] = (struct page_column){c->variant_names[v], true};
    page_section(page, "Memory");
    page_table(page, NULL, heads, n);
    for (const cJSON *tag = tags->child; tag; tag = tag->next)
        put_tag(page, c, tag->string);
    page_table_end(page);
    page_section_end(page);
    free(heads);
}

/* --- the whole --- */

int compare_page(const struct comparison *c, const char *path, struct failure *failure)
{
    struct page page;
    TRY(page_begin(&page, "Variants side by side", failure));
    put_head(&page, c);
    put_tables(&page, c);
    compare_curves(&page, c);
    put_memory(&page, c);
    chart_script(&page);
    return page_end(&page, path, CODE_DONE, failure);
}
