/* SPDX-License-Identifier: MIT
 *
 * The working state of one lowering, shared by the files that do its parts.
 */
#ifndef QN_LOWERING_LOWERING_H
#define QN_LOWERING_LOWERING_H

#include "op/optimizer.h"
#include "plan/problem.h"

/* Working state of one lowering. Values are found by root tensor: a view and the tensor that it
 * views are one value, and so are their gradients. */
struct lowering {
    const struct qn_lowering *how;
    const struct qn_graph *graph;
    const struct qn_run_of *run; /* NULL: the update, or the start of a cycle */
    struct qn_problem *problem;
    struct qn_shapes shapes;
    int *forward;  /* by tensor: value; -1 */
    int *gradient; /* by root tensor: value of the gradient; -1 */
    int (*saved)[QN_MAX_SAVED], (*temp)[QN_MAX_TEMP]; /* by node */
    int *first_reader; /* with early updates, by node: the first node that reads its tensors; -1 */
    bool *written;     /* by value: some backward task has written it */
    bool *used;        /* by node */
    bool *wanted;      /* by tensor: its gradient is needed */
    bool *backward_read; /* by value: a backward group reads it and has no alternative */
    qn_status status;    /* the first error */
};

/* --- values (values.c) --- */

int qn_lower_add_value(struct lowering *l, const char *name, const struct qn_operand *operand,
                       enum qn_tag tag);
/* Adds a part of value `whole` as a value: `count` rows of dimension 0, from row `first` on. */
int qn_lower_add_slice(struct lowering *l, int whole, int64_t first, int64_t count);
uint32_t qn_lower_root_of(const struct lowering *l, uint32_t tensor);
/* The value of a tensor, made when first asked for. */
int qn_lower_forward_value(struct lowering *l, uint32_t tensor);
/* The value of a tensor's gradient, made when first asked for. */
int qn_lower_gradient_value(struct lowering *l, uint32_t tensor);
/* The value that `ref` names at node n; -1: none (absent input, unwanted gradient). */
int qn_lower_value_of(struct lowering *l, int n, struct qn_ref ref);

/* --- tasks (tasks.c) --- */

struct qn_task *qn_lower_add_task(struct lowering *l, enum qn_task_kind kind, int n);
/* Adds a task of no node: the first group of operator `op`, called `name`; NULL: called `op`. */
struct qn_task *qn_lower_add_own(struct lowering *l, const char *op, const char *name,
                                 const void *attr);
/* Adds a group as one task, or as several if it writes the gradient of one tensor several times. */
void qn_lower_add_group(struct lowering *l, int n, const struct qn_group *group, bool backward);

/* --- the backward pass (backward.c) and the update (update.c) --- */

void qn_lower_add_backward(struct lowering *l);
/* Early updates: qn_lower_find_readers fills in l->first_reader; qn_lower_add_early adds the
 * updates of the parameters whose gradient is complete after the backward pass of nodes >= n. */
void qn_lower_find_readers(struct lowering *l);
void qn_lower_add_early(struct lowering *l, int n);
void qn_lower_add_update(struct lowering *l);
/* Commits of the states that runs of the cycle gathered for (commits.c). */
void qn_lower_add_commits(struct lowering *l);
/* The norms of the chunks of this member's ranges. */
void qn_lower_add_norms(struct lowering *l);

/* --- cells (rows.c) --- */

/* Adds stores into cells: of the outputs that node n makes; after all other tasks, of the outputs
 * for rings, and then what makes tables of them. */
void qn_lower_store_made(struct lowering *l, int n);
void qn_lower_store_last(struct lowering *l);
/* Whether node n makes a table. */
bool qn_lower_makes_table(const struct lowering *l, int n);
/* Loads the gradients of outputs from cells, where a backward run begins. */
void qn_lower_load_gradients(struct lowering *l);
/* Sets every accumulator of the cycle to 0. */
void qn_lower_add_zeros(struct lowering *l);

/* --- parking (park.c) --- */

/* Adds, after all other tasks, a store and a fetch of each value that the forward pass makes. */
void qn_lower_add_parking(struct lowering *l);

#endif
