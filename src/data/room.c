/* SPDX-License-Identifier: MIT */
#include "data/room.h"

#include <stdlib.h>

void *qn_room_take(struct qn_room *room, int64_t size)
{
    if (size < 0 || (uint64_t)size > SIZE_MAX)
        return NULL;
    if (room->bytes && room->size >= (size_t)size)
        return room->bytes;
    qn_room_free(room);
    room->bytes = malloc((size_t)size);
    room->size = room->bytes ? (size_t)size : 0;
    return room->bytes;
}

void qn_room_free(struct qn_room *room)
{
    free(room->bytes);
    *room = (struct qn_room){0};
}
