/* SPDX-License-Identifier: MIT
 *
 * Placement: offsets for storages whose lifetimes are known. Greedy best fit in several orders, the
 * smallest result wins (greedy by size: Pisarchyk & Lee, "Efficient memory management for deep
 * neural net inference", 2020; several orders, as XLA's heap simulator keeps the best of some).
 * The gaps that it leaves are reduced by tighten.c.
 */
#include "plan/placement/place.h"

#include "base/log.h"
#include "plan/placement/pack.h"
#include "plan/placement/shelf.h"
#include "plan/placement/tighten.h"

struct placer {
    struct qn_storage *storages;
    int *order;
    struct qn_shelf shelves[QN_MAX_POOLS];
    int64_t capacity, most; /* bytes: of a pool at most; of all pools, where a run is given up */
    struct qn_arena *arena;
    struct qn_placement result;
};

/* --- one greedy run --- */

/* Places a storage in the first pool that has room. */
static qn_status place_one(struct placer *p, struct qn_storage *storage)
{
    for (int pool = 0; pool < QN_MAX_POOLS; pool++) {
        const int64_t offset = qn_shelf_find(&p->shelves[pool], storage);
        const int64_t top = offset + storage->bytes;
        if (top > p->capacity)
            continue;
        storage->pool = pool;
        storage->offset = offset;
        if (pool >= p->result.n_pools)
            p->result.n_pools = pool + 1;
        if (top > p->result.pool_bytes[pool]) {
            p->result.total += top - p->result.pool_bytes[pool];
            p->result.pool_bytes[pool] = top;
        }
        return qn_shelf_put(&p->shelves[pool], storage, p->arena) ? QN_OK : QN_ERR_MEMORY;
    }
    return QN_ERR_BUDGET;
}

/* QN_ERR_BUDGET: needs more than QN_MAX_POOLS pools, or `most` bytes or more. */
static qn_status place_all(struct placer *p, int count)
{
    p->result = (struct qn_placement){0};
    for (int pool = 0; pool < QN_MAX_POOLS; pool++)
        p->shelves[pool].count = 0;
    for (int i = 0; i < count; i++) {
        if (p->storages[p->order[i]].bytes > 0)
            QN_TRY(place_one(p, &p->storages[p->order[i]]));
        if (p->result.total >= p->most)
            return QN_ERR_BUDGET;
    }
    return QN_OK;
}

/* --- several greedy runs --- */

/* The most bytes that are alive together, a lower bound of every placement; -1: out of memory. */
static int64_t live_bytes(const struct qn_storage *storages, int count, struct qn_arena *arena)
{
    qn_lifetime *boxes = qn_arena_new(arena, qn_lifetime, (size_t)count + 1);
    for (int i = 0; boxes && i < count; i++)
        boxes[i] = qn_storage_box(&storages[i]);
    return boxes ? qn_pack_bound(boxes, count, arena) : -1;
}

/* By storage: where it lies. */
struct places {
    int *pool;
    int64_t *offset;
};

static void note(const struct qn_storage *storages, int count, struct places *places)
{
    for (int i = 0; i < count; i++) {
        places->pool[i] = storages[i].pool;
        places->offset[i] = storages[i].offset;
    }
}

static void go_back(struct qn_storage *storages, int count, const struct places *places)
{
    for (int i = 0; i < count; i++) {
        storages[i].pool = places->pool[i];
        storages[i].offset = places->offset[i];
    }
}

/* The smallest placement of all orders; stops at an order that needs only `live` bytes. */
static qn_status place_greedily(struct placer *p, int count, int64_t live,
                                struct qn_placement *placement)
{
    struct places best = {qn_arena_new(p->arena, int, (size_t)count + 1),
                          qn_arena_new(p->arena, int64_t, (size_t)count + 1)};
    p->order = qn_arena_new(p->arena, int, (size_t)count + 1);
    if (!best.pool || !best.offset || !p->order)
        return QN_ERR_MEMORY;
    p->most = placement->total = INT64_MAX;
    for (int order = 0; order < QN_ORDERS && placement->total > live; order++) {
        if (!qn_order_storages(p->storages, count, order, p->order, p->arena))
            return QN_ERR_MEMORY;
        const qn_status status = place_all(p, count);
        if (status == QN_ERR_MEMORY)
            return status;
        if (status == QN_ERR_BUDGET)
            continue;
        *placement = p->result;
        p->most = p->result.total;
        note(p->storages, count, &best);
    }
    if (p->most == INT64_MAX)
        return QN_ERR_BUDGET;
    go_back(p->storages, count, &best);
    return QN_OK;
}

qn_status qn_place_storages(struct qn_storage *storages, int count, int64_t capacity,
                            struct qn_arena *arena, struct qn_placement *placement)
{
    struct placer p = {.storages = storages, .capacity = capacity, .arena = arena};
    const int64_t live = live_bytes(storages, count, arena);
    if (live < 0)
        return QN_ERR_MEMORY;
    QN_TRY(place_greedily(&p, count, live, placement));
    return placement->total == live || qn_tighten(storages, count, placement) ? QN_OK
                                                                              : QN_ERR_MEMORY;
}

/* --- programs --- */

/* A later phase with the same step list; NULL: none. During the later phase the values of the cycle
 * are alive wherever they are during `phase`, so that its offsets are free in `phase` too. */
static const struct qn_phase_run *twin_of(const struct qn_program *program, int phase)
{
    const struct qn_phase_run *one = &program->phases[phase];
    for (int p = phase + 1; p < program->n_phases; p++) {
        const struct qn_phase_run *other = &program->phases[p];
        bool same = other->problem == one->problem && other->n_steps == one->n_steps;
        for (int i = 0; same && i < one->n_steps; i++)
            same = one->steps[i].task == other->steps[i].task;
        if (same)
            return other;
    }
    return NULL;
}

/* By storage: its twin, the storage of a later phase with the same step list, whose pool and offset
 * it gets; itself where there is no such phase. */
static int *find_twins(const struct qn_program *program, struct qn_arena *arena)
{
    int *twin = qn_arena_new(arena, int, (size_t)program->n_storages + 1);
    for (int i = 0; twin && i < program->n_storages; i++)
        twin[i] = i;
    for (int p = 0; twin && p < program->n_phases; p++) {
        const struct qn_phase_run *phase = &program->phases[p], *other = twin_of(program, p);
        for (int i = 0; other && i < phase->n_storages; i++)
            twin[phase->first_storage + i] = other->first_storage + i;
    }
    return twin;
}

/* Places one storage of each pair of twins; the other one gets the same pool and offset. */
static qn_status place_twins(struct qn_program *program, int64_t capacity, struct qn_arena *arena,
                             struct qn_placement *placement)
{
    struct qn_storage *storages = program->storages;
    const int all = program->n_storages;
    const int *twin = find_twins(program, arena);
    struct qn_storage *single = qn_arena_new(arena, struct qn_storage, (size_t)all + 1);
    int count = 0;
    if (!twin || !single)
        return QN_ERR_MEMORY;
    for (int i = 0; i < all; i++)
        if (twin[i] == i)
            single[count++] = storages[i];
    QN_TRY(qn_place_storages(single, count, capacity, arena, placement));
    for (int i = all - 1; i >= 0; i--)
        storages[i] = twin[i] == i ? single[--count] : storages[i];
    for (int i = all - 1; i >= 0; i--) {
        storages[i].pool = storages[twin[i]].pool;
        storages[i].offset = storages[twin[i]].offset;
    }
    return QN_OK;
}

/* Places all storages, twins one by one, and keeps that if its pools are smaller: with several
 * pools the sizes of the greedy result vary. */
static qn_status place_apart(struct qn_program *program, int64_t capacity, struct qn_arena *arena,
                             struct qn_placement *placement)
{
    const size_t bytes = (size_t)program->n_storages * sizeof *program->storages;
    struct qn_storage *storages = qn_arena_copy(arena, program->storages, bytes);
    struct qn_placement apart;
    if (!storages)
        return QN_ERR_MEMORY;
    const qn_status status =
        qn_place_storages(storages, program->n_storages, capacity, arena, &apart);
    if (status == QN_OK && apart.total < placement->total) {
        program->storages = storages;
        *placement = apart;
    }
    return status == QN_ERR_BUDGET ? QN_OK : status;
}

qn_status qn_program_place(struct qn_program *program, int64_t capacity, struct qn_arena *arena,
                           struct qn_placement *placement)
{
    QN_TRY(place_twins(program, capacity, arena, placement));
    if (placement->n_pools == 1 || placement->total == program->live_peak)
        return QN_OK;
    return place_apart(program, capacity, arena, placement);
}
