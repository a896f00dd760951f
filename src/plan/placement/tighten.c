/* SPDX-License-Identifier: MIT
 *
 * Tries to fit each pool into a smaller height: first by other orders of the greedy placement, in
 * which a storage that did not fit comes first the next time (Joslin and Clements, "Squeaky wheel
 * optimization", 1999); then by the exact search of pack.c, if the pool has few enough storages.
 */
#include "plan/placement/tighten.h"

#include "base/arena.h"
#include "plan/placement/pack.h"
#include "plan/placement/shelf.h"

#include <string.h>

/* Limits. For one height: TRIES orders from each greedy order, LOOKS items looked at in all of
 * them; storages times nodes <= WORK in the exact search, whose nodes look at all storages.
 * HEIGHTS: heights tried, bound + gap * h / HEIGHTS for h = 0, 1, .. */
enum { TRIES = 100, LOOKS = 40000000, WORK = 1000000, HEIGHTS = 4 };

/* One pool. */
struct pool {
    struct qn_storage *storages; /* copies of the pool's storages */
    int *index;                  /* by copy: number of the storage copied */
    int count;
    int *order;
    qn_lifetime *boxes;
    struct qn_shelf shelf;
    struct qn_arena arena;
};

static bool open_pool(struct pool *p, const struct qn_storage *storages, int count, int number)
{
    const size_t n = (size_t)count + 1;
    p->storages = qn_arena_new(&p->arena, struct qn_storage, n);
    p->index = qn_arena_new(&p->arena, int, n);
    p->order = qn_arena_new(&p->arena, int, n);
    p->boxes = qn_arena_new(&p->arena, qn_lifetime, n);
    if (!p->storages || !p->index || !p->order || !p->boxes)
        return false;
    for (int i = 0; i < count; i++)
        if (storages[i].bytes > 0 && storages[i].pool == number) {
            p->index[p->count] = i;
            p->boxes[p->count] = qn_storage_box(&storages[i]);
            p->storages[p->count++] = storages[i];
        }
    return true;
}

/* --- other orders --- */

/* Places storages in p->order up to the first that does not fit below `height`; gives how many were
 * placed, -1 when out of memory. */
static int fill(struct pool *p, int64_t height)
{
    p->shelf.count = 0;
    for (int i = 0; i < p->count; i++) {
        struct qn_storage *storage = &p->storages[p->order[i]];
        storage->offset = qn_shelf_find(&p->shelf, storage);
        if (storage->offset + storage->bytes > height)
            return i;
        if (!qn_shelf_put(&p->shelf, storage, &p->arena))
            return -1;
    }
    return p->count;
}

static void put_first(struct pool *p, int at)
{
    const int squeaks = p->order[at];
    memmove(&p->order[1], &p->order[0], (size_t)at * sizeof *p->order);
    p->order[0] = squeaks;
}

static enum qn_packing reorder(struct pool *p, int64_t height)
{
    p->shelf.looks = 0;
    for (int which = 0; which < QN_ORDERS; which++) {
        if (!qn_order_storages(p->storages, p->count, which, p->order, &p->arena))
            return QN_PACK_NO_MEMORY;
        for (int i = 0; i < TRIES && p->shelf.looks < LOOKS; i++) {
            const int filled = fill(p, height);
            if (filled < 0)
                return QN_PACK_NO_MEMORY;
            if (filled == p->count)
                return QN_PACKED;
            put_first(p, filled);
        }
    }
    return QN_PACK_GAVE_UP;
}

/* --- exactly --- */

static enum qn_packing pack(struct pool *p, int64_t height)
{
    const int64_t nodes = WORK / p->count + 1;
    if (nodes < p->count)
        return QN_PACK_GAVE_UP;
    const enum qn_packing done = qn_pack(p->boxes, p->count, height, nodes, &p->arena);
    for (int i = 0; done == QN_PACKED && i < p->count; i++)
        p->storages[i].offset = p->boxes[i].offset;
    return done;
}

/* --- each pool --- */

static enum qn_packing fit(struct pool *p, int64_t height)
{
    const enum qn_packing done = reorder(p, height);
    return done == QN_PACK_GAVE_UP ? pack(p, height) : done;
}

/* False when out of memory. */
static bool lower(struct pool *p, struct qn_storage *storages, int64_t *bytes)
{
    const int64_t bound = qn_pack_bound(p->boxes, p->count, &p->arena), gap = *bytes - bound;
    const int64_t unit = 512;
    enum qn_packing done = bound < 0 ? QN_PACK_NO_MEMORY : QN_PACK_GAVE_UP;
    for (int h = 0; gap > 0 && done != QN_PACKED && done != QN_PACK_NO_MEMORY && h < HEIGHTS; h++) {
        const int64_t height = bound + gap * h / HEIGHTS / unit * unit;
        done = fit(p, height);
        for (int i = 0; done == QN_PACKED && i < p->count; i++)
            storages[p->index[i]].offset = p->storages[i].offset;
        if (done == QN_PACKED)
            *bytes = height;
    }
    return done != QN_PACK_NO_MEMORY;
}

bool qn_tighten(struct qn_storage *storages, int count, struct qn_placement *placement)
{
    bool done = true;
    placement->total = 0;
    for (int number = 0; done && number < placement->n_pools; number++) {
        struct pool p = {.count = 0};
        done = open_pool(&p, storages, count, number) &&
               lower(&p, storages, &placement->pool_bytes[number]);
        placement->total += placement->pool_bytes[number];
        qn_arena_free(&p.arena);
    }
    return done;
}
