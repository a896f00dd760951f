/* SPDX-License-Identifier: MIT
 *
 * Measures copies between host and device: the price of parking.
 */
#ifndef QN_TUNE_TRANSFERS_H
#define QN_TUNE_TRANSFERS_H

#include "plan/cost/tuning.h"
#include <quern/device.h>

/* Times copies of a buffer of at most `budget` bytes to and from ordinary host memory, as a trainer
 * parks. QN_ERR_BUDGET: the budget is below the smallest copy whose time means anything (1 MiB). */
qn_status qn_measure_transfers(qn_device *device, int64_t budget, struct qn_transfers *transfers);

#endif
