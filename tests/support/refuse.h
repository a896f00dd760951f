/* SPDX-License-Identifier: MIT
 *
 * Memory that is refused: programs that are linked with --wrap of malloc, calloc, realloc and
 * strdup count the library's calls of these, and one of them fails.
 */
#ifndef QN_TESTS_SUPPORT_REFUSE_H
#define QN_TESTS_SUPPORT_REFUSE_H

#include <stdbool.h>

/* Counts from the beginning; the call of that number will be refused. 0: none will be. */
void refuse_call(long number);

/* Since then. */
long calls_made(void);

/* Counts one call; gives whether it is the one. For wrappers of other functions. Any thread. */
bool refuse(void);

#endif
