/* SPDX-License-Identifier: MIT
 *
 * The working state of one lowering, shared by the files that do its parts.
 */
#ifndef QN_LOWERING_LOWERING_H
#define QN_LOWERING_LOWERING_H

#include "op/optimizer.h"
#include "plan/problem.h"

/* Working state of one lowering. Values are numbered by root tensor, so a view and what it views
 * are one value, and so are their gradients. */
struct lowering {
    const struct qn_lowering *how;
    const struct qn_graph *graph;
    const struct qn_run_of *run; /* NULL: the update, or the start of a cycle */
    struct qn_problem *problem;
    struct qn_shapes shapes;
    int *forward;  /* by tensor: value; -1 */
    int *gradient; /* by root tensor: value of the gradient; -1 */
    int (*saved)[QN_MAX_SAVED], (*temp)[QN_MAX_TEMP]; /* by node */
    int *first_reader;   /* by node: of early updates, the first that reads its tensors; -1 */
    bool *written;       /* by value: some backward task has written it */
    bool *used;          /* by node */
    bool *wanted;        /* by tensor: its gradient is needed */
    bool *backward_read; /* by value: a backward group must read it, without an alternative */
    qn_status status;    /* the first error */
};

/* --- values (values.c) --- */

int qn_lower_add_value(struct lowering *l, const char *name, const struct qn_operand *operand,
                       enum qn_tag tag);
uint32_t qn_lower_root_of(const struct lowering *l, uint32_t tensor);
/* The value of a tensor, made when first asked for. */
int qn_lower_forward_value(struct lowering *l, uint32_t tensor);
/* The value of a tensor's gradient, made when first asked for. */
int qn_lower_gradient_value(struct lowering *l, uint32_t tensor);
/* The value that `ref` names at node n; -1: not there (absent input, unwanted gradient). */
int qn_lower_value_of(struct lowering *l, int n, struct qn_ref ref);

/* --- tasks (tasks.c) --- */

struct qn_task *qn_lower_add_task(struct lowering *l, enum qn_task_kind kind, int n);
/* A task of the planner's own, at no node: the first group of operator `op`. `name` is that of what
 * it works on; NULL: the operator's. */
struct qn_task *qn_lower_add_own(struct lowering *l, const char *op, const char *name,
                                 const void *attr);
/* A group as one task, or as several where it writes gradients of one tensor more than once. */
void qn_lower_add_group(struct lowering *l, int n, const struct qn_group *group, bool backward);

/* --- the backward pass (backward.c) and the update (update.c) --- */

void qn_lower_add_backward(struct lowering *l);
/* Early updates: fills in l->first_reader, and adds the steps for the parameters whose gradient is
 * complete after the backward pass of node n and of all nodes after it. */
void qn_lower_find_readers(struct lowering *l);
void qn_lower_add_early(struct lowering *l, int n);
void qn_lower_add_update(struct lowering *l);

/* --- cells (rows.c) --- */

/* Stores the outputs that node n has just made, and, when all else is done, those that come last.
 */
void qn_lower_store_made(struct lowering *l, int n);
void qn_lower_store_last(struct lowering *l);
/* The gradients of outputs, from the cells that hold them: where a backward run begins. */
void qn_lower_load_gradients(struct lowering *l);
/* Zeros in every accumulator of the cycle. */
void qn_lower_add_zeros(struct lowering *l);

/* --- parking (park.c) --- */

/* A store and a fetch of everything that the forward pass makes, after all other tasks. */
void qn_lower_add_parking(struct lowering *l);

#endif
