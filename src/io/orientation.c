/* SPDX-License-Identifier: MIT */
#include "io/orientation.h"

#include <string.h>

enum { TAG = 0x0112, SHORT = 3, ENTRY_BYTES = 12 };

/* Bytes, the first of which may be the least of a number or the greatest. */
struct bytes {
    const uint8_t *at;
    size_t size;
    bool little;
};

/* `count` bytes from `at` on, which are there. */
static uint32_t number(const struct bytes *from, size_t at, size_t count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | from->at[at + (from->little ? count - 1 - i : i)];
    return value;
}

/* An entry is tag, type, count, and a value or where it is; 0: it is no orientation. */
static int read_entry(const struct bytes *exif, size_t at)
{
    if (number(exif, at, 2) != TAG || number(exif, at + 2, 2) != SHORT ||
        number(exif, at + 4, 4) != 1)
        return 0;
    const uint32_t value = number(exif, at + 8, 2);
    return value >= 1 && value <= 8 ? (int)value : 0;
}

int qn_orientation_of(const uint8_t *exif, size_t size)
{
    if (size < 8 || (memcmp(exif, "II*\0", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0))
        return 1;
    const struct bytes from = {exif, size, exif[0] == 'I'};
    const size_t first = number(&from, 4, 4);
    if (first > size || size - first < 2)
        return 1;
    const size_t there = (size - first - 2) / ENTRY_BYTES, told = number(&from, first, 2);
    for (size_t i = 0; i < told && i < there; i++) {
        const int found = read_entry(&from, first + 2 + i * ENTRY_BYTES);
        if (found)
            return found;
    }
    return 1;
}

/* Where the picture's pixels are in the file: from its end rather than its beginning along the
 * rows, along the columns; and whether its rows are the file's columns. */
static const struct way {
    bool up, left, turn;
} ways[] = {
    [1] = {0, 0, 0}, [2] = {0, 1, 0}, [3] = {1, 1, 0}, [4] = {1, 0, 0},
    [5] = {0, 0, 1}, [6] = {1, 0, 1}, [7] = {1, 1, 1}, [8] = {0, 1, 1},
};

bool qn_orientation_turns(int orientation)
{
    return ways[orientation].turn;
}

void qn_orientation_apply(uint8_t *to, const uint8_t *from, int height, int width, int bytes,
                          int orientation)
{
    const struct way way = ways[orientation];
    const int rows = way.turn ? width : height, columns = way.turn ? height : width;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++, to += bytes) {
            const int row = way.turn ? x : y, column = way.turn ? y : x;
            const int at_row = way.up ? height - 1 - row : row;
            const int at_column = way.left ? width - 1 - column : column;
            memcpy(to, from + ((size_t)at_row * (size_t)width + (size_t)at_column) * (size_t)bytes,
                   (size_t)bytes);
        }
}
