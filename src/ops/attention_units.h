/* SPDX-License-Identifier: MIT
 *
 * Attention by matrix units (attention_units.cl), for operands of 16 bits. No operator.
 */
#ifndef QN_OPS_ATTENTION_UNITS_H
#define QN_OPS_ATTENTION_UNITS_H

#include "op/op.h"

/* What the kernels are made for. */
struct qn_attention_units {
    int64_t head;
    bool gradient; /* the kernels of gradients, which keep two blocks of tokens in local memory */
    bool dropout;
};

/* Whether they can run for operands of that type; if not, *why is a short reason. */
bool qn_attention_units_fit(const struct qn_facts *facts, qn_dtype dtype,
                            const struct qn_attention_units *units, const char **why);

/* Sets program, options and local size, and returns the tokens of a work-group. */
int64_t qn_attention_units_set(struct qn_launch *launch, const struct qn_facts *facts,
                               const struct qn_attention_units *units);

#endif
