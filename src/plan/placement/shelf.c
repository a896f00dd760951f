/* SPDX-License-Identifier: MIT */
#include "plan/placement/shelf.h"

#include <string.h>

int64_t qn_shelf_find(struct qn_shelf *shelf, const struct qn_storage *storage)
{
    const int start = storage->start, end = storage->end;
    int64_t top = 0, best = -1, best_gap = INT64_MAX;
    for (int i = 0; i < shelf->count; i++) {
        const struct qn_resident *r = &shelf->items[i];
        if (r->start > end || start > r->end)
            continue;
        const int64_t gap = r->offset - top;
        if (gap >= storage->bytes && gap < best_gap) {
            best_gap = gap;
            best = top;
        }
        top = r->top > top ? r->top : top;
    }
    shelf->looks += shelf->count;
    return best >= 0 ? best : top;
}

static bool make_room(struct qn_shelf *shelf, struct qn_arena *arena)
{
    if (shelf->count < shelf->room)
        return true;
    const int room = shelf->room ? 2 * shelf->room : 64;
    struct qn_resident *items = qn_arena_new(arena, struct qn_resident, (size_t)room);
    if (!items)
        return false;
    if (shelf->count)
        memcpy(items, shelf->items, (size_t)shelf->count * sizeof *items);
    shelf->items = items;
    shelf->room = room;
    return true;
}

bool qn_shelf_put(struct qn_shelf *shelf, const struct qn_storage *storage, struct qn_arena *arena)
{
    if (!make_room(shelf, arena))
        return false;
    int at = 0, end = shelf->count;
    while (at < end) {
        const int middle = at + (end - at) / 2;
        if (shelf->items[middle].offset <= storage->offset)
            at = middle + 1;
        else
            end = middle;
    }
    struct qn_resident *place = &shelf->items[at];
    memmove(place + 1, place, (size_t)(shelf->count++ - at) * sizeof *place);
    *place = (struct qn_resident){storage->offset, storage->offset + storage->bytes, storage->start,
                                  storage->end};
    return true;
}
