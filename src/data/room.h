/* SPDX-License-Identifier: MIT
 *
 * Memory that grows to what is needed and stays.
 * Thread-safety: Unsafe.
 */
#ifndef QN_DATA_ROOM_H
#define QN_DATA_ROOM_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is none. */
struct qn_room {
    void *bytes;
    size_t size;
};

/* At least `size` bytes, whose contents are lost when they move; NULL: out of memory. */
void *qn_room_take(struct qn_room *room, int64_t size);
void qn_room_free(struct qn_room *room);

#endif
