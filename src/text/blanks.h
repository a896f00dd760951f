/* SPDX-License-Identifier: MIT
 *
 * The characters that Unicode calls White_Space. U+180E is not one of them, though older tables
 * say so.
 */
#ifndef QN_TEXT_BLANKS_H
#define QN_TEXT_BLANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In order, without gaps or overlap between ranges: first and last of each. */
static const uint32_t qn_blanks[][2] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};
enum { QN_BLANKS = sizeof qn_blanks / sizeof *qn_blanks };

static inline bool qn_is_blank(uint32_t point)
{
    for (int i = 0; i < QN_BLANKS && point >= qn_blanks[i][0]; i++)
        if (point <= qn_blanks[i][1])
            return true;
    return false;
}

#endif
