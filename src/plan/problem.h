/* SPDX-License-Identifier: MIT
 *
 * What the planner works on: a graph lowered at one batch size to values and tasks. A task is one
 * launch group of one node; a step list is an order of tasks in which forward tasks may appear
 * again (recomputation), and in which values may go to host memory and come back (parking).
 * Everything here is plain data made from plain data.
 */
#ifndef QN_PLAN_PROBLEM_H
#define QN_PLAN_PROBLEM_H

#include "graph/graph.h"
#include <quern/plan.h>

enum qn_life {
    QN_LIFE_RUN,   /* as long as the trainer */
    QN_LIFE_CYCLE, /* from its first write in the first micro-step to the end of the update */
    QN_LIFE_MICRO, /* between steps of one phase */
};

struct qn_value {
    const char *name;
    struct qn_operand operand; /* dtype and shape */
    int64_t bytes;
    enum qn_tag tag;
    enum qn_life life;
    int block;            /* the value that it is a part of; -1: it stands alone */
    int64_t block_offset; /* bytes */
    int64_t host_bytes;   /* of a copy in host memory, which has no bytes on the device; else 0 */
};

enum { QN_MAX_BLOCKS = 16, QN_MAX_SLOTS = 2, QN_CHUNK = 4096 };

/* Trainable parameters that one optimizer launch updates; its parts lie in `parameters` as in
 * `gradients` and the optimizer's slots, at the same offsets. Of early updates only the storage is
 * shared: each parameter is updated alone, and its gradient stands alone. */
struct qn_block {
    int parameters, gradients, slots[QN_MAX_SLOTS], table; /* values; -1: does not exist */
    int chunks, first_chunk; /* of QN_CHUNK elements at most; first in the list of all blocks */
};

/* What stays on the device from update to update, the same for every batch size. */
struct qn_persist {
    const struct qn_graph *graph;
    struct qn_value *values;
    int n_values;
    bool *trainable; /* by node: a parameter that is not frozen and that some loss reaches */
    int *leaf;       /* by node: value of a parameter or constant; -1 */
    int *gradient;   /* by node: value of a trainable parameter's gradient; -1 */
    int (*state)[QN_MAX_STATE], (*gather)[QN_MAX_STATE]; /* by node; -1 */
    struct qn_block blocks[QN_MAX_BLOCKS];
    int n_blocks;
    int n_chunks; /* of all blocks */
    int *chunk;   /* by node: number of a trainable parameter's first chunk in the list of all */
    int control;  /* value of the control block */
    bool early;   /* parameters are updated in the micro-step, as their gradients complete */
    int norms;    /* value of early updates: the norms of all chunks; -1 */
};

/* A store copies a value to host memory, a fetch brings it back. */
enum qn_task_kind { QN_TASK_GROUP, QN_TASK_UPLOAD, QN_TASK_DOWNLOAD, QN_TASK_STORE, QN_TASK_FETCH };

/* `operand` has the shape under which the node sees the value: a view's own. */
struct qn_use {
    int value;
    struct qn_ref ref;
    struct qn_operand operand;
};

struct qn_output_use {
    int value;
    struct qn_ref ref;
    struct qn_operand operand;
    int in_place;     /* value whose bytes it may take over; -1 */
    bool accumulates; /* adds to what is there (beta 1), in every micro-step */
};

struct qn_task {
    enum qn_task_kind kind;
    const char *name;
    int node;   /* -1: of the planner's own (optimizer) */
    int output; /* of a download: which of the graph's */
    const struct qn_op *op;
    const void *attr;
    const struct qn_group *group;
    int variant, setting; /* of the group; of the variant */
    bool backward, repeatable;
    struct qn_use reads[QN_MAX_READS];
    struct qn_output_use writes[QN_MAX_WRITES];
    int n_reads, n_writes;
    int64_t scratch; /* bytes */
    int64_t blas_temp;
    double flops, bytes, seconds;
    bool measured; /* the seconds; else estimated */
};

struct qn_problem {
    const struct qn_persist *persist;
    const struct qn_facts *facts;
    int64_t batch;
    struct qn_value *values; /* the persistent ones first, under their own numbers */
    int n_values;
    struct qn_task *tasks; /* forward tasks, then backward tasks, each in an order that works; then,
                              of each value that may be parked, its store and its fetch */
    int n_tasks, n_forward;
    int n_parking; /* stores and fetches: all that a step list may leave out */
    int *producer; /* by value: the forward task that writes it; -1 */
    struct qn_shapes shapes;
    const bool *wanted; /* by tensor: its gradient is needed */
};

struct qn_tuning;
struct qn_lists;

struct qn_lowering {
    struct qn_arena *arena;
    const struct qn_facts *facts;
    const struct qn_plan_params *params;
    const struct qn_log *log;
    const struct qn_tuning *tuning; /* what params->tuning says; NULL: nothing */
    double calibration; /* what estimated seconds are multiplied with to go with measured ones; 0:
                           nothing was measured */
    const struct qn_lists *lists; /* candidates of local search (improve.h); NULL: none */
    bool early;                   /* lay out what is persistent for early updates */
    bool park;                    /* add stores and fetches */
    bool *too_large; /* set when a tensor of this batch size is above the largest allocation or
                        cannot be counted: a smaller batch may fit; NULL: nobody asks */
    unsigned without_seeds; /* bit per enum qn_seed: left out of mode "auto", for tests */
};

/* The largest effective batch: that of cycle 0. */
int64_t qn_largest_batch(const struct qn_plan_params *params);
/* The smallest batch that is a whole one for batch norm; what does not depend on the batch is
 * worked out at this one. */
int64_t qn_one_group(const struct qn_plan_params *params, const struct qn_graph *graph);

/* Lays out what is persistent. QN_ERR_MEMORY names a tensor above the largest allocation. */
qn_status qn_persist_make(const struct qn_lowering *how, const struct qn_graph *graph,
                          struct qn_persist *persist);

/* The block of a trainable parameter, and how many chunks the parameter has. */
const struct qn_block *qn_block_of(const struct qn_persist *persist, int node);
int qn_chunks_of(const struct qn_persist *persist, int node);

/* The rows of a block's table (ops/update.h says what they mean): block->chunks of them. Of early
 * updates they count elements from the beginning of their parameter. */
void qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                    int32_t (*table)[4]);

/* Lowers a training micro-step, an evaluation, or the update. */
qn_status qn_lower_training(const struct qn_lowering *how, const struct qn_persist *persist,
                            int64_t batch, struct qn_problem *problem);
qn_status qn_lower_evaluation(const struct qn_lowering *how, const struct qn_persist *persist,
                              int64_t batch, struct qn_problem *problem);
qn_status qn_lower_update(const struct qn_lowering *how, const struct qn_persist *persist,
                          struct qn_problem *problem);

/* The call of a task, without addresses. Every operand that its node has is there with its shape,
 * but for gradients that nobody wants and the alternative that was not chosen. `first`: the
 * accumulators of the cycle are written, not added to. */
void qn_task_call(const struct qn_problem *problem, const struct qn_task *task, bool first,
                  struct qn_call *call);

/* Picks the variant and fills in the costs of a task. */
qn_status qn_task_price(const struct qn_lowering *how, const struct qn_problem *problem,
                        struct qn_task *task);

/* What the task does, for people: the name of its group, or "upload". */
static inline const char *qn_task_does(const struct qn_task *task)
{
    static const char *const transfers[] = {[QN_TASK_UPLOAD] = "upload",
                                            [QN_TASK_DOWNLOAD] = "download",
                                            [QN_TASK_STORE] = "store",
                                            [QN_TASK_FETCH] = "fetch"};
    return task->group ? task->group->name : transfers[task->kind];
}

/* How many tasks every step list runs: the first. */
static inline int qn_tasks_required(const struct qn_problem *problem)
{
    return problem->n_tasks - problem->n_parking;
}

/* Whether it may be run again. */
static inline bool qn_task_repeats(const struct qn_task *task)
{
    return task->repeatable && task->kind == QN_TASK_GROUP;
}

static inline bool qn_task_parks(const struct qn_task *task)
{
    return task->kind == QN_TASK_STORE || task->kind == QN_TASK_FETCH;
}

/* Value `value`, or the block it lies in. */
static inline int qn_value_root(const struct qn_problem *problem, int value)
{
    return problem->values[value].block >= 0 ? problem->values[value].block : value;
}

#endif
