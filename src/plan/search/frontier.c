/* SPDX-License-Identifier: MIT */
#include "plan/search/frontier.h"

#include <string.h>

static bool grow(struct qn_frontier *f, struct qn_arena *arena)
{
    const int room = f->room ? 2 * f->room : 16;
    struct qn_point *points = qn_arena_alloc(arena, (size_t)room, sizeof *points);
    if (!points)
        return false;
    if (f->count)
        memcpy(points, f->points, (size_t)f->count * sizeof *points);
    f->points = points;
    f->room = room;
    return true;
}

int qn_frontier_find(const struct qn_frontier *f, int64_t budget)
{
    int found = f->count - 1;
    while (found >= 0 && f->points[found].bytes > budget)
        found--;
    return found;
}

bool qn_frontier_beats(const struct qn_frontier *f, int64_t bytes, double seconds)
{
    const int below = qn_frontier_find(f, bytes);
    return below >= 0 && f->points[below].seconds <= seconds;
}

bool qn_frontier_add(struct qn_frontier *f, const struct qn_point *point, struct qn_arena *arena)
{
    const int below = qn_frontier_find(f, point->bytes);
    if (qn_frontier_beats(f, point->bytes, point->seconds))
        return true;
    if (f->count == f->room && !grow(f, arena))
        return false;
    /* `point` beats the one of the same bytes and those of more bytes that are not faster. */
    int from = below >= 0 && f->points[below].bytes == point->bytes ? below : below + 1, to = from;
    while (to < f->count && f->points[to].seconds >= point->seconds)
        to++;
    memmove(&f->points[from + 1], &f->points[to], (size_t)(f->count - to) * sizeof *point);
    f->points[from] = *point;
    f->count += 1 - (to - from);
    return true;
}
