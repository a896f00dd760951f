/* SPDX-License-Identifier: MIT
 *
 * The working state of one lowering, shared by the files that do its parts.
 */
#ifndef QN_PLAN_LOWERING_H
#define QN_PLAN_LOWERING_H

#include "op/optimizer.h"
#include "plan/problem.h"

/* Working state of one lowering. Values are numbered by root tensor, so a view and what it views
 * are one value, and so are their gradients. */
struct lowering {
    const struct qn_lowering *how;
    const struct qn_graph *graph;
    struct qn_problem *problem;
    struct qn_shapes shapes;
    const struct qn_optimizer_attr *optimizer;
    int *forward;  /* by tensor: value; -1 */
    int *gradient; /* by root tensor: value of the gradient; -1 */
    int (*saved)[QN_MAX_SAVED], (*temp)[QN_MAX_TEMP]; /* by node */
    int *first_reader;   /* by node: of early updates, the first that reads its tensors; -1 */
    bool *written;       /* by value: some backward task has written it */
    bool *used;          /* by node */
    bool *wanted;        /* by tensor: its gradient is needed */
    bool *backward_read; /* by value: a backward group must read it, without an alternative */
};

/* --- values (lower_values.c) --- */

int qn_lower_add_value(struct lowering *l, const char *name, const struct qn_operand *operand,
                       enum qn_tag tag);
uint32_t qn_lower_root_of(const struct lowering *l, uint32_t tensor);
/* The value of a tensor, made when first asked for. */
int qn_lower_forward_value(struct lowering *l, uint32_t tensor);
/* The value that `ref` names at node n; -1: not there (absent input, unwanted gradient). */
int qn_lower_value_of(struct lowering *l, int n, struct qn_ref ref);

/* --- tasks (lower_tasks.c) --- */

struct qn_task *qn_lower_add_task(struct lowering *l, enum qn_task_kind kind, int n);
void qn_lower_add_group(struct lowering *l, int n, const struct qn_group *group, bool backward);
/* The groups of every used node that run in `phase`, in the order of the graph. */
void qn_lower_add_forward(struct lowering *l, unsigned phase);

/* --- the backward pass (lower_backward.c) and the update (lower_update.c) --- */

void qn_lower_add_backward(struct lowering *l);
/* Early updates: fills in l->first_reader, and adds the steps for the parameters whose gradient is
 * complete after the backward pass of node n and of all nodes after it. */
void qn_lower_find_readers(struct lowering *l);
void qn_lower_add_early(struct lowering *l, int n);
void qn_lower_add_update(struct lowering *l);

/* --- parking (lower_park.c) --- */

/* A store and a fetch of everything that the forward pass makes, after all other tasks. */
void qn_lower_add_parking(struct lowering *l);

#endif
