/* SPDX-License-Identifier: MIT */
#include "line.h"
#include "members_told.h"
#include "value.h"

#include <inttypes.h>
#include <stdio.h>

enum { CELL_BYTES = 64 };

/* What a row says of a member's plan. */
typedef void (*row_text)(const struct session *session, char text[CELL_BYTES]);

static const qn_plan_info *facts_of(const struct session *s)
{
    return qn_plan_facts(session_running(s));
}

static void samples(const struct session *s, char text[CELL_BYTES])
{
    const qn_plan_info *plan = facts_of(s);
    const bool none = s->members->share[members_number(s)] == 0;
    snprintf(text, CELL_BYTES, "%" PRId64,
             none ? 0 : plan->micro_batch * plan->micro_steps + plan->remainder);
}

static void micro_batch(const struct session *s, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, "%" PRId64, facts_of(s)->micro_batch);
}

static void recomputed(const struct session *s, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, "%d of %d", facts_of(s)->recomputed_steps, facts_of(s)->steps);
}

static void seconds(const struct session *s, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, "%.3g s", facts_of(s)->seconds);
}

static void peak(const struct session *s, char text[CELL_BYTES])
{
    size_text(facts_of(s)->peak_bytes, text);
}

static void budget(const struct session *s, char text[CELL_BYTES])
{
    size_text(facts_of(s)->budget_bytes, text);
}

static void optimizer(const struct session *s, char text[CELL_BYTES])
{
    size_text(facts_of(s)->bytes_by_tag[QN_TAG_OPTIMIZER], text);
}

static void smallest(const struct session *s, char text[CELL_BYTES])
{
    size_text(facts_of(s)->smallest_budget, text);
}

struct row {
    const char *name;
    row_text text;
};

static const struct row rows[] = {
    {"samples of an update", samples},
    {"micro-batch", micro_batch},
    {"recomputed steps", recomputed},
    {"predicted for an update", seconds},
    {"planned peak", peak},
    {"of it optimizer", optimizer},
    {"budget", budget},
    {"smallest budget", smallest},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* --- what they did --- */

static qn_group_figures work_of(const struct session *s)
{
    qn_group_figures figures = {0};
    qn_group_measure(s->members->group, s->member, &figures);
    return figures;
}

static void rate(const struct session *s, char text[CELL_BYTES])
{
    const qn_group_figures work = work_of(s);
    snprintf(text, CELL_BYTES, "%.0f/s",
             work.computed > 0 ? (double)work.samples / work.computed : 0);
}

static void waiting(const struct session *s, char text[CELL_BYTES])
{
    const qn_group_figures work = work_of(s);
    const double all = work.computed + work.waited;
    snprintf(text, CELL_BYTES, "%.1f %%", all > 0 ? 100 * work.waited / all : 0);
}

static void sent(const struct session *s, char text[CELL_BYTES])
{
    const qn_group_figures work = work_of(s);
    size_text(work.updates ? work.bytes_sent / work.updates : 0, text);
}

static const struct row work_rows[] = {
    {"samples while computing", rate},
    {"time spent waiting", waiting},
    {"sent in an update", sent},
};
enum { WORK_ROWS = sizeof work_rows / sizeof *work_rows };

/* --- printing --- */

static const cJSON *find(const cJSON *told, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(told, key);
}

static void print_rows(const cJSON *told, const char *key, const struct row *list, int count)
{
    const cJSON *member;
    printf("  %-24s", "member");
    for (int m = 0; m < cJSON_GetArraySize(told); m++)
        printf("  %12d", m);
    printf("\n");
    for (int r = 0; r < count; r++) {
        printf("  %-24s", list[r].name);
        cJSON_ArrayForEach(member, told)
        {
            const char *cell = cJSON_GetStringValue(cJSON_GetArrayItem(find(member, key), r));
            printf("  %12s", cell ? cell : "");
        }
        printf("\n");
    }
}

void members_print(const struct session *s)
{
    const cJSON *member, *told = s->members->told;
    int number = 0;
    cJSON_ArrayForEach(member, told) line_print(stdout, "member %d: %s, share %g", number++,
                                                cJSON_GetStringValue(find(member, "name")),
                                                cJSON_GetNumberValue(find(member, "share")));
    print_rows(told, "cells", rows, ROWS);
}

void members_report(const struct session *s)
{
    if (s->members && !s->quiet)
        print_rows(s->members->told, "work", work_rows, WORK_ROWS);
}

/* --- telling --- */

static cJSON *cells(const struct session *s, const struct row *list, int count)
{
    char text[CELL_BYTES];
    cJSON *array = cJSON_CreateArray();
    for (int r = 0; r < count; r++) {
        list[r].text(s, text);
        cJSON_AddItemToArray(array, cJSON_CreateString(text));
    }
    return array;
}

void members_tell_cells(cJSON *member, const struct session *s)
{
    cJSON_AddItemToObject(member, "cells", cells(s, rows, ROWS));
    if (s->members->group)
        cJSON_AddItemToObject(member, "work", cells(s, work_rows, WORK_ROWS));
}
