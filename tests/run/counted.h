/* SPDX-License-Identifier: MIT
 *
 * Tests whose bytes are counted from outside, where clcount is preloaded.
 */
#ifndef QN_TESTS_RUN_COUNTED_H
#define QN_TESTS_RUN_COUNTED_H

#include "device.h"

/* Of clcount: the most bytes of all buffers since the last call. NULL: it is not there. */
extern unsigned long long (*largest_since)(void);

/* For cmocka, before all tests; close_device comes after them. */
int open_counted(void **state);

#endif
