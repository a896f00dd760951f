/* SPDX-License-Identifier: MIT
 *
 * The file in which a device's tuning is kept, and the check that a table is of this device.
 */
#ifndef QN_TUNE_STORE_H
#define QN_TUNE_STORE_H

#include "plan/cost/tuning.h"
#include <quern/tune.h>

/* Starts a table with the entries of `known` (a table as text; NULL or "": none) if the device,
 * driver and kernels it names are those of `device`; else without entries. */
qn_status qn_tuning_open(struct qn_tuning *tuning, qn_device *device, const char *known);

#endif
