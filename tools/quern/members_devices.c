/* SPDX-License-Identifier: MIT
 *
 * Which device each member takes. Members of one process see one another's devices; those of other
 * processes on the same machine are told apart by the place in the list of devices.
 */
#include "members.h"
#include "ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a member: the machine, the text that its device matches, and the device. */
struct place {
    char host[64], text[MEMBER_DEVICE_BYTES];
    char platform[96], device[96], bus[24];
    int number;
};

/* Those of one rank, as they are gathered. */
struct places {
    int count;
    struct place place[MAX_MEMBERS];
};

/* Ranks of a machine one after another. */
static void take_rounds(struct members *members, const struct places *ranks)
{
    members->rounds = 0;
    for (int r = 0; r < ranks_count(); r++) {
        int before = 0;
        for (int o = 0; o < r; o++)
            before += strcmp(ranks[o].place->host, ranks[r].place->host) == 0;
        members->round = r == ranks_own() ? before : members->round;
        members->rounds = before + 1 > members->rounds ? before + 1 : members->rounds;
    }
}

/* Of all members, by number, from those of this rank. */
static int gather(struct session *s, const struct places *own, struct place *all)
{
    struct places *ranks = calloc((size_t)ranks_count(), sizeof *ranks);
    int code = ranks ? CODE_DONE : failure_set(s->failure, CODE_FAILED, "out of memory");
    code = ranks_agree(code, s->failure);
    if (!code)
        code = ranks_gather(own, sizeof *own, ranks, s->failure);
    if (!code)
        take_rounds(s->members, ranks);
    for (int r = 0; !code && r < ranks_count(); r++) {
        memcpy(all, ranks[r].place, (size_t)ranks[r].count * sizeof *all);
        all += ranks[r].count;
    }
    free(ranks);
    return code;
}

static void describe_texts(const struct members *members, struct places *own)
{
    const char *named = getenv("QN_DEVICE");
    own->count = members->count;
    for (int m = 0; m < members->count; m++) {
        struct place *place = &own->place[m];
        const char *text = members->member[m].device;
        gethostname(place->host, sizeof place->host - 1);
        snprintf(place->text, sizeof place->text, "%s", *text ? text : named ? named : "");
    }
}

static void describe_devices(const struct members *members, struct places *own)
{
    for (int m = 0; m < members->count; m++) {
        const qn_device_info *info = qn_device_describe(members->member[m].session->device);
        struct place *place = &own->place[m];
        memcpy(place->platform, info->platform, sizeof place->platform);
        memcpy(place->device, info->device, sizeof place->device);
        memcpy(place->bus, info->bus, sizeof place->bus);
        place->number = info->number;
    }
}

/* So many members before this one look for a device on the same machine by the same text. */
static int position(const struct place *all, int number)
{
    int before = 0;
    for (int m = 0; m < number; m++)
        before += strcmp(all[m].host, all[number].host) == 0 &&
                  strcmp(all[m].text, all[number].text) == 0;
    return before;
}

static bool same_device(const struct place *a, const struct place *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->platform, b->platform) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->bus, b->bus) == 0 &&
           a->number == b->number;
}

static int refuse_taken(struct session *s, int number, const char *text)
{
    return failure_set(s->failure, CODE_NO_DEVICE,
                       "member %d: %s; group.same_device = yes lets several members have one",
                       number, text);
}

/* In one process a device that another member has is no candidate. */
static int open_device(struct session *s, int m, int skip)
{
    struct member *member = &s->members->member[m];
    const qn_device *others[MAX_MEMBERS];
    char name[MEMBERS_NAME_BYTES];
    for (int o = 0; o < m; o++)
        others[o] = s->members->member[o].session->device;
    const bool alone = ranks_count() == 1 && !s->settings.group.same_device;
    const qn_device_params params = {.log = failure_log(s->failure),
                                     .match = *member->device ? member->device : NULL,
                                     .others = others,
                                     .n_others = alone ? m : 0,
                                     .skip = ranks_count() > 1 ? skip : 0};
    failure_clear(s->failure);
    const qn_status status = qn_device_open(&member->session->device, &params);
    if (status == QN_ERR_NO_DEVICE && m && alone)
        return refuse_taken(s, m, s->failure->logged);
    const char *context = members_name(member->session, name);
    return status ? failure_library(s->failure, status, context) : CODE_DONE;
}

static int open_devices(struct session *s, const struct place *all)
{
    for (int m = 0; m < s->members->count; m++)
        TRY(open_device(s, m, position(all, s->members->first + m)));
    return CODE_DONE;
}

/* All ranks come to the same answer. */
static int check_taken(struct session *s, const struct place *all)
{
    char text[256];
    for (int m = 0; m < s->members->all; m++)
        for (int o = 0; o < m; o++) {
            if (!same_device(&all[m], &all[o]) || s->settings.group.same_device)
                continue;
            snprintf(text, sizeof text, "%s is taken already by member %d", all[m].device, o);
            return refuse_taken(s, m, text);
        }
    return CODE_DONE;
}

/* Members on one device share its memory, where their budgets are not said. */
static void share_memory(const struct members *members, const struct place *all)
{
    for (int m = 0; m < members->count; m++) {
        struct session *s = members->member[m].session;
        int sharing = 0;
        for (int o = 0; o < members->all; o++)
            sharing += same_device(&all[members->first + m], &all[o]);
        if (sharing > 1 && !s->settings.memory.budget)
            s->settings.memory.budget = qn_device_facts(s->device)->global_bytes / 4 * 3 / sharing;
    }
}

int members_devices(struct session *s, const struct arguments *a)
{
    struct members *members = s->members;
    struct places own = {0};
    struct place all[MAX_ALL_MEMBERS];
    if (!members)
        return session_device(s, a);
    describe_texts(members, &own);
    TRY(gather(s, &own, all));
    TRY(ranks_agree(open_devices(s, all), s->failure));
    describe_devices(members, &own);
    TRY(gather(s, &own, all));
    TRY(check_taken(s, all));
    share_memory(members, all);
    return CODE_DONE;
}
