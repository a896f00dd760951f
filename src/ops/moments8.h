/* SPDX-License-Identifier: MIT
 *
 * What optimizers share that keep Adam's moments in 8 bits (cl_kernels/lib/moments8.clh). No
 * operator.
 */
#ifndef QN_OPS_MOMENTS8_H
#define QN_OPS_MOMENTS8_H

#include "ops/update.h"

/* Slots 0 to 3: codes of both moments, one for each element; their scales, `per_chunk` of the type
 * `scale` for each chunk. */
qn_status qn_moments8_shape(struct qn_shape_call *call, int per_chunk, qn_dtype scale);
void qn_moments8_cost(const struct qn_call *call, struct qn_cost *cost);

/* Launches the only kernel of the program that has its name: arguments are the three inputs, the
 * control block, `states` slots, the new parameters, the betas, 1 - the betas, and eps. */
qn_status qn_moments8_launch(struct qn_emit *emit, const struct qn_call *call, const char *program,
                             int states);

#endif
