/* SPDX-License-Identifier: MIT
 *
 * Characters of UTF-8, of which qn_escape (quern/log.h) lets through what a terminal prints.
 */
#ifndef QN_BASE_ESCAPE_H
#define QN_BASE_ESCAPE_H

#include <stdint.h>

/* The bytes of the character at `text`, 1 to 4, and its code point; 0: not well-formed UTF-8. */
int qn_utf8_bytes(const char *text, uint32_t *point);

#endif
