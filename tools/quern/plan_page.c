/* SPDX-License-Identifier: MIT
 *
 * The page's script draws the map from what qn_plan_memory_json gives; the tables beside it say the
 * same where no script runs.
 */
#include "plan_page.h"
#include "embedded.h"
#include "frontier.h"
#include "page.h"
#include "value.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 200 };
/* Where the fields of an array are in its list. */
enum {
    ARRAY_NAME,
    ARRAY_TAG,
    ARRAY_FIRST,
    ARRAY_LAST,
    ARRAY_BYTES,
    ARRAY_POOL,
    ARRAY_OFFSET,
    ARRAY_WHY
};

static void put_bytes(struct page *page, int64_t bytes)
{
    char size[SIZE_TEXT_BYTES];
    page_cell(page, "%s", size_text(bytes, size));
}

static void put_fact(struct page *page, const char *name, const char *text)
{
    page_cell(page, "%s", name);
    page_cell(page, "%s", text);
}

static void put_facts(struct page *page, const qn_plan *plan)
{
    static const struct page_column columns[] = {{"plan", false}, {"", true}};
    const qn_plan_info *info = qn_plan_facts(plan);
    char text[64], size[SIZE_TEXT_BYTES];
    page_table(page, NULL, columns, 2);
    put_fact(page, "budget", size_text(info->budget_bytes, size));
    put_fact(page, "planned peak", size_text(info->peak_bytes, size));
    put_fact(page, "smallest budget", size_text(info->smallest_budget, size));
    snprintf(text, sizeof text, "%" PRId64, info->micro_batch);
    put_fact(page, "micro-batch", text);
    snprintf(text, sizeof text, "%d of %d", info->recomputed_steps, info->steps);
    put_fact(page, "recomputed steps", text);
    snprintf(text, sizeof text, "%.3g", info->seconds);
    put_fact(page, "predicted seconds of an update", text);
    snprintf(text, sizeof text, "%016" PRIx64, info->hash);
    put_fact(page, "hash", text);
    page_table_end(page);
}

/* --- memory --- */

static double field(const cJSON *array, int index)
{
    return cJSON_GetNumberValue(cJSON_GetArrayItem(array, index));
}

static int compare_bytes(const void *a, const void *b)
{
    const double x = field(*(const cJSON *const *)a, ARRAY_BYTES);
    const double y = field(*(const cJSON *const *)b, ARRAY_BYTES);
    return (x < y) - (x > y);
}

static void put_array(struct page *page, const cJSON *array, const cJSON *tags)
{
    page_cell(page, "%s", cJSON_GetStringValue(cJSON_GetArrayItem(array, ARRAY_NAME)));
    page_cell(page, "%s",
              cJSON_GetStringValue(cJSON_GetArrayItem(tags, (int)field(array, ARRAY_TAG))));
    put_bytes(page, (int64_t)field(array, ARRAY_BYTES));
    page_cell(page, "%d at %.0f", (int)field(array, ARRAY_POOL), field(array, ARRAY_OFFSET));
    page_cell(page, "%s", cJSON_GetStringValue(cJSON_GetArrayItem(array, ARRAY_WHY)));
}

/* The largest of the arrays that are alive at the peak. */
static void put_peak(struct page *page, const cJSON *memory)
{
    static const struct page_column columns[] = {
        {"array", false}, {"tag", false}, {"bytes", true}, {"pool", true}, {"why", false}};
    const cJSON *arrays = cJSON_GetObjectItemCaseSensitive(memory, "arrays");
    const double peak = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(memory, "peak_at"));
    const cJSON **rows = calloc((size_t)cJSON_GetArraySize(arrays) + 1, sizeof *rows);
    int count = 0;
    page->failed |= !rows;
    for (const cJSON *a = rows && arrays ? arrays->child : NULL; a; a = a->next)
        if (field(a, ARRAY_FIRST) <= peak && peak <= field(a, ARRAY_LAST))
            rows[count++] = a;
    if (rows)
        qsort(rows, (size_t)count, sizeof *rows, compare_bytes);
    page_fold(page, "arrays alive at the peak");
    page_table(page, NULL, columns, 5);
    for (int i = 0; i < count && i < MOST_ROWS; i++)
        put_array(page, rows[i], cJSON_GetObjectItemCaseSensitive(memory, "tags"));
    page_table_end(page);
    if (count > MOST_ROWS)
        page_paragraph(page, "and %d smaller ones", count - MOST_ROWS);
    page_fold_end(page);
    free(rows);
}

static void put_memory(struct page *page, const char *text, const cJSON *memory)
{
    page_section(page, "Memory over the cycle");
    fprintf(page->out, "<figure class=\"map\">\n"
                       "<figcaption>addresses over steps</figcaption>\n"
                       "<svg role=\"img\" aria-label=\"addresses of arrays over the steps of the "
                       "plan\"></svg>\n<p class=\"legend\"></p>\n"
                       "<div class=\"read note\">Point at an array to see what it is.</div>\n"
                       "<script type=\"application/json\">");
    page_script_data(page, text);
    fprintf(page->out, "</script>\n");
    put_peak(page, memory);
    fprintf(page->out, "</figure>\n");
    page_section_end(page);
}

/* --- other budgets --- */

static void put_points(struct page *page, const struct frontier *f, int64_t budget)
{
    static const struct page_column columns[] = {
        {"from", true},       {"bytes", true},   {"micro-batch", true},
        {"recomputed", true}, {"seconds", true}, {"parked", true},
        {"", false}};
    page_table(page, "plans by the budget from which they fit", columns, 7);
    for (int i = 0; i < f->count; i++) {
        const qn_plan_point *p = &f->points[i];
        put_bytes(page, p->bytes);
        page_cell(page, "%" PRId64, p->bytes);
        page_cell(page, "%" PRId64, p->micro_batch);
        page_cell(page, "%d", p->recomputed_steps);
        page_cell(page, "%.3g", p->seconds);
        put_bytes(page, p->parked_bytes);
        page_cell(page, "%s%s", p->early_updates ? "early updates" : "",
                  !frontier_is_at(f, i, budget) ? ""
                  : p->early_updates            ? ", this plan"
                                                : "this plan");
    }
    page_table_end(page);
}

static void put_frontier(struct page *page, const struct frontier *f, int64_t budget)
{
    page_section(page, "Other budgets");
    fprintf(
        page->out,
        "<figure class=\"frontier\">\n<figcaption>seconds of an update over bytes</figcaption>\n"
        "<svg role=\"img\" aria-label=\"seconds of an update over the budget\"></svg>\n"
        "<label>budget <input type=\"range\" min=\"0\" max=\"1000\" step=\"1\" "
        "data-budget=\"%" PRId64 "\"></label>\n<p class=\"read\"></p>\n"
        "<script type=\"application/json\">",
        budget);
    frontier_json(page->out, f);
    fprintf(page->out, "</script>\n");
    put_points(page, f, budget);
    fprintf(page->out, "</figure>\n");
    page_section_end(page);
}

/* --- the whole --- */

static int put_plan(struct page *page, const qn_plan *plan, struct failure *failure)
{
    struct frontier frontier = {0};
    char *text = qn_plan_memory_json(plan);
    cJSON *memory = text ? cJSON_Parse(text) : NULL;
    int code = memory ? frontier_read(&frontier, plan, failure)
                      : failure_set(failure, CODE_FAILED, "out of memory");
    if (!code) {
        put_facts(page, plan);
        put_memory(page, text, memory);
        put_frontier(page, &frontier, qn_plan_facts(plan)->budget_bytes);
        fprintf(page->out, "<script>\n%s</script>\n", plan_js);
    }
    free(frontier.points);
    cJSON_Delete(memory);
    free(text);
    return code;
}

int plan_page_write(const qn_plan *plan, const char *name, const char *path,
                    struct failure *failure)
{
    struct page page;
    TRY(page_begin(&page, name, failure));
    return page_end(&page, path, put_plan(&page, plan, failure), failure);
}
