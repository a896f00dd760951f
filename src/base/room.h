/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow to twice their room.
 */
#ifndef QN_BASE_ROOM_H
#define QN_BASE_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Grows `*memory`, of `*room` elements of `size` bytes, to at least `needed`. False: out of memory,
 * and all is as before. */
static inline bool qn_room(void **memory, size_t *room, size_t needed, size_t size)
{
    if (needed <= *room)
        return true;
    if (needed > SIZE_MAX / 2 / size)
        return false;
    const size_t more = needed < 8 ? 16 : needed * 2;
    void *larger = realloc(*memory, more * size);
    if (!larger)
        return false;
    *memory = larger;
    *room = more;
    return true;
}

/* QN_ROOM(array, room, needed) for an array of any type and its `size_t room`. */
#define QN_ROOM(array, room, needed) qn_room((void **)&(array), &(room), (needed), sizeof *(array))

#endif
