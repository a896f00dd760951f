/* SPDX-License-Identifier: MIT
 *
 * Laying out persistent values: what the files that do the parts of it share.
 */
#ifndef QN_LOWERING_PERSIST_H
#define QN_LOWERING_PERSIST_H

#include "op/optimizer.h"
#include "plan/problem.h"

/* Adds a value and gives its number. */
int qn_persist_add(struct qn_persist *persist, const struct qn_value *value);
/* Adds an array of `count` elements as a value and gives its number. */
int qn_persist_add_array(struct qn_persist *persist, const char *name, qn_dtype dtype,
                         int64_t count, enum qn_tag tag, enum qn_life life);

/* Lists the parameters of all graphs, each once (parameters.c). QN_ERR_SHAPE: two graphs give one
 * name to parameters of different shape; QN_ERR_MEMORY. */
qn_status qn_persist_list_parameters(const struct qn_lowering *how, struct qn_persist *persist);

/* Lays trainable parameters, their gradients and the optimizer's states into blocks (blocks.c). */
qn_status qn_persist_lay_blocks(const struct qn_lowering *how, struct qn_persist *persist);

/* Gives every cell its values, and binds the input of node n to the cell of its name, if there is
 * one (cells.c). */
void qn_persist_lay_cells(const struct qn_lowering *how, struct qn_persist *persist);
void qn_persist_bind_cell(const struct qn_persist *persist, struct qn_bound *bound, int n);

/* QN_ERR_MEMORY, with `name` in the log: `bytes` is more than `most`, or negative (overflow). */
qn_status qn_persist_check_size(const struct qn_lowering *how, const char *name, int64_t bytes,
                                int64_t most);

#endif
