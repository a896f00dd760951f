/* SPDX-License-Identifier: MIT
 *
 * Placement: offsets for storages whose lifetimes are known. Greedy best fit in several orders, the
 * smallest result wins (greedy by size: Pisarchyk & Lee, "Efficient memory management for deep
 * neural net inference", 2020; several orders, as XLA's heap simulator keeps the best of some).
 * What gaps it leaves are for the exact search of pack.c.
 */
#include "base/log.h"
#include "plan/pack.h"
#include "plan/program.h"

#include <stdlib.h>

struct placer {
    struct qn_storage *storages;
    int *order;
    int lowest[QN_MAX_POOLS]; /* storage of a pool with the lowest offset; -1: the pool is empty */
    int *above;               /* by storage: the next one of its pool, by offset; -1 */
    int64_t capacity;
    struct qn_placement result;
};

/* --- orders: each puts what lives throughout first --- */

struct key {
    int64_t major, minor;
    int index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->major != y->major)
        return x->major > y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor > y->minor ? -1 : 1;
    return x->index - y->index;
}

static int64_t length_of(const struct qn_storage *s)
{
    return s->end - s->start + 1;
}

static struct key by_size(const struct qn_storage *s)
{
    return (struct key){s->bytes, length_of(s), 0};
}

static struct key by_length(const struct qn_storage *s)
{
    return (struct key){length_of(s), s->bytes, 0};
}

static struct key by_area(const struct qn_storage *s)
{
    return (struct key){s->bytes / 512 * length_of(s), s->bytes, 0};
}

static struct key by_start(const struct qn_storage *s)
{
    return (struct key){-s->start, s->bytes, 0};
}

static struct key (*const orders[])(const struct qn_storage *) = {by_size, by_length, by_area,
                                                                  by_start};
enum { N_ORDERS = sizeof orders / sizeof *orders };

static void sort_by(const struct qn_storage *storages, int count, int order, struct key *keys,
                    int *sorted)
{
    for (int i = 0; i < count; i++) {
        keys[i] = orders[order](&storages[i]);
        keys[i].index = i;
    }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    for (int i = 0; i < count; i++)
        sorted[i] = keys[i].index;
}

/* --- one greedy run --- */

static bool together(const struct qn_storage *a, const struct qn_storage *b)
{
    return a->start <= b->end && b->start <= a->end;
}

/* The lowest offset of the smallest gap that holds the storage; the top if there is none. */
static int64_t best_offset(const struct placer *p, int pool, const struct qn_storage *storage)
{
    int64_t top = 0, best = -1, best_gap = INT64_MAX;
    for (int i = p->lowest[pool]; i >= 0; i = p->above[i]) {
        const struct qn_storage *other = &p->storages[i];
        if (!together(storage, other))
            continue;
        int64_t gap = other->offset - top;
        if (gap >= storage->bytes && gap < best_gap) {
            best_gap = gap;
            best = top;
        }
        if (other->offset + other->bytes > top)
            top = other->offset + other->bytes;
    }
    return best >= 0 ? best : top;
}

static void insert(struct placer *p, int pool, int index)
{
    int *link = &p->lowest[pool];
    while (*link >= 0 && p->storages[*link].offset <= p->storages[index].offset)
        link = &p->above[*link];
    p->above[index] = *link;
    *link = index;
}

static bool place_one(struct placer *p, int index)
{
    struct qn_storage *storage = &p->storages[index];
    for (int pool = 0; pool < QN_MAX_POOLS; pool++) {
        int64_t offset = best_offset(p, pool, storage);
        if (offset + storage->bytes > p->capacity)
            continue;
        storage->pool = pool;
        storage->offset = offset;
        insert(p, pool, index);
        if (pool >= p->result.n_pools)
            p->result.n_pools = pool + 1;
        if (offset + storage->bytes > p->result.pool_bytes[pool])
            p->result.pool_bytes[pool] = offset + storage->bytes;
        return true;
    }
    return false;
}

static bool place_all(struct placer *p, int count)
{
    p->result = (struct qn_placement){0};
    for (int pool = 0; pool < QN_MAX_POOLS; pool++)
        p->lowest[pool] = -1;
    for (int i = 0; i < count; i++)
        if (p->storages[p->order[i]].bytes > 0 && !place_one(p, p->order[i]))
            return false;
    for (int pool = 0; pool < p->result.n_pools; pool++)
        p->result.total += p->result.pool_bytes[pool];
    return true;
}

/* --- the exact search, pool by pool --- */

/* Of the search for one height: buffers times nodes, as each node looks at all of them; and of the
 * heights tried: as low as the live bytes first. */
enum { WORK = 1000000, HEIGHTS = 4 };

static qn_lifetime box_of(const struct qn_storage *s)
{
    return (qn_lifetime){s->start, s->end + 1, s->bytes, 0};
}

static int list_pool(const struct qn_storage *storages, int count, int pool, qn_lifetime *boxes,
                     int *index)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (storages[i].bytes > 0 && storages[i].pool == pool) {
            boxes[n] = box_of(&storages[i]);
            index[n++] = i;
        }
    return n;
}

/* False when out of memory. */
static bool tighten_pool(struct qn_storage *storages, int count, int pool, int64_t *bytes,
                         qn_lifetime *boxes, int *index)
{
    struct qn_arena arena = {0};
    const int n = list_pool(storages, count, pool, boxes, index);
    const int64_t bound = qn_pack_bound(boxes, n, &arena), gap = *bytes - bound, unit = 512;
    enum qn_packing done = bound < 0 ? QN_PACK_NO_MEMORY : QN_PACK_GAVE_UP;
    for (int h = 0; gap > 0 && done != QN_PACKED && done != QN_PACK_NO_MEMORY && h < HEIGHTS; h++) {
        const int64_t height = bound + gap * h / HEIGHTS / unit * unit;
        done = qn_pack(boxes, n, height, WORK / n + 1, &arena);
        for (int i = 0; done == QN_PACKED && i < n; i++)
            storages[index[i]].offset = boxes[i].offset;
        if (done == QN_PACKED)
            *bytes = height;
    }
    qn_arena_free(&arena);
    return done != QN_PACK_NO_MEMORY;
}

static bool tighten(struct qn_storage *storages, int count, struct qn_arena *arena,
                    struct qn_placement *placement)
{
    qn_lifetime *boxes = qn_arena_new(arena, qn_lifetime, (size_t)count + 1);
    int *index = qn_arena_new(arena, int, (size_t)count + 1);
    if (!boxes || !index)
        return false;
    placement->total = 0;
    for (int pool = 0; pool < placement->n_pools; pool++) {
        if (!tighten_pool(storages, count, pool, &placement->pool_bytes[pool], boxes, index))
            return false;
        placement->total += placement->pool_bytes[pool];
    }
    return true;
}

/* The most bytes that are alive together, which no placement can go below; -1: out of memory. */
static int64_t live_bytes(const struct qn_storage *storages, int count, struct qn_arena *arena)
{
    qn_lifetime *boxes = qn_arena_new(arena, qn_lifetime, (size_t)count + 1);
    for (int i = 0; boxes && i < count; i++)
        boxes[i] = box_of(&storages[i]);
    return boxes ? qn_pack_bound(boxes, count, arena) : -1;
}

/* *live: the bytes that it cannot go below. */
static qn_status place_greedily(struct qn_storage *storages, int count, int64_t capacity,
                                struct qn_arena *arena, struct qn_placement *placement,
                                int64_t *live)
{
    struct placer p = {.storages = storages, .capacity = capacity};
    struct key *keys = qn_arena_new(arena, struct key, (size_t)count + 1);
    p.order = qn_arena_new(arena, int, (size_t)count + 1);
    p.above = qn_arena_new(arena, int, (size_t)count + 1);
    *live = live_bytes(storages, count, arena);
    if (!keys || !p.order || !p.above || *live < 0)
        return QN_ERR_MEMORY;
    int best = -1;
    *placement = (struct qn_placement){.total = INT64_MAX};
    for (int order = 0; order < N_ORDERS && placement->total > *live; order++) {
        sort_by(storages, count, order, keys, p.order);
        if (place_all(&p, count) && p.result.total < placement->total) {
            best = order;
            *placement = p.result;
        }
    }
    if (best < 0)
        return QN_ERR_BUDGET;
    sort_by(storages, count, best, keys, p.order);
    place_all(&p, count);
    return QN_OK;
}

qn_status qn_place_greedily(struct qn_storage *storages, int count, int64_t capacity,
                            struct qn_arena *arena, struct qn_placement *placement)
{
    int64_t live;
    return place_greedily(storages, count, capacity, arena, placement, &live);
}

qn_status qn_place_storages(struct qn_storage *storages, int count, int64_t capacity,
                            struct qn_arena *arena, struct qn_placement *placement)
{
    int64_t live;
    QN_TRY(place_greedily(storages, count, capacity, arena, placement, &live));
    if (placement->total == live)
        return QN_OK;
    return tighten(storages, count, arena, placement) ? QN_OK : QN_ERR_MEMORY;
}
