/* SPDX-License-Identifier: MIT
 *
 * AdamW with moments in 8 bits (Dettmers et al. 2022, arXiv:2110.02861): codes of the dynamic map,
 * signed and unsigned, with an f32 scale for each 256 neighbouring elements. Tensors of less than
 * 4096 elements keep theirs in f32.
 */
#include "ops/common.h"
#include "ops/moments8.h"

enum { SHARED = 256, SCALES_OF_A_CHUNK = QN_CHUNK / SHARED };

static qn_status shape(struct qn_shape_call *call)
{
    return qn_moments8_shape(call, SCALES_OF_A_CHUNK, QN_F32);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_moments8_launch(emit, call, "adamw8", 4);
}

/* Codes of 0 are 127, with a sign, and 0. */
const struct qn_op qn_op_adamw8 = {
    .name = "adamw8",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .small = {.below = 4096, .name = "adamw"},
    .state = {{.name = "exp_avg", .initial = 127},
              {.name = "exp_avg_sq"},
              {.name = "exp_avg_scale", .per_chunk = SCALES_OF_A_CHUNK},
              {.name = "exp_avg_sq_scale", .per_chunk = SCALES_OF_A_CHUNK}},
    .groups = {
        {.name = "step",
         .phase = QN_PHASE_UPDATE,
         .read = {{QN_IN(0)},
                  {QN_IN(1)},
                  {QN_IN(2)},
                  {QN_STATE(0)},
                  {QN_STATE(1)},
                  {QN_STATE(2)},
                  {QN_STATE(3)}},
         .write =
             {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}, {QN_STATE(1)}, {QN_STATE(2)}, {QN_STATE(3)}},
         .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_moments8_cost, step)}}};
