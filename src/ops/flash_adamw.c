/* SPDX-License-Identifier: MIT
 *
 * AdamW of FlashOptim (Gonzalez Ortiz et al. 2026, arXiv:2602.23349): moments in 8 bits with
 * companding, with a scale for each 32 neighbouring elements, in bf16, since squares of gradients
 * are below what f16 reaches; and, of parameters in bf16, 8 more bits in the place of a master.
 * Tensors of less than 4096 elements are left to adamw.
 */
#include "base/log.h"
#include "ops/common.h"
#include "ops/moments8.h"

enum { SHARED = 32, SCALES_OF_A_CHUNK = QN_CHUNK / SHARED };
enum { CORRECTION = 4, STATES };

static qn_status shape(struct qn_shape_call *call)
{
    QN_TRY(qn_moments8_shape(call, SCALES_OF_A_CHUNK, QN_BF16));
    if (call->in[0].dtype == QN_BF16)
        qn_shape_set(&call->state[CORRECTION], QN_U8, 1, call->in[0].shape.dim);
    return QN_OK;
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_moments8_launch(emit, call, "flash_adamw", STATES);
}

/* Codes of 0 are 127, with a sign, and 0; of no correction 128. */
const struct qn_op qn_op_flash_adamw = {
    .name = "flash_adamw",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .small = {.below = 4096, .name = "adamw"},
    .correction = CORRECTION,
    .state = {{.name = "exp_avg", .initial = 127},
              {.name = "exp_avg_sq"},
              {.name = "exp_avg_scale", .per_chunk = SCALES_OF_A_CHUNK},
              {.name = "exp_avg_sq_scale", .per_chunk = SCALES_OF_A_CHUNK},
              {.name = "correction", .initial = 128}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)},
                         {QN_IN(1)},
                         {QN_IN(2)},
                         {QN_STATE(0)},
                         {QN_STATE(1)},
                         {QN_STATE(2)},
                         {QN_STATE(3)},
                         {QN_STATE(CORRECTION)}},
                .write = {{QN_OUT(0), QN_IN(0)},
                          {QN_STATE(0)},
                          {QN_STATE(1)},
                          {QN_STATE(2)},
                          {QN_STATE(3)},
                          {QN_STATE(CORRECTION)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_moments8_cost, step)}}};
