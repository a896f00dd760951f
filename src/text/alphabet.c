/* SPDX-License-Identifier: MIT */
#include "text/alphabet.h"

/* The bytes that are not their own characters, and where their first one stands behind U+0100. */
static const struct {
    uint32_t first, last, at;
} hidden[] = {{0, 32, 0}, {127, 160, 33}, {173, 173, 67}};
enum { N_HIDDEN = sizeof hidden / sizeof *hidden, FIRST_POINT = 0x100 };

uint32_t qn_alphabet_point(uint8_t byte)
{
    for (int i = 0; i < N_HIDDEN; i++)
        if (byte >= hidden[i].first && byte <= hidden[i].last)
            return FIRST_POINT + hidden[i].at + byte - hidden[i].first;
    return byte;
}

/* The byte that a code point stands for; -1: none. */
static int byte_of(uint32_t point)
{
    for (int i = 0; i < N_HIDDEN; i++) {
        const uint32_t first = FIRST_POINT + hidden[i].at;
        if (point >= first && point - first <= hidden[i].last - hidden[i].first)
            return (int)(point - first + hidden[i].first);
    }
    return point < FIRST_POINT && qn_alphabet_point((uint8_t)point) == point ? (int)point : -1;
}

bool qn_alphabet_write(struct qn_bytes *to, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!qn_bytes_put_point(to, qn_alphabet_point((uint8_t)bytes[i])))
            return false;
    return true;
}

bool qn_alphabet_read(struct qn_bytes *to, const char *token, size_t size)
{
    const size_t before = to->count;
    for (size_t at = 0, taken; at < size; at += taken) {
        uint32_t point;
        taken = qn_point_next(token + at, size - at, &point);
        const int byte = byte_of(point);
        if (byte < 0) {
            to->count = before;
            return qn_bytes_put(to, token, size);
        }
        if (!qn_bytes_put(to, &(char){(char)byte}, 1))
            return false;
    }
    return true;
}
