/* SPDX-License-Identifier: MIT */
#include "profile.h"
#include "file.h"
#include "members.h"
#include "members_told.h"
#include "ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Each is a row of its own, in this order: names of qn_profile_kind. */
enum { PROFILE_KINDS = QN_PROFILE_TRANSFER + 1 };
static const char *const kind_names[PROFILE_KINDS] = {"forward", "recompute",  "backward",
                                                      "update",  "evaluation", "transfer"};

/* Of a member of this process. */
struct profile {
    int process; /* of the trace */
    cJSON *events;
    double seconds[PROFILE_KINDS]; /* of all steps of a kind */
    double begin;                  /* of the first step */
    bool failed;                   /* out of memory */
};

/* --- a member's --- */

static cJSON *add_event(struct profile *p, const char *name, const char *phase, int row)
{
    cJSON *event = cJSON_CreateObject();
    p->failed |= !cJSON_AddItemToArray(p->events, event) ||
                 !cJSON_AddStringToObject(event, "name", name) ||
                 !cJSON_AddStringToObject(event, "ph", phase) ||
                 !cJSON_AddNumberToObject(event, "pid", p->process) ||
                 !cJSON_AddNumberToObject(event, "tid", row);
    return event;
}

static void name_row(struct profile *p, const char *what, int row, const char *name)
{
    cJSON *args = cJSON_AddObjectToObject(add_event(p, what, "M", row), "args");
    p->failed |= !cJSON_AddStringToObject(args, "name", name);
}

/* Of one of several members. */
static void name_process(struct profile *p, const struct session *s)
{
    char name[MEMBERS_NAME_BYTES];
    if (members_name(s, name))
        name_row(p, "process_name", 0, name);
}

static void begin(struct profile *p, const struct session *s)
{
    *p = (struct profile){
        .process = members_number(s) + 1, .events = cJSON_CreateArray(), .begin = INFINITY};
    name_process(p, s);
    for (int i = 0; i < PROFILE_KINDS; i++)
        name_row(p, "thread_name", i, kind_names[i]);
}

/* For qn_trainer_profile. */
static void add_step(void *user, const qn_profile_step *step)
{
    struct profile *p = user;
    char name[160];
    p->begin = isfinite(p->begin) ? p->begin : step->begin;
    const double moment = 1e6 * (step->begin - p->begin);
    p->seconds[step->kind] += step->seconds;
    snprintf(name, sizeof name, "%s: %s", step->name, step->group);
    cJSON *event = add_event(p, name, "X", (int)step->kind);
    cJSON_AddStringToObject(event, "cat", kind_names[step->kind]);
    cJSON_AddNumberToObject(event, "ts", moment);
    cJSON_AddNumberToObject(event, "dur", 1e6 * step->seconds);
    event = add_event(p, "bytes in use", "C", 0);
    cJSON_AddNumberToObject(event, "ts", moment);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    p->failed |= !cJSON_AddNumberToObject(args, "bytes", (double)step->live_bytes);
}

/* --- those of all --- */

/* Of this process, whose clock is ahead of rank 0's. */
struct profiles {
    struct profile of[MAX_MEMBERS];
    int count;
    double ahead; /* seconds */
};

/* A members_describe; takes the events. NULL: out of memory. */
static cJSON *describe(const struct session *s, void *user)
{
    struct profiles *all = user;
    struct profile *p = &all->of[s->member];
    if (p->failed)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON *seconds = cJSON_AddObjectToObject(object, "seconds");
    if (isfinite(p->begin)) /* else it has done nothing */
        cJSON_AddNumberToObject(object, "begin", p->begin - all->ahead);
    for (int i = 0; i < PROFILE_KINDS; i++)
        if (p->seconds[i] > 0)
            cJSON_AddNumberToObject(seconds, kind_names[i], p->seconds[i]);
    cJSON_AddItemToObject(object, "events", p->events);
    p->events = NULL;
    return object;
}

/* The update is that of all members, traced or not. */
static int step(struct session *s, struct profiles *all, const qn_cycle *cycle,
                qn_metrics *previous)
{
    struct session *one;
    for (; (one = members_session(s, all->count)); all->count++) {
        begin(&all->of[all->count], one);
        qn_trainer_profile(one->trainer, add_step, &all->of[all->count]);
    }
    const int code = members_step(s, cycle, previous);
    for (int m = 0; m < all->count; m++)
        qn_trainer_profile(members_session(s, m)->trainer, NULL, NULL);
    return code;
}

int profile_update(struct session *s, const qn_cycle *cycle, qn_metrics *previous, cJSON **profiles)
{
    struct profiles all = {.count = 0};
    *profiles = NULL;
    TRY(ranks_clock(&all.ahead, s->failure));
    int code = step(s, &all, cycle, previous);
    if (!code)
        code = members_gather(s, describe, &all, profiles);
    for (int m = 0; m < all.count; m++)
        cJSON_Delete(all.of[m].events);
    return code;
}

/* --- the file --- */

static const cJSON *find(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* When a member began; NAN: it did not. */
static double begin_of(const cJSON *profile)
{
    const cJSON *begin = find(profile, "begin");
    return begin ? begin->valuedouble : NAN;
}

/* Moves the events of one into the list, by the time since `zero`. */
static void move_events(cJSON *profile, double zero, cJSON *list)
{
    cJSON *events = cJSON_DetachItemFromObjectCaseSensitive(profile, "events");
    while (events && events->child) {
        cJSON *event = cJSON_DetachItemFromArray(events, 0);
        cJSON *moment = cJSON_GetObjectItemCaseSensitive(event, "ts");
        if (moment)
            cJSON_SetNumberValue(moment, moment->valuedouble + 1e6 * (begin_of(profile) - zero));
        cJSON_AddItemToArray(list, event);
    }
    cJSON_Delete(events);
}

int profile_write(cJSON *profiles, const char *path, struct failure *failure)
{
    cJSON *one, *trace = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(trace, "traceEvents");
    double zero = NAN;
    cJSON_ArrayForEach(one, profiles) zero = fmin(zero, begin_of(one));
    cJSON_ArrayForEach(one, profiles) move_events(one, zero, list);
    char *text = list ? cJSON_PrintUnformatted(trace) : NULL;
    const int code = text ? file_replace(path, text, failure)
                          : failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    free(text);
    cJSON_Delete(trace);
    return code;
}
