/* SPDX-License-Identifier: MIT */
#include "members_told.h"
#include "metrics.h"
#include "ranks.h"

#include <stdlib.h>

/* What it did in this run. */
static void add_work(cJSON *summary, const struct session *s)
{
    qn_group_figures figures;
    if (!s->members->group || qn_group_measure(s->members->group, s->member, &figures) != QN_OK)
        return;
    cJSON_AddNumberToObject(summary, "samples", (double)figures.samples);
    cJSON_AddNumberToObject(summary, "computed_seconds", figures.computed);
    cJSON_AddNumberToObject(summary, "waited_seconds", figures.waited);
    cJSON_AddNumberToObject(summary, "bytes_sent", (double)figures.bytes_sent);
}

/* A members_describe. */
static cJSON *describe(const struct session *s, void *user)
{
    const double share = s->members->share[members_number(s)];
    cJSON *member = cJSON_CreateObject(), *summary = device_json(s);
    char *plan = qn_plan_json(session_running(s));
    cJSON_AddStringToObject(member, "name", qn_device_facts(s->device)->name);
    cJSON_AddNumberToObject(member, "share", share);
    cJSON_AddStringToObject(member, "plan", plan ? plan : "");
    members_tell_cells(member, s);
    cJSON_AddNumberToObject(summary, "share", share);
    add_work(summary, s);
    cJSON_AddItemToObject(member, "summary", summary);
    free(plan);
    (void)user;
    return member;
}

int members_tell(struct session *s)
{
    if (!s->members)
        return CODE_DONE;
    cJSON_Delete(s->members->told);
    return members_gather(s, describe, NULL, &s->members->told);
}

/* --- for metrics --- */

static const cJSON *find(const cJSON *member, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(member, key);
}

cJSON *members_plans(const struct session *s)
{
    const cJSON *member;
    cJSON *list = cJSON_CreateArray();
    cJSON_ArrayForEach(member, s->members->told)
        cJSON_AddItemToArray(list, cJSON_CreateRaw(cJSON_GetStringValue(find(member, "plan"))));
    return list;
}

cJSON *members_summaries(const struct session *s)
{
    const cJSON *member;
    cJSON *list = cJSON_CreateArray();
    cJSON_ArrayForEach(member, s->members->told)
        cJSON_AddItemToArray(list, cJSON_Duplicate(find(member, "summary"), true));
    return list;
}

static int64_t number(const cJSON *member, const char *key)
{
    const cJSON *item = find(find(member, "summary"), key);
    return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : 0;
}

static struct members_bytes bytes_alone(const struct session *s)
{
    const qn_plan_info *plan = qn_plan_facts(session_running(s));
    return (struct members_bytes){.peak = plan->peak_bytes,
                                  .allocated = s->trainer ? qn_trainer_bytes(s->trainer) : 0,
                                  .budget = plan->budget_bytes};
}

struct members_bytes members_bytes(const struct session *s)
{
    const cJSON *member;
    struct members_bytes sum = {0};
    if (!s->members)
        return bytes_alone(s);
    cJSON_ArrayForEach(member, s->members->told)
    {
        sum.peak += number(member, "peak_bytes_planned");
        sum.allocated += number(member, "peak_bytes_allocated");
        sum.budget += number(member, "budget_bytes");
    }
    return sum;
}

const struct session *members_refused(const struct session *s)
{
    const struct members *members = s->members;
    int m = 0;
    while (members && m < members->count && members->member[m].session->plan)
        m++;
    return members && m < members->count ? members->member[m].session : s;
}
