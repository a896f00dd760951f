/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of tune/: devices that keep their log and may have spoiled kernels, and a
 * plan with one linear layer.
 */
#ifndef QN_TESTS_TUNE_SUPPORT_H
#define QN_TESTS_TUNE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include <quern/quern.h>

/* A device with a cache folder of its own, and what it logged as warnings. */
struct bench_device {
    qn_device *device;
    char cache[FOLDER_BYTES], kernels[FOLDER_BYTES]; /* folders; kernels "": those of the library */
    char warnings[4096];
    int n_warnings;
};

/* `spoiled`: NULL, or a line that is put in front of kernel file `file`, which then computes wrong
 * numbers. */
void bench_device_open(struct bench_device *d, const char *file, const char *spoiled);
/* The same folders with a new device. */
void bench_device_reopen(struct bench_device *d);
void bench_device_close(struct bench_device *d);

/* batch rows of k terms -> n outputs, both gradients wanted. */
struct layer {
    int64_t batch, n, k;
    const char *tuning, *variants;
    bool park;
};
qn_plan *layer_plan(const struct bench_device *d, const struct layer *layer);

/* The variant that the plan takes for the forward pass of the layer, and its setting. They give
 * `text`. */
const char *layer_variant(const qn_plan *plan, char text[64]);
const char *layer_setting(const qn_plan *plan, char text[64]);

#endif
