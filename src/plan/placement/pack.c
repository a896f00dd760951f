/* SPDX-License-Identifier: MIT
 *
 * A depth-first search that places boxes from the bottom up, each as low as those below it allow.
 * It is pruned as in MiniMalloc (Moffitt, "MiniMalloc: a lightweight memory
 * allocator for hardware-accelerated machine learning", ASPLOS 2023).
 */
#include "plan/placement/pack.h"

#include "plan/placement/overlap.h"

#include <stdlib.h>

struct section {
    int64_t floor; /* no open box of the section can lie lower; open: not placed yet */
    int64_t total; /* sum of the sizes of the section's open boxes */
    int64_t spans; /* open boxes that live in this section and in the one before */
    bool touched;  /* `least` of one of its boxes rose: `floor` may rise */
};

struct change {
    int64_t *where, before;
};

/* Of two boxes with equal `least` the one with the larger measure is tried first. WIDTH: length of
 * life; AREA: WIDTH times size; TOTAL: the largest total of the box's sections. */
enum measure { WIDTH, AREA, TOTAL, MEASURES };

struct ranked {
    double measure[MEASURES]; /* in the order of preference */
    int box;
};

/* A part of the problem: boxes open[from] .. open[to - 1], which live in sections `section` ..
 * `sections_end` - 1 alone. Boxes are placed in the order of (offset, rank) only: the next one
 * comes after (`offset`, `rank`). */
struct part {
    int from, to, section, sections_end;
    int64_t offset, rank;
};

/* A part that is being solved; the frame above it on the stack solves a part of this part. */
struct frame {
    enum { NEW, HALVED, TRYING } state;
    struct part part;
    struct part rest; /* HALVED: the second half; TRYING: `part` without the box tried last */
    int64_t limit;    /* TRYING: only offsets below this one are tried */
    int before;       /* TRYING: n_changes before the box tried last was put */
    bool any_above;   /* TRYING: open boxes live together with the box tried last */
};

struct packer {
    const qn_lifetime *boxes;
    const enum measure *order;
    struct ranked *ranked; /* room for all boxes */
    int64_t *rank;         /* by box: position in the order of preference */
    int64_t *least;        /* by box: the lowest offset that the boxes placed so far allow */
    int64_t *offset;       /* by box; -1: not placed */
    int n_open;            /* boxes of a size above 0 */
    int *open;             /* those boxes; each part of the problem is a range of this array */
    struct qn_overlap time;
    struct section *sections; /* by section of `time` */
    struct change *changes;   /* made since the search began, for undo() */
    int n_changes, change_capacity;
    struct frame *frames; /* a stack: two for each box at most */
    int depth;
    enum qn_packing found; /* of the part that was solved last */
    int64_t height, nodes, most_nodes;
    bool no_memory;
};

/* --- setting up --- */

/* Boxes of size 0 are never open: their offset is 0 from the beginning. */
static void open_box(struct packer *p, int box)
{
    p->open[p->n_open++] = box;
    p->offset[box] = -1;
    for (int s = p->time.first[box]; s < p->time.end[box]; s++) {
        p->sections[s].total += p->boxes[box].size;
        p->sections[s].spans += s > p->time.first[box];
    }
}

static void set_bottom(struct packer *p)
{
    for (int s = 0; s < p->time.n_sections; s++)
        p->sections[s] = (struct section){0};
    p->n_open = 0;
    for (int i = 0; i < p->time.count; i++) {
        p->least[i] = 0;
        p->offset[i] = 0;
        if (p->boxes[i].size)
            open_box(p, i);
    }
    p->nodes = 0;
    p->n_changes = 0;
}

static bool prepare(struct packer *p, int count, struct qn_arena *arena)
{
    const size_t n = (size_t)count + 1;
    p->least = qn_arena_new(arena, int64_t, n);
    p->offset = qn_arena_new(arena, int64_t, n);
    p->rank = qn_arena_new(arena, int64_t, n);
    p->ranked = qn_arena_new(arena, struct ranked, n);
    p->open = qn_arena_new(arena, int, n);
    p->sections = qn_arena_new(arena, struct section, n);
    p->frames = qn_arena_new(arena, struct frame, 2 * n);
    return p->least && p->offset && p->rank && p->ranked && p->open && p->sections && p->frames &&
           qn_overlap_make(&p->time, p->boxes, count, arena);
}

/* --- moves --- */

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

/* Raises `least` of the open boxes that live together with `box` to at least `top`. Gives whether
 * there are any. */
static bool raise_neighbours(struct packer *p, int box, int64_t top)
{
    bool any = false;
    for (int i = p->time.neighbours[box]; i < p->time.neighbours[box + 1]; i++) {
        const int other = p->time.neighbour[i];
        if (p->offset[other] >= 0)
            continue;
        any = true;
        if (p->least[other] >= top)
            continue;
        change(p, &p->least[other], top);
        for (int s = p->time.first[other]; s < p->time.end[other]; s++)
            p->sections[s].touched = true;
    }
    return any;
}

/* floor = the smallest `least` of the section's open boxes, for the sections that were touched. */
static void raise_floors(struct packer *p, const struct part *part)
{
    for (int s = part->section; s < part->sections_end; s++) {
        struct section *section = &p->sections[s];
        if (!section->touched)
            continue;
        section->touched = false;
        int64_t lowest = INT64_MAX;
        for (int i = p->time.members[s]; i < p->time.members[s + 1]; i++) {
            const int box = p->time.member[i];
            if (p->offset[box] < 0 && p->least[box] < lowest)
                lowest = p->least[box];
        }
        if (lowest < INT64_MAX && lowest > section->floor)
            change(p, &section->floor, lowest);
    }
}

/* Places the box at least[box]. Gives whether open boxes live together with it. */
static bool put(struct packer *p, const struct part *part, int box)
{
    const int64_t size = p->boxes[box].size, top = p->least[box] + size;
    change(p, &p->offset[box], p->least[box]);
    for (int s = p->time.first[box]; s < p->time.end[box]; s++) {
        struct section *section = &p->sections[s];
        change(p, &section->floor, top);
        change(p, &section->total, section->total - size);
        if (s > p->time.first[box])
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

static int64_t largest_total(const struct packer *p, int box)
{
    int64_t largest = 0;
    for (int s = p->time.first[box]; s < p->time.end[box]; s++)
        largest = p->sections[s].total > largest ? p->sections[s].total : largest;
    return largest;
}

/* Ranks the boxes of a part by their present measures. */
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

/* --- the search: bounds of a part --- */

/* A section of the part that no open box shares with the section before; 0: there is none. */
static int clean_cut(const struct packer *p, const struct part *part)
{
    for (int s = part->section + 1; s < part->sections_end; s++)
        if (p->sections[s].spans == 0)
            return s;
    return 0;
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

/* The smallest least + size of the part's boxes. The box placed next lies below it: else the box
 * with this top would fit under it. */
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

/* Index in `open` of the box that comes next after (offset, rank); -1: there is none. */
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

/* --- the search: one part after another --- */

static void push(struct packer *p, const struct part *part)
{
    struct frame *f = &p->frames[p->depth++];
    f->state = NEW;
    f->part = *part;
}

/* Notes the outcome of the part on top of the stack; true: its frame is done. */
static bool solved(struct packer *p, enum qn_packing found)
{
    p->found = found;
    return true;
}

static bool halve(struct packer *p, struct frame *f, int cut)
{
    struct part left = f->part;
    int middle = left.from;
    f->rest = f->part;
    for (int i = left.from; i < left.to; i++)
        if (p->time.first[p->open[i]] < cut) {
            const int box = p->open[i];
            p->open[i] = p->open[middle];
            p->open[middle++] = box;
        }
    left.to = f->rest.from = middle;
    left.sections_end = f->rest.section = cut;
    left.rank = f->rest.rank = -1;
    f->state = HALVED;
    rank(p, &left);
    push(p, &left);
    return false;
}

static bool second_half(struct packer *p, struct frame *f)
{
    rank(p, &f->rest);
    f->part = f->rest;
    f->state = NEW;
    return false;
}

static bool try_next(struct packer *p, struct frame *f)
{
    const int i = next_candidate(p, &f->part, f->rest.offset, f->rest.rank);
    if (i < 0)
        return solved(p, QN_PACK_IMPOSSIBLE);
    const int box = p->open[i];
    f->before = p->n_changes;
    f->rest.offset = p->least[box];
    f->rest.rank = p->rank[box];
    if (f->rest.offset >= f->limit)
        return solved(p, QN_PACK_IMPOSSIBLE);
    p->open[i] = p->open[f->rest.to];
    p->open[f->rest.to] = box;
    f->any_above = put(p, &f->part, box);
    push(p, &f->rest);
    return false;
}

static bool begin(struct packer *p, struct frame *f)
{
    if (f->part.from == f->part.to)
        return solved(p, QN_PACKED);
    if (p->no_memory)
        return solved(p, QN_PACK_NO_MEMORY);
    if (++p->nodes > p->most_nodes)
        return solved(p, QN_PACK_GAVE_UP);
    const int cut = clean_cut(p, &f->part);
    if (cut)
        return halve(p, f, cut);
    if (!has_room(p, &f->part))
        return solved(p, QN_PACK_IMPOSSIBLE);
    f->state = TRYING;
    f->limit = lowest_top(p, &f->part);
    f->rest = f->part;
    f->rest.to--;
    return try_next(p, f);
}

/* Goes on with a frame after the frame above it was solved, with p->found. True: it is done. */
static bool go_on(struct packer *p, struct frame *f)
{
    if (f->state == HALVED)
        return p->found != QN_PACKED || second_half(p, f);
    if (p->found != QN_PACK_IMPOSSIBLE)
        return true;
    undo(p, f->before);
    return !f->any_above || try_next(p, f);
}

static enum qn_packing solve(struct packer *p, const struct part *all)
{
    p->depth = 0;
    push(p, all);
    while (p->depth) {
        struct frame *f = &p->frames[p->depth - 1];
        if (f->state == NEW ? begin(p, f) : go_on(p, f))
            p->depth--;
    }
    return p->found;
}

/* --- one search after another --- */

/* Tries the orders of preference in turn, and all again with twice the nodes. */
static enum qn_packing search(struct packer *p, int64_t nodes)
{
    static const enum measure orders[][MEASURES] = {
        {WIDTH, AREA, TOTAL}, {TOTAL, AREA, WIDTH}, {TOTAL, WIDTH, AREA}};
    enum { ORDERS = sizeof orders / sizeof *orders };
    for (int64_t most = 2 * p->time.count + 1; nodes > 0; most *= 2)
        for (int i = 0; i < ORDERS && nodes > 0; i++) {
            set_bottom(p);
            const struct part all = {0, p->n_open, 0, p->time.n_sections, 0, -1};
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
    struct packer p = {.boxes = boxes, .height = height};
    if (!prepare(&p, count, arena))
        return QN_PACK_NO_MEMORY;
    const enum qn_packing done = search(&p, nodes);
    for (int i = 0; done == QN_PACKED && i < count; i++)
        boxes[i].offset = p.offset[i];
    free(p.changes);
    return p.no_memory ? QN_PACK_NO_MEMORY : done;
}

int64_t qn_pack_bound(const qn_lifetime *boxes, int count, struct qn_arena *arena)
{
    struct qn_overlap time;
    int64_t *totals = qn_arena_new(arena, int64_t, (size_t)count + 1), bound = 0;
    if (!totals || !qn_overlap_sections(&time, boxes, count, arena))
        return -1;
    for (int i = 0; i < count; i++)
        for (int s = time.first[i]; s < time.end[i]; s++)
            totals[s] += boxes[i].size;
    for (int s = 0; s < time.n_sections; s++)
        bound = totals[s] > bound ? totals[s] : bound;
    return bound;
}
