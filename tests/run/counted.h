/* SPDX-License-Identifier: MIT
 *
 * The device of tests whose bytes are counted from outside, where clcount is preloaded.
 */
#ifndef QN_TESTS_RUN_COUNTED_H
#define QN_TESTS_RUN_COUNTED_H

#include <quern/quern.h>

extern qn_device *device;

/* Of clcount: the most bytes of all buffers since the last call. NULL: it is not there. */
extern unsigned long long (*largest_since)(void);

/* For cmocka: before and after all tests. */
int open_device(void **state);
int close_device(void **state);

#endif
