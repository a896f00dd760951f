/* SPDX-License-Identifier: MIT
 *
 * Where tuning is kept, and whose it is.
 */
#ifndef QN_TUNE_STORE_H
#define QN_TUNE_STORE_H

#include "plan/tuning.h"
#include <quern/tune.h>

/* Starts a table for the device with what `known` says of this very device, driver and kernels;
 * what was found elsewhere is dropped. */
qn_status qn_tuning_open(struct qn_tuning *tuning, qn_device *device, const char *known);

#endif
