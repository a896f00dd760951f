/* SPDX-License-Identifier: MIT
 *
 * What copies between host and device take: the price of parking.
 */
#ifndef QN_TUNE_TRANSFERS_H
#define QN_TUNE_TRANSFERS_H

#include "plan/cost/tuning.h"
#include <quern/device.h>

/* Measures them with a buffer within `budget` bytes, to and from ordinary host memory, as a trainer
 * parks. QN_ERR_BUDGET: a buffer within the budget would be too small for its time to mean
 * anything. */
qn_status qn_measure_transfers(qn_device *device, int64_t budget, struct qn_transfers *transfers);

#endif
