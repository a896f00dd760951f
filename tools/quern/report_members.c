/* SPDX-License-Identifier: MIT */
#include "report_members.h"

#include <math.h>

bool report_has_members(const struct reported *t)
{
    return cJSON_GetArraySize(t->history.members) > 0;
}

/* Samples per second of its own computing, and the share of its time in which it waited. */
static void put_work(struct page *page, const cJSON *work)
{
    const double computed = reported_number(work, "computed_seconds");
    const double waited = reported_number(work, "waited_seconds");
    page_number(page, round(reported_number(work, "samples") / computed), 15);
    if (computed + waited > 0)
        page_cell(page, "%.1f %%", 100 * waited / (computed + waited));
    else
        page_cell(page, "%s", "");
    page_bytes(page, reported_number(work, "bytes_sent"));
}

static void put_member(struct page *page, int number, const cJSON *plan, const cJSON *work)
{
    page_cell(page, "%d", number);
    page_cell(page, "%s", reported_text(plan, "device"));
    page_number(page, reported_number(plan, "batch"), 15);
    page_number(page, reported_number(plan, "micro_batch"), 15);
    page_bytes(page, reported_number(plan, "peak_bytes_planned"));
    page_bytes(page, reported_number(plan, "budget_bytes"));
    put_work(page, work);
}

void report_members(struct page *page, const struct reported *t)
{
    static const struct page_column columns[] = {
        {"member", false},     {"device", false},      {"samples", true},
        {"micro-batch", true}, {"planned peak", true}, {"budget", true},
        {"samples/s", true},   {"waiting", true},      {"sent", true}};
    const cJSON *work = cJSON_GetObjectItemCaseSensitive(t->history.summary, "members");
    const cJSON *plan;
    int number = 0;
    page_table(page, t->name, columns, sizeof columns / sizeof *columns);
    cJSON_ArrayForEach(plan, t->history.members)
    {
        put_member(page, number, plan, cJSON_GetArrayItem(work, number));
        number++;
    }
    page_table_end(page);
}
