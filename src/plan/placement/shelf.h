/* SPDX-License-Identifier: MIT
 *
 * A pool that is filled one buffer after another, each where it fits best.
 */
#ifndef QN_PLACEMENT_SHELF_H
#define QN_PLACEMENT_SHELF_H

#include "plan/program/program.h"

struct qn_shelf {
    struct qn_resident {
        int64_t offset, top;
        int start, end;
    } * items; /* by offset */
    int count, room;
    int64_t looks; /* at items, so far: what filling costs */
};

/* The lowest offset of the smallest gap that holds the storage; the top if there is none. */
int64_t qn_shelf_find(struct qn_shelf *shelf, const struct qn_storage *storage);

/* Puts it at storage->offset. Allocated from `arena`; false when out of memory. */
bool qn_shelf_put(struct qn_shelf *shelf, const struct qn_storage *storage, struct qn_arena *arena);

/* --- orders of filling (order.c) --- */

enum { QN_ORDERS = 4 };

/* Numbers of the storages by size, by length of life, by both or by its beginning. `order` has
 * room for `count`. False when out of memory. */
bool qn_order_storages(const struct qn_storage *storages, int count, int which, int *order,
                       struct qn_arena *arena);

#endif
