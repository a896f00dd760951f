/* SPDX-License-Identifier: MIT */
#include "text/bytes.h"
#include "base/escape.h"
#include "base/room.h"

#include <string.h>

bool qn_bytes_put(struct qn_bytes *bytes, const char *from, size_t size)
{
    if (!QN_ROOM(bytes->at, bytes->room, bytes->count + size))
        return false;
    if (size)
        memcpy(bytes->at + bytes->count, from, size);
    bytes->count += size;
    return true;
}

bool qn_bytes_put_point(struct qn_bytes *bytes, uint32_t point)
{
    char utf8[4];
    const size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i-- > 1; point >>= 6)
        utf8[i] = (char)(0x80 | (point & 0x3f));
    utf8[0] = (char)(lead[size] | point);
    return qn_bytes_put(bytes, utf8, size);
}

void qn_bytes_free(struct qn_bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct qn_bytes){0};
}

size_t qn_point_next(const char *text, size_t size, uint32_t *point)
{
    char end[4] = {0}; /* qn_utf8_bytes stops at a NUL, which stands behind a text that is cut */
    if (size < sizeof end) {
        memcpy(end, text, size);
        text = end;
    }
    const int bytes = qn_utf8_bytes(text, point);
    if (bytes == 0)
        *point = QN_NO_POINT;
    return bytes ? (size_t)bytes : 1;
}
