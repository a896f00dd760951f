/* SPDX-License-Identifier: MIT */
#include "base/escape.h"

#include <quern/log.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int qn_utf8_bytes(const char *text, uint32_t *point)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *at = (const unsigned char *)text;
    for (int more = 0; more < 4; more++) {
        if ((at[0] & forms[more].mask) != forms[more].lead)
            continue;
        *point = at[0] & (unsigned char)~forms[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            *point = *point << 6 | (at[i] & 0x3f);
        }
        bool surrogate = *point >= 0xd800 && *point < 0xe000;
        return *point < forms[more].least || *point > 0x10ffff || surrogate ? 0 : more + 1;
    }
    return 0;
}

/* Whether a character is printed where it stands and leaves the rest of its line alone: no control
 * and nothing that turns the direction of writing. */
static bool is_plain(uint32_t point)
{
    static const uint32_t others[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                         {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (point >= others[i][0] && point <= others[i][1])
            return false;
    return true;
}

/* Takes a character from the text, or a byte that is to be escaped; gives the length of what is
 * shown of it. */
static size_t take(const char **text, char shown[8])
{
    static const char letters[] = "\n\r\t", names[] = "nrt";
    const char byte = **text, *letter = strchr(letters, byte);
    uint32_t point;
    const int bytes = qn_utf8_bytes(*text, &point);
    if (bytes && is_plain(point)) {
        memcpy(shown, *text, (size_t)bytes);
        *text += bytes;
        return (size_t)bytes;
    }
    ++*text;
    return (size_t)(letter ? snprintf(shown, 8, "\\%c", names[letter - letters])
                           : snprintf(shown, 8, "\\x%02x", (unsigned char)byte));
}

size_t qn_escape(char *to, size_t capacity, const char *text)
{
    size_t length = 0, written = 0;
    while (text && *text) {
        char shown[8];
        const size_t size = take(&text, shown);
        if (written == length && length + size < capacity) {
            memcpy(to + written, shown, size);
            written += size;
        }
        length += size;
    }
    if (capacity)
        to[written] = 0;
    return length;
}
