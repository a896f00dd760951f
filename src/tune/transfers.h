/* SPDX-License-Identifier: MIT
 *
 * What copies between host and device take: the price of parking.
 */
#ifndef QN_TUNE_TRANSFERS_H
#define QN_TUNE_TRANSFERS_H

#include "plan/tuning.h"
#include <quern/device.h>

/* Measures them with a buffer within `budget` bytes, to and from ordinary host memory, as a trainer
 * parks. QN_ERR_BUDGET: there is no room for one that tells anything. */
qn_status qn_measure_transfers(qn_device *device, int64_t budget, struct qn_transfers *transfers);

#endif
