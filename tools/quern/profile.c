/* SPDX-License-Identifier: MIT */
#include "profile.h"
#include "file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Each is a row of its own, in this order. */
const char *const profile_kinds[PROFILE_KINDS] = {"forward", "recompute",  "backward",
                                                  "update",  "evaluation", "transfer"};

static cJSON *add_event(struct profile *p, const char *name, const char *phase, int row)
{
    cJSON *event = cJSON_CreateObject();
    p->failed |= !cJSON_AddItemToArray(p->events, event) ||
                 !cJSON_AddStringToObject(event, "name", name) ||
                 !cJSON_AddStringToObject(event, "ph", phase) ||
                 !cJSON_AddNumberToObject(event, "pid", p->member + 1) ||
                 !cJSON_AddNumberToObject(event, "tid", row);
    return event;
}

static void name_row(struct profile *p, const char *what, int row, const char *name)
{
    cJSON *args = cJSON_AddObjectToObject(add_event(p, what, "M", row), "args");
    p->failed |= !cJSON_AddStringToObject(args, "name", name);
}

static void name_rows(struct profile *p)
{
    for (int i = 0; i < PROFILE_KINDS; i++)
        name_row(p, "thread_name", i, profile_kinds[i]);
}

static void name_member(struct profile *p)
{
    char name[32];
    snprintf(name, sizeof name, "member %d", p->member);
    name_row(p, "process_name", 0, name);
}

void profile_step(void *user, const qn_profile_step *step)
{
    struct profile *p = user;
    char name[160];
    if (!p->events) {
        p->events = cJSON_CreateArray();
        p->begin = step->begin;
        name_rows(p);
    }
    const double begin = 1e6 * (step->begin - p->begin);
    p->seconds[step->kind] += step->seconds;
    snprintf(name, sizeof name, "%s: %s", step->name, step->group);
    cJSON *event = add_event(p, name, "X", (int)step->kind);
    cJSON_AddStringToObject(event, "cat", profile_kinds[step->kind]);
    cJSON_AddNumberToObject(event, "ts", begin);
    cJSON_AddNumberToObject(event, "dur", 1e6 * step->seconds);
    event = add_event(p, "bytes in use", "C", 0);
    cJSON_AddNumberToObject(event, "ts", begin);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    p->failed |= !cJSON_AddNumberToObject(args, "bytes", (double)step->live_bytes);
}

/* Moves the events of one into the list, in time since `begin`. */
static bool add_events(struct profile *p, double begin, cJSON *list)
{
    while (p->events && p->events->child) {
        cJSON *event = cJSON_DetachItemFromArray(p->events, 0);
        cJSON *moment = cJSON_GetObjectItemCaseSensitive(event, "ts");
        if (moment)
            cJSON_SetNumberValue(moment, moment->valuedouble + 1e6 * (p->begin - begin));
        cJSON_AddItemToArray(list, event);
    }
    cJSON_Delete(p->events);
    p->events = NULL;
    return !p->failed;
}

static double first_begin(const struct profile *profiles, int count)
{
    double begin = INFINITY;
    for (int i = 0; i < count; i++)
        begin = profiles[i].events ? fmin(begin, profiles[i].begin) : begin;
    return begin;
}

int profile_write(struct profile *profiles, int count, const char *path, struct failure *failure)
{
    const double begin = first_begin(profiles, count);
    cJSON *trace = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(trace, "traceEvents");
    bool whole = list != NULL;
    for (int i = 0; i < count; i++) {
        if (count > 1)
            name_member(&profiles[i]);
        whole &= add_events(&profiles[i], begin, list);
    }
    char *text = whole ? cJSON_PrintUnformatted(trace) : NULL;
    const int code = text ? file_replace(path, text, failure)
                          : failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    free(text);
    cJSON_Delete(trace);
    return code;
}
