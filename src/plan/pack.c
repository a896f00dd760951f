/* SPDX-License-Identifier: MIT
 *
 * A depth-first search that places boxes from the bottom up, each as low as those below it allow.
 * The ways to cut it short are those of MiniMalloc (Moffitt, "MiniMalloc: a lightweight memory
 * allocator for hardware-accelerated machine learning", ASPLOS 2023).
 */
#include "plan/pack.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A part of the time in which the same boxes live as at some moment of it, and no more. */
struct section {
    int64_t floor; /* under what is not placed yet */
    int64_t total; /* of the sizes not placed yet */
    int64_t spans; /* boxes not placed yet that live in this section and in the one before */
    int members;   /* where the list of its boxes begins */
    bool touched;
};

struct change {
    int64_t *where, before;
};

/* What tells which of two boxes with equal offsets is tried first: the one that has more of it. */
enum measure { WIDTH, AREA, TOTAL, MEASURES };

struct ranked {
    double measure[MEASURES]; /* in the order of preference */
    int box;
};

struct packer {
    const qn_lifetime *boxes;
    int count;
    const enum measure *order;
    struct ranked *ranked; /* room for all boxes */
    int64_t *rank;         /* by box: its place in the order of preference */
    int *first, *end;      /* by box: its sections are [first, end) */
    int64_t *least;        /* by box: the lowest offset that those placed allow */
    int64_t *offset;       /* by box: -1: not placed */
    int *together;         /* boxes that live together with each box, one list after another */
    int *list;             /* by box: where its own begins; count + 1 of them */
    int *members;          /* boxes of each section, one list after another */
    int n_open;            /* boxes that take room */
    int *open;             /* these; each part of the problem is a stretch of them */
    struct section *sections;
    int n_sections;
    struct change *changes; /* to be undone */
    int n_changes, change_capacity;
    int64_t height, nodes, most_nodes;
    bool no_memory;
};

/* --- what is set up once --- */

struct event {
    int64_t time;
    int box;
    bool begins;
};

/* Ends come before beginnings of the same time. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? 1 : -1;
    return x->box - y->box;
}

/* A section ends with the first box that ends after one began. */
static bool find_sections(struct packer *p, struct qn_arena *arena)
{
    struct event *events = qn_arena_new(arena, struct event, (size_t)p->count * 2 + 1);
    if (!events)
        return false;
    for (int i = 0; i < p->count; i++) {
        events[2 * i] = (struct event){p->boxes[i].lower, i, true};
        events[2 * i + 1] = (struct event){p->boxes[i].upper, i, false};
    }
    qsort(events, (size_t)p->count * 2, sizeof *events, compare_events);
    bool grew = false;
    p->n_sections = 0;
    for (int e = 0; e < 2 * p->count; e++) {
        if (events[e].begins) {
            p->first[events[e].box] = p->n_sections;
        } else {
            p->n_sections += grew;
            p->end[events[e].box] = p->n_sections;
        }
        grew = events[e].begins;
    }
    return true;
}

static bool meet(const struct packer *p, int a, int b)
{
    return p->first[a] < p->end[b] && p->first[b] < p->end[a];
}

static bool list_neighbours(struct packer *p, struct qn_arena *arena)
{
    int total = 0;
    for (int i = 0; i < p->count; i++)
        for (int j = 0; j < p->count; j++)
            total += i != j && meet(p, i, j);
    p->together = qn_arena_new(arena, int, (size_t)total + 1);
    if (!p->together)
        return false;
    int at = 0;
    for (int i = 0; i < p->count; i++) {
        p->list[i] = at;
        for (int j = 0; j < p->count; j++)
            if (i != j && meet(p, i, j))
                p->together[at++] = j;
    }
    p->list[p->count] = at;
    return true;
}

static bool list_members(struct packer *p, struct qn_arena *arena)
{
    struct section *sections = p->sections;
    for (int i = 0; i < p->count; i++)
        for (int s = p->first[i]; s < p->end[i]; s++)
            sections[s].members++;
    for (int s = 1; s <= p->n_sections; s++)
        sections[s].members += sections[s - 1].members;
    p->members = qn_arena_new(arena, int, (size_t)sections[p->n_sections].members + 1);
    for (int i = p->count - 1; p->members && i >= 0; i--)
        for (int s = p->first[i]; s < p->end[i]; s++)
            p->members[--sections[s].members] = i;
    return p->members;
}

static void add_totals(struct packer *p)
{
    for (int i = 0; i < p->count; i++)
        for (int s = p->first[i]; s < p->end[i]; s++)
            p->sections[s].total += p->boxes[i].size;
}

static void set_bottom(struct packer *p)
{
    for (int s = 0; s < p->n_sections; s++)
        p->sections[s].floor = p->sections[s].total = p->sections[s].spans = 0;
    add_totals(p);
    p->n_open = 0;
    for (int i = 0; i < p->count; i++) {
        p->least[i] = 0;
        p->offset[i] = 0;
        if (!p->boxes[i].size)
            continue;
        p->open[p->n_open++] = i;
        p->offset[i] = -1;
        for (int s = p->first[i]; s < p->end[i]; s++)
            p->sections[s].spans += s > p->first[i];
    }
    p->nodes = 0;
    p->n_changes = 0;
}

/* As much as the bound needs. */
static bool prepare_sections(struct packer *p, struct qn_arena *arena)
{
    const size_t n = (size_t)p->count + 1;
    p->first = qn_arena_new(arena, int, n);
    p->end = qn_arena_new(arena, int, n);
    p->sections = qn_arena_new(arena, struct section, n);
    return p->first && p->end && p->sections && find_sections(p, arena);
}

static bool prepare(struct packer *p, struct qn_arena *arena)
{
    const size_t n = (size_t)p->count + 1;
    p->least = qn_arena_new(arena, int64_t, n);
    p->offset = qn_arena_new(arena, int64_t, n);
    p->list = qn_arena_new(arena, int, n);
    p->rank = qn_arena_new(arena, int64_t, n);
    p->ranked = qn_arena_new(arena, struct ranked, n);
    p->open = qn_arena_new(arena, int, n);
    return p->least && p->offset && p->list && p->rank && p->ranked && p->open &&
           prepare_sections(p, arena) && list_neighbours(p, arena) && list_members(p, arena);
}

/* --- moves --- */

/* A part of the problem: boxes open[from] .. open[to - 1], which live in these sections alone. What
 * is placed next lies no lower than `offset`, and of equal offsets comes later by rank than `rank`:
 * one order of placing is enough. */
struct part {
    int from, to, section, sections_end;
    int64_t offset, rank;
};

static void change(struct packer *p, int64_t *where, int64_t value)
{
    if (p->n_changes == p->change_capacity) {
        const int capacity = p->change_capacity ? 2 * p->change_capacity : 4096;
        struct change *larger = realloc(p->changes, (size_t)capacity * sizeof *larger);
        if (!larger) {
            p->no_memory = true;
            return;
        }
        p->changes = larger;
        p->change_capacity = capacity;
    }
    p->changes[p->n_changes++] = (struct change){where, *where};
    *where = value;
}

static void undo(struct packer *p, int count)
{
    while (p->n_changes > count) {
        const struct change *last = &p->changes[--p->n_changes];
        *last->where = last->before;
    }
}

/* Whether a box is left that lives together with this one: one that lies above it. */
static bool raise_neighbours(struct packer *p, int box, int64_t top)
{
    bool any = false;
    for (int i = p->list[box]; i < p->list[box + 1]; i++) {
        const int other = p->together[i];
        if (p->offset[other] >= 0)
            continue;
        any = true;
        if (p->least[other] >= top)
            continue;
        change(p, &p->least[other], top);
        for (int s = p->first[other]; s < p->end[other]; s++)
            p->sections[s].touched = true;
    }
    return any;
}

/* What is not placed yet in a section lies no lower than the lowest of it may. */
static void raise_floors(struct packer *p, const struct part *part)
{
    for (int s = part->section; s < part->sections_end; s++) {
        struct section *section = &p->sections[s];
        if (!section->touched)
            continue;
        section->touched = false;
        int64_t lowest = INT64_MAX;
        for (int i = section->members; i < section[1].members; i++) {
            const int box = p->members[i];
            if (p->offset[box] < 0 && p->least[box] < lowest)
                lowest = p->least[box];
        }
        if (lowest < INT64_MAX && lowest > section->floor)
            change(p, &section->floor, lowest);
    }
}

/* Gives whether boxes are left above. */
static bool put(struct packer *p, const struct part *part, int box)
{
    const int64_t size = p->boxes[box].size, top = p->least[box] + size;
    change(p, &p->offset[box], p->least[box]);
    for (int s = p->first[box]; s < p->end[box]; s++) {
        struct section *section = &p->sections[s];
        change(p, &section->floor, top);
        change(p, &section->total, section->total - size);
        if (s > p->first[box])
            change(p, &section->spans, section->spans - 1);
    }
    const bool any = raise_neighbours(p, box, top);
    raise_floors(p, part);
    return any;
}

/* --- preference --- */

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    for (int i = 0; i < MEASURES; i++)
        if (x->measure[i] != y->measure[i])
            return x->measure[i] > y->measure[i] ? -1 : 1;
    return x->box - y->box;
}

/* The largest total of the sections of a box. */
static int64_t largest_total(const struct packer *p, int box)
{
    int64_t largest = 0;
    for (int s = p->first[box]; s < p->end[box]; s++)
        largest = p->sections[s].total > largest ? p->sections[s].total : largest;
    return largest;
}

/* Ranks the boxes of a part by what they measure now. */
static void rank(struct packer *p, const struct part *part)
{
    const int count = part->to - part->from;
    for (int i = 0; i < count; i++) {
        const int box = p->open[part->from + i];
        const double width = (double)(p->boxes[box].upper - p->boxes[box].lower);
        const double of[MEASURES] = {[WIDTH] = width,
                                     [AREA] = width * (double)p->boxes[box].size,
                                     [TOTAL] = (double)largest_total(p, box)};
        p->ranked[i].box = box;
        for (int m = 0; m < MEASURES; m++)
            p->ranked[i].measure[m] = of[p->order[m]];
    }
    qsort(p->ranked, (size_t)count, sizeof *p->ranked, compare_ranked);
    for (int i = 0; i < count; i++)
        change(p, &p->rank[p->ranked[i].box], i);
}

/* --- the search --- */

static enum qn_packing solve(struct packer *p, const struct part *part);

/* A section that no open box shares with the one before; 0: there is none. */
static int clean_cut(const struct packer *p, const struct part *part)
{
    for (int s = part->section + 1; s < part->sections_end; s++)
        if (p->sections[s].spans == 0)
            return s;
    return 0;
}

static enum qn_packing solve_halves(struct packer *p, const struct part *part, int cut)
{
    struct part left = *part, right = *part;
    int middle = part->from;
    for (int i = part->from; i < part->to; i++)
        if (p->first[p->open[i]] < cut) {
            const int box = p->open[i];
            p->open[i] = p->open[middle];
            p->open[middle++] = box;
        }
    left.to = right.from = middle;
    left.sections_end = right.section = cut;
    left.rank = right.rank = -1;
    rank(p, &left);
    const enum qn_packing done = solve(p, &left);
    if (done != QN_PACKED)
        return done;
    rank(p, &right);
    return solve(p, &right);
}

static bool has_room(const struct packer *p, const struct part *part)
{
    for (int s = part->section; s < part->sections_end; s++) {
        const struct section *section = &p->sections[s];
        const int64_t floor = section->floor > part->offset ? section->floor : part->offset;
        if (section->total && floor + section->total > p->height)
            return false;
    }
    return true;
}

/* No box begins at or above the lowest top that is possible: that one could lie under it. */
static int64_t lowest_top(const struct packer *p, const struct part *part)
{
    int64_t lowest = INT64_MAX;
    for (int i = part->from; i < part->to; i++) {
        const int64_t top = p->least[p->open[i]] + p->boxes[p->open[i]].size;
        lowest = top < lowest ? top : lowest;
    }
    return lowest;
}

static bool is_after(const struct packer *p, int box, int64_t offset, int64_t rank)
{
    return p->least[box] > offset || (p->least[box] == offset && p->rank[box] > rank);
}

/* Place in `open` of the candidate that comes next after (offset, rank); -1: none is left. */
static int next_candidate(const struct packer *p, const struct part *part, int64_t offset,
                          int64_t rank)
{
    int best = -1;
    for (int i = part->from; i < part->to; i++) {
        const int other = best >= 0 ? p->open[best] : 0;
        if (is_after(p, p->open[i], offset, rank) &&
            (best < 0 || is_after(p, other, p->least[p->open[i]], p->rank[p->open[i]])))
            best = i;
    }
    return best;
}

static enum qn_packing try_candidates(struct packer *p, const struct part *part)
{
    const int64_t limit = lowest_top(p, part);
    struct part rest = *part;
    rest.to--;
    for (int i; (i = next_candidate(p, part, rest.offset, rest.rank)) >= 0;) {
        const int before = p->n_changes, box = p->open[i];
        rest.offset = p->least[box];
        rest.rank = p->rank[box];
        if (rest.offset >= limit)
            break;
        p->open[i] = p->open[rest.to];
        p->open[rest.to] = box;
        const bool any_above = put(p, part, box);
        const enum qn_packing done = solve(p, &rest);
        if (done != QN_PACK_IMPOSSIBLE)
            return done;
        undo(p, before);
        if (!any_above)
            break;
    }
    return QN_PACK_IMPOSSIBLE;
}

static enum qn_packing solve(struct packer *p, const struct part *part)
{
    if (part->from == part->to)
        return QN_PACKED;
    if (p->no_memory)
        return QN_PACK_NO_MEMORY;
    if (++p->nodes > p->most_nodes)
        return QN_PACK_GAVE_UP;
    const int cut = clean_cut(p, part);
    if (cut)
        return solve_halves(p, part, cut);
    return has_room(p, part) ? try_candidates(p, part) : QN_PACK_IMPOSSIBLE;
}

/* --- one search after another --- */

/* The orders of preference by turns, each time with twice the nodes. */
static enum qn_packing search(struct packer *p, int64_t nodes)
{
    static const enum measure orders[][MEASURES] = {
        {WIDTH, AREA, TOTAL}, {TOTAL, AREA, WIDTH}, {TOTAL, WIDTH, AREA}};
    enum { ORDERS = sizeof orders / sizeof *orders };
    for (int64_t most = 2 * p->count + 1; nodes > 0; most *= 2)
        for (int i = 0; i < ORDERS && nodes > 0; i++) {
            set_bottom(p);
            const struct part all = {0, p->n_open, 0, p->n_sections, 0, -1};
            p->most_nodes = most < nodes ? most : nodes;
            p->order = orders[i];
            rank(p, &all);
            const enum qn_packing done = solve(p, &all);
            if (done != QN_PACK_GAVE_UP)
                return done;
            nodes -= p->nodes;
        }
    return QN_PACK_GAVE_UP;
}

enum qn_packing qn_pack(qn_lifetime *boxes, int count, int64_t height, int64_t nodes,
                        struct qn_arena *arena)
{
    struct packer p = {.boxes = boxes, .count = count, .height = height};
    if (!prepare(&p, arena))
        return QN_PACK_NO_MEMORY;
    const enum qn_packing done = search(&p, nodes);
    for (int i = 0; done == QN_PACKED && i < count; i++)
        boxes[i].offset = p.offset[i];
    free(p.changes);
    return p.no_memory ? QN_PACK_NO_MEMORY : done;
}

int64_t qn_pack_bound(const qn_lifetime *boxes, int count, struct qn_arena *arena)
{
    struct packer p = {.boxes = boxes, .count = count};
    int64_t bound = 0;
    if (!prepare_sections(&p, arena))
        return -1;
    add_totals(&p);
    for (int s = 0; s < p.n_sections; s++)
        bound = p.sections[s].total > bound ? p.sections[s].total : bound;
    return bound;
}

/* --- for everybody --- */

static qn_status check(const qn_lifetime *buffers, int count, const qn_log *log)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        const qn_lifetime *b = &buffers[i];
        if (b->lower >= b->upper || b->lower < 0 || b->size < 0)
            return qn_fail(log, QN_ERR_ARGUMENT,
                           "buffer %d: lives from %" PRId64 " to %" PRId64 " with %" PRId64
                           " bytes",
                           i, b->lower, b->upper, b->size);
        if (b->size > INT64_MAX - sum)
            return qn_fail(log, QN_ERR_ARGUMENT, "buffer %d: the sizes so far have no sum", i);
        sum += b->size;
    }
    return QN_OK;
}

static qn_status place(qn_lifetime *buffers, int count, const qn_place_params *params,
                       int64_t *bound, struct qn_arena *arena)
{
    const int64_t nodes = params->nodes ? params->nodes : INT64_C(1) << 28;
    *bound = qn_pack_bound(buffers, count, arena);
    const int64_t capacity = params->capacity ? params->capacity : *bound;
    const enum qn_packing done =
        *bound < 0 ? QN_PACK_NO_MEMORY : qn_pack(buffers, count, capacity, nodes, arena);
    if (done == QN_PACK_IMPOSSIBLE)
        return qn_fail(&params->log, QN_ERR_BUDGET,
                       "no offsets fit %" PRId64 " bytes; %" PRId64 " live at the same time",
                       capacity, *bound);
    if (done == QN_PACK_GAVE_UP)
        return qn_fail(&params->log, QN_ERR_BUDGET,
                       "no offsets within %" PRId64 " bytes were found in %" PRId64
                       " steps; %" PRId64 " live at the same time",
                       capacity, nodes, *bound);
    return done == QN_PACKED
               ? QN_OK
               : qn_fail(&params->log, QN_ERR_MEMORY, "placement: out of host memory");
}

qn_status qn_place(qn_lifetime *buffers, int count, const qn_place_params *params, int64_t *bound)
{
    const qn_place_params none = {0};
    struct qn_arena arena = {0};
    int64_t own;
    params = params ? params : &none;
    QN_REQUIRE(&params->log, buffers && count >= 0 && params->capacity >= 0 && params->nodes >= 0);
    QN_TRY(check(buffers, count, &params->log));
    const qn_status status = place(buffers, count, params, bound ? bound : &own, &arena);
    qn_arena_free(&arena);
    return status;
}
