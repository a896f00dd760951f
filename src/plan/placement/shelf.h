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
    int64_t looks; /* items looked at so far, a measure of the work */
};

/* The offset of the smallest gap that holds the storage, of equal gaps the lowest; without such a
 * gap the top of the items that live at its time. */
int64_t qn_shelf_find(struct qn_shelf *shelf, const struct qn_storage *storage);

/* Puts the storage at storage->offset. Allocated from `arena`; false when out of memory. */
bool qn_shelf_put(struct qn_shelf *shelf, const struct qn_storage *storage, struct qn_arena *arena);

/* --- orders of filling (order.c) --- */

enum { QN_ORDERS = 4 };

/* Fills `order` with the `count` numbers of the storages, sorted downwards by size (`which` 0), by
 * length of life (1) or by their product (2), or by start (3). False when out of memory. */
bool qn_order_storages(const struct qn_storage *storages, int count, int which, int *order,
                       struct qn_arena *arena);

#endif
