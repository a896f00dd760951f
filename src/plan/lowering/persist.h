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

/* Forms the groups that params->norm_groups asks for, once blocks are laid, and adds their values
 * (norm_groups.c). QN_ERR_ARGUMENT: a pattern is left no trained parameter; QN_ERR_MEMORY. */
qn_status qn_persist_lay_norm_groups(const struct qn_lowering *how, struct qn_persist *persist);

/* --- slots of optimizers (slots.c) --- */

/* What parameters of a block have in common. */
struct qn_kind {
    qn_dtype dtype;
    const struct qn_op *optimizer;
};
/* Whether they have masters. */
bool qn_kind_has_master(const struct qn_lowering *how, struct qn_kind kind);
/* Rows of the table that are the parameter's. */
int qn_chunks_of(const struct qn_parameter *parameter);

/* Slots of a block. A parameter has its own part of each: an element for each of its elements, or
 * per_chunk for each of its chunks; or, of an optimizer that wants it whole, as many as the shape
 * rule gives, one parameter's behind the other's. */
struct qn_slots {
    qn_dtype dtype[QN_MAX_STATE]; /* QN_DTYPE_NONE: the block has no such slot */
    int64_t count[QN_MAX_STATE];
};
/* Those of a block of `count` elements. QN_ERR_SHAPE: qn_slots_find_parts would be wrong. */
qn_status qn_slots_of_block(const struct qn_lowering *how, const struct qn_persist *persist,
                            struct qn_kind kind, int64_t count, int chunks, struct qn_slots *slots);
/* The parts of a parameter that is in a block. */
void qn_slots_find_parts(const struct qn_persist *persist, struct qn_parameter *parameter);
/* Adds those of a parameter that the optimizer wants whole, and gives it its parts. */
qn_status qn_slots_add(const struct qn_lowering *how, const struct qn_persist *persist,
                       struct qn_kind kind, struct qn_parameter *parameter, struct qn_slots *slots);
/* Adds the block's states as values. */
void qn_slots_place(struct qn_persist *persist, struct qn_block *block,
                    const struct qn_slots *slots);
/* What they would take of one parameter, of `count` elements with its padding. */
int64_t qn_slots_bytes(const struct qn_lowering *how, const struct qn_persist *persist,
                       struct qn_kind kind, const struct qn_parameter *parameter, int64_t count);

/* --- chunk tables --- */

/* Chunk `index` of a parameter that begins at element `first` (blocks.c). */
struct qn_chunk qn_chunk_row(const struct qn_parameter *parameter, int index, int64_t first);
/* Those of all its parameters, whoever updates them. */
void qn_block_rows(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table);
/* Those of this member's ranges; gives how many (shard.c). */
int qn_shard_table(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table);

/* --- what members of a group share (shard.c) --- */

/* Elements and table rows of a block that this member has masters, states and rows of. */
struct qn_kept {
    int64_t count;
    int chunks;
};
/* Divides a block, whose parameters know their places in it, into ranges of the members, and gives
 * what is this member's; where there are no others, everything. QN_ERR_MEMORY. */
qn_status qn_shard_block(const struct qn_lowering *how, struct qn_persist *persist, int block,
                         struct qn_kept *kept);
/* Gives this member's ranges of the block their parts of its states. `slots`: those of all its
 * parameters if the optimizer wants them whole, of which those of this member's are left. */
void qn_shard_states(struct qn_persist *persist, int block, struct qn_slots *slots);
/* Brings the ranges of all blocks into their order. QN_ERR_MEMORY. */
qn_status qn_shard_order(const struct qn_lowering *how, struct qn_persist *persist);

/* --- states of operators (states.c) --- */

/* Binds the states of node n, and what is gathered for them, to their values: parts of arrays, in
 * which those of the first graph's nodes lie side by side, in the order of the nodes, each from the
 * device's alignment on. QN_ERR_ARGUMENT: another graph has a state that the first has not;
 * QN_ERR_SHAPE: two graphs describe one differently. */
qn_status qn_persist_bind_states(const struct qn_lowering *how, struct qn_persist *persist,
                                 struct qn_bound *bound, int n, const struct qn_shape_call *call);

/* --- cells --- */

/* Gives every cell its values, and binds the input of node n to the cell of its name, if there is
 * one (cells.c). */
void qn_persist_lay_cells(const struct qn_lowering *how, struct qn_persist *persist);
void qn_persist_bind_cell(const struct qn_persist *persist, struct qn_bound *bound, int n);
/* Binds the nodes that make tables to their cells. */
void qn_persist_bind_tables(const struct qn_persist *persist, struct qn_bound *bound);

/* QN_ERR_MEMORY, with `name` in the log: `bytes` is more than `most`, or negative (overflow). */
qn_status qn_persist_check_size(const struct qn_lowering *how, const char *name, int64_t bytes,
                                int64_t most);

#endif
