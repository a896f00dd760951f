/* SPDX-License-Identifier: MIT
 *
 * A set of byte strings, numbered from 0 in the order in which they were added. A zeroed struct is
 * empty. Thread-safety: Unsafe for adding, Safe for reading.
 */
#ifndef QN_TEXT_STRINGS_H
#define QN_TEXT_STRINGS_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

struct qn_strings {
    char *bytes;      /* all strings, each with a NUL behind it */
    size_t *begin;    /* (count + 1): where string i begins */
    uint32_t *bucket; /* (buckets): 1 + number of a string, 0: free; open addressing */
    size_t count, room_bytes, room, buckets;
};

/* The number of a string, which is added if it is not there; -1: out of memory. */
int64_t qn_strings_add(struct qn_strings *strings, const char *bytes, size_t size);
/* -1: it is not there. */
int64_t qn_strings_find(const struct qn_strings *strings, const char *bytes, size_t size);
/* The bytes of a string, with a NUL behind them; valid until the next one is added. */
const char *qn_strings_at(const struct qn_strings *strings, int64_t number, size_t *size);
void qn_strings_free(struct qn_strings *strings);

#endif
