/* SPDX-License-Identifier: MIT
 *
 * Trials of a device while it is opened. They need all that running kernels needs.
 */
#ifndef QN_CL_LIMITS_H
#define QN_CL_LIMITS_H

#include "cl/private.h"
#include "cl/recording.h"
#include "cl/slab.h"

/* Corrects the facts by what the device bears; tests/check/kernel_limits.c shows all of a driver.
 * - Some drivers say of each kernel that it takes a multiple of the local memory that it declares.
 *   Kernels may then declare so much less.
 * - Some end a loop before its end, after 65,535 iterations of all loops of a work-item. Then a
 *   work-item must not do the work of a work-group, which is the shape of kernels for CPUs; a
 *   warning tells of it.
 * - Some have fma() as a function of hundreds of instructions. Kernels then round a product before
 *   they add to it: see cl_kernels/lib/fma.clh. */
void qn_device_try_limits(struct qn_device *device);
/* Whether kernels have as much local memory as QN_MATRIX_STRIPS says. */
bool qn_device_try_strips(struct qn_device *device);

/* Runs one kernel. */
qn_status qn_trial_launch(struct qn_slab *slab, const char *tag, const struct qn_launch *launch);

#endif
