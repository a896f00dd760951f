/* SPDX-License-Identifier: MIT
 *
 * Patterns of names: '*' is any characters, dots included, or none, and '?' is any one; all else
 * stands for itself. Lists of patterns are separated by commas and blanks around them.
 */
#ifndef QN_BASE_GLOB_H
#define QN_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern of `length` bytes matches the whole name. */
bool qn_glob(const char *pattern, size_t length, const char *name);

/* The next pattern of a list and its length; NULL at the end. `*at` begins as the list, which may
 * be NULL. */
const char *qn_glob_next(const char **at, size_t *length);

#endif
