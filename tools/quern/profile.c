/* SPDX-License-Identifier: MIT */
#include "profile.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROCESS = 1 };

/* Each is a row of its own, in this order. */
const char *const profile_kinds[PROFILE_KINDS] = {"forward", "recompute",  "backward",
                                                  "update",  "evaluation", "transfer"};

static cJSON *add_event(struct profile *p, const char *name, const char *phase, int row)
{
    cJSON *event = cJSON_CreateObject();
    p->failed |= !cJSON_AddItemToArray(p->events, event) ||
                 !cJSON_AddStringToObject(event, "name", name) ||
                 !cJSON_AddStringToObject(event, "ph", phase) ||
                 !cJSON_AddNumberToObject(event, "pid", PROCESS) ||
                 !cJSON_AddNumberToObject(event, "tid", row);
    return event;
}

static void name_rows(struct profile *p)
{
    for (int i = 0; i < PROFILE_KINDS; i++) {
        cJSON *args = cJSON_AddObjectToObject(add_event(p, "thread_name", "M", i), "args");
        p->failed |= !cJSON_AddStringToObject(args, "name", profile_kinds[i]);
    }
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

int profile_write(struct profile *p, const char *path, struct failure *failure)
{
    cJSON *trace = cJSON_CreateObject();
    if (!p->events)
        p->events = cJSON_CreateArray();
    p->failed |= !cJSON_AddItemToObject(trace, "traceEvents", p->events);
    char *text = p->failed ? NULL : cJSON_PrintUnformatted(trace);
    const int code = text ? file_replace(path, text, failure)
                          : failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    free(text);
    cJSON_Delete(trace);
    p->events = NULL;
    return code;
}
