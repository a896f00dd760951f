/* SPDX-License-Identifier: MIT
 *
 * The device that all tests of a group share.
 */
#ifndef QN_TESTS_RUN_DEVICE_H
#define QN_TESTS_RUN_DEVICE_H

#include <quern/quern.h>

extern qn_device *device;

/* For cmocka: before and after all tests. */
int open_device(void **state);
int close_device(void **state);

#endif
