/* SPDX-License-Identifier: MIT */
#include "text/strings.h"
#include "base/room.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const char *qn_strings_at(const struct qn_strings *strings, int64_t number, size_t *size)
{
    const size_t begin = strings->begin[number];
    *size = strings->begin[number + 1] - begin - 1;
    return strings->bytes + begin;
}

/* The bucket of a string, or the free one where it belongs. */
static size_t look(const struct qn_strings *strings, const char *bytes, size_t size)
{
    const size_t mask = strings->buckets - 1;
    size_t at = (size_t)qn_hash(QN_HASH_START, bytes, size) & mask;
    for (; strings->bucket[at]; at = (at + 1) & mask) {
        size_t other;
        const char *there = qn_strings_at(strings, strings->bucket[at] - 1, &other);
        if (other == size && memcmp(there, bytes, size) == 0)
            break;
    }
    return at;
}

/* Keeps at least half of the buckets free. */
static bool widen(struct qn_strings *strings)
{
    if (strings->count * 2 < strings->buckets)
        return true;
    const size_t buckets = strings->buckets ? strings->buckets * 2 : 64;
    uint32_t *bucket = calloc(buckets, sizeof *bucket);
    if (!bucket)
        return false;
    free(strings->bucket);
    strings->bucket = bucket;
    strings->buckets = buckets;
    for (size_t i = 0; i < strings->count; i++) {
        size_t size;
        const char *bytes = qn_strings_at(strings, (int64_t)i, &size);
        bucket[look(strings, bytes, size)] = (uint32_t)i + 1;
    }
    return true;
}

int64_t qn_strings_add(struct qn_strings *strings, const char *bytes, size_t size)
{
    const size_t length = strings->count ? strings->begin[strings->count] : 0;
    if (strings->count >= INT32_MAX || !widen(strings))
        return -1;
    const size_t at = look(strings, bytes, size);
    if (strings->bucket[at])
        return strings->bucket[at] - 1;
    if (!QN_ROOM(strings->bytes, strings->room_bytes, length + size + 1) ||
        !QN_ROOM(strings->begin, strings->room, strings->count + 2))
        return -1;
    memcpy(strings->bytes + length, bytes, size);
    strings->bytes[length + size] = 0;
    strings->begin[strings->count] = length;
    strings->begin[strings->count + 1] = length + size + 1;
    strings->bucket[at] = (uint32_t)++strings->count;
    return (int64_t)strings->count - 1;
}

int64_t qn_strings_find(const struct qn_strings *strings, const char *bytes, size_t size)
{
    return strings->count ? (int64_t)strings->bucket[look(strings, bytes, size)] - 1 : -1;
}

void qn_strings_free(struct qn_strings *strings)
{
    free(strings->bytes);
    free(strings->begin);
    free(strings->bucket);
    *strings = (struct qn_strings){0};
}
