/* SPDX-License-Identifier: MIT
 *
 * What a group of tests of one trainer shares: a device, test_cnn, and data for both.
 */
#ifndef QN_TESTS_RUN_BED_H
#define QN_TESTS_RUN_BED_H

#include "device.h"
#include "support.h"

enum { BED_SAMPLES = 40 };

extern qn_graph *graph;
extern struct test_data data; /* of BED_SAMPLES */

/* Set-up and tear-down of the group. */
int open_bed(void **state);
int close_bed(void **state);

#endif
