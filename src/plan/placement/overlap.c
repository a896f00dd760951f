/* SPDX-License-Identifier: MIT */
#include "plan/placement/overlap.h"

#include <stdlib.h>

struct event {
    int64_t time;
    int box;
    bool begins;
};

/* Of equal times, ends come before beginnings: lifetimes are half-open. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? 1 : -1;
    return x->box - y->box;
}

static struct event *list_events(const qn_lifetime *boxes, int count, struct qn_arena *arena)
{
    struct event *events = qn_arena_new(arena, struct event, (size_t)count * 2 + 1);
    for (int i = 0; events && i < count; i++) {
        events[2 * i] = (struct event){boxes[i].lower, i, true};
        events[2 * i + 1] = (struct event){boxes[i].upper, i, false};
    }
    if (events)
        qsort(events, (size_t)count * 2, sizeof *events, compare_events);
    return events;
}

/* A section ends where a box ends directly after another one began. */
static void number_sections(struct qn_overlap *o, const struct event *events)
{
    bool grew = false;
    int alive = 0;
    for (int64_t e = 0; e < 2 * (int64_t)o->count; e++) {
        if (events[e].begins) {
            o->first[events[e].box] = o->n_sections;
            o->pairs += alive++;
        } else {
            o->n_sections += grew;
            o->end[events[e].box] = o->n_sections;
            alive--;
        }
        grew = events[e].begins;
    }
}

bool qn_overlap_sections(struct qn_overlap *o, const qn_lifetime *boxes, int count,
                         struct qn_arena *arena)
{
    const struct event *events = list_events(boxes, count, arena);
    *o = (struct qn_overlap){.count = count,
                             .first = qn_arena_new(arena, int, (size_t)count + 1),
                             .end = qn_arena_new(arena, int, (size_t)count + 1)};
    if (!events || !o->first || !o->end)
        return false;
    number_sections(o, events);
    return true;
}

static bool meet(const struct qn_overlap *o, int a, int b)
{
    return a != b && o->first[a] < o->end[b] && o->first[b] < o->end[a];
}

/* Of pairs: packing takes about 24 bytes for each. */
enum { MOST_PAIRS = 1 << 25 };

static bool list_neighbours(struct qn_overlap *o, struct qn_arena *arena)
{
    if (o->pairs > MOST_PAIRS)
        return false;
    o->neighbour = qn_arena_new(arena, int, (size_t)o->pairs * 2 + 1);
    o->neighbours = qn_arena_new(arena, int, (size_t)o->count + 1);
    if (!o->neighbour || !o->neighbours)
        return false;
    int at = 0;
    for (int i = 0; i < o->count; i++) {
        o->neighbours[i] = at;
        for (int j = 0; j < o->count; j++)
            if (meet(o, i, j))
                o->neighbour[at++] = j;
    }
    o->neighbours[o->count] = at;
    return true;
}

static bool list_members(struct qn_overlap *o, struct qn_arena *arena)
{
    o->members = qn_arena_new(arena, int, (size_t)o->n_sections + 1);
    if (!o->members)
        return false;
    for (int i = 0; i < o->count; i++)
        for (int s = o->first[i]; s < o->end[i]; s++)
            o->members[s]++;
    for (int s = 1; s <= o->n_sections; s++)
        o->members[s] += o->members[s - 1];
    o->member = qn_arena_new(arena, int, (size_t)o->members[o->n_sections] + 1);
    for (int i = o->count - 1; o->member && i >= 0; i--)
        for (int s = o->first[i]; s < o->end[i]; s++)
            o->member[--o->members[s]] = i;
    return o->member;
}

bool qn_overlap_make(struct qn_overlap *o, const qn_lifetime *boxes, int count,
                     struct qn_arena *arena)
{
    return qn_overlap_sections(o, boxes, count, arena) && list_neighbours(o, arena) &&
           list_members(o, arena);
}
