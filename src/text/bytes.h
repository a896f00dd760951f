/* SPDX-License-Identifier: MIT
 *
 * Growing bytes, of any value. A zeroed struct is empty. Thread-safety: Unsafe.
 */
#ifndef QN_TEXT_BYTES_H
#define QN_TEXT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qn_bytes {
    char *at;
    size_t count, room;
};

/* False: out of memory. */
bool qn_bytes_put(struct qn_bytes *bytes, const char *from, size_t size);
/* The UTF-8 of a code point. */
bool qn_bytes_put_point(struct qn_bytes *bytes, uint32_t point);
void qn_bytes_free(struct qn_bytes *bytes);

/* The next character of a text of `size` bytes, at least 1: its code point and the bytes it takes;
 * where no well-formed UTF-8 stands, *point is QN_NO_POINT and the result 1. */
#define QN_NO_POINT UINT32_MAX
size_t qn_point_next(const char *text, size_t size, uint32_t *point);

#endif
