/* SPDX-License-Identifier: MIT
 *
 * What the planner works on: a graph lowered at one batch size to values and tasks. A task is one
 * launch group of one node; a step list is an order of tasks in which forward tasks may appear
 * again (recomputation), and in which values may go to host memory and come back (parking).
 */
#ifndef QN_PLAN_PROBLEM_H
#define QN_PLAN_PROBLEM_H

#include "graph/graph.h"
#include "op/optimizer.h"
#include <quern/plan.h>

enum qn_life {
    QN_LIFE_TRAINING, /* the whole training */
    QN_LIFE_CYCLE,    /* from its first write in the first micro-step to the end of the update */
    QN_LIFE_MICRO,    /* between steps of one phase */
};

struct qn_value {
    const char *name;
    struct qn_operand operand; /* dtype and shape */
    int64_t bytes;
    enum qn_tag tag;
    enum qn_life life;
    int block;            /* number of the value that it is a part of; -1: of none */
    int64_t block_offset; /* bytes from the beginning of that value */
    int64_t host_bytes;   /* of a copy in host memory, which has no bytes on the device; else 0 */
};

enum { QN_MAX_BLOCKS = 16 };

/* Trainable parameters of one type that one launch of an optimizer updates. A parameter has the
 * same first element in `parameters`, `working` and `gradients`; the shapes of `state` follow from
 * theirs by op->state. With early updates each parameter is updated alone, with a gradient outside
 * of the block; by an optimizer that wants whole tensors each is updated alone, too. */
struct qn_block {
    const struct qn_op *optimizer; /* persist->optimizer, or that of its small parameters */
    int parameters; /* value of what the optimizer updates: f32 masters of 16-bit parameters, or the
                       parameters themselves */
    int working;    /* value of what operators read: the masters in 16 bits, else `parameters` */
    int average, working_average; /* values of their moving average in f32, and of what evaluations
                                     read: the same in the type of `working`; -1: does not exist */
    int gradients, state[QN_MAX_STATE], table; /* values; -1: does not exist */
    int64_t count;                             /* elements of `working` and `gradients` */
    int chunks, first_chunk; /* their number; the first one's in the list of all blocks' chunks */
};

/* Elements of an optimizer's state that belong to a parameter. */
struct qn_state_part {
    int64_t first, count;
};

/* A parameter, whichever graphs use it. */
struct qn_parameter {
    const struct qn_node *node;   /* of the first graph that has it */
    bool trainable;               /* not frozen, and the backward pass of some loss reaches it */
    bool by_steps, by_whole;      /* runs of micro-steps, whole runs give it a gradient */
    int value, working;           /* of the block's `parameters`; of its `working` */
    int average, working_average; /* of those of the block; -1 */
    int gradient;                 /* -1: not trainable */
    int block;                    /* of persist->blocks; -1: not trainable */
    int64_t first;                /* if trainable: its first element in the block */
    int first_chunk, chunks;      /* if trainable: its range in the list of all blocks' chunks */
    struct qn_state_part part[QN_MAX_STATE]; /* if trainable: its own of each state of its block */
};

/* Neighbouring chunks of a block that one member of a group updates. */
struct qn_range {
    int block, owner;
    int bucket;              /* ranges of one bucket lie side by side, by owner */
    int parameter;           /* the first that it has numbers of */
    int first_chunk, chunks; /* in the list of all blocks' chunks */
    int64_t first, count;    /* elements of the block, with what pads its parameters */
    /* Of this member's own: where its elements begin in the block's masters, its rows in the table,
     * and its part in each state. */
    int64_t kept, kept_state[QN_MAX_STATE];
    int kept_chunk;
};

/* How members of a group share the optimizer's work (ZeRO stage 1: Rajbhandari et al. 2020).
 * Masters, states and tables of blocks hold this member's ranges alone, one behind the other; the
 * offsets of parameters in them and qn_parameter.part are what they were if it had all. */
struct qn_shard {
    int members, member;     /* members 0: there are no others */
    struct qn_range *ranges; /* of all members, in about the order in which gradients complete */
    int n_ranges, n_buckets;
};

static inline bool qn_range_is_own(const struct qn_shard *shard, const struct qn_range *range)
{
    return range->owner == shard->member;
}

/* A state of an operator (running averages), shared by the graphs that have its node. */
struct qn_moving {
    const struct qn_node *node; /* of the first graph that has it */
    int index;                  /* of node->op->state */
    int value, gather;          /* value in which it is gathered in the cycle; -1: none */
};

/* Which persistent values the nodes of a graph are. */
struct qn_bound {
    const struct qn_graph *graph;
    int *parameter;                                      /* by node: of persist->parameters; -1 */
    int *leaf;                                           /* by node: parameter, constant or cell */
    int *gradient;                                       /* by node: trainable parameter's; -1 */
    int (*state)[QN_MAX_STATE], (*gather)[QN_MAX_STATE]; /* by node; -1 */
};

/* A run of the program. */
struct qn_run_of {
    const char *name;
    int graph; /* of persist->graphs */
    qn_run_what what;
    bool whole;      /* one repetition over the whole cycle, not one for each micro-step */
    int pass;        /* runs with the same number are alternatives; -1: no part of the cycle */
    int64_t samples; /* of a repetition of an evaluation; 0: the micro-batch */
    int partner;     /* of a forward or backward run: the other one that runs the same graph for the
                        same micro-steps, so that what the last one makes may be kept from one to
                        the other; -1: there is none, as of all other kinds */
};

/* A cell of the program, and its persistent values. */
struct qn_cell_of {
    const char *name;
    qn_cell_kind kind;
    struct qn_operand operand; /* of a cell of samples the batch is still symbolic */
    double first;              /* what its elements are at the beginning of a training */
    int64_t start;             /* of a ring: updates of which no row stays */
    int value, gradient;       /* gradient -1: none is wanted */
    int slot;                  /* index of its position in the control block */
};

/* The runs and cells that a plan was asked for. */
struct qn_run_set {
    struct qn_run_of run[QN_MAX_RUNS];
    int n_runs;
    struct qn_cell_of cell[QN_MAX_CELLS];
    int n_cells;
    bool zeroed; /* several runs go backward, or a micro-step may run none of them: accumulators of
                    the cycle are set to 0 at its start; else the first micro-step writes them */
};

/* Parameters that qn_freeze left untrained: how many tensors and numbers, and the bytes of
 * gradients, masters and slots that they would have. */
struct qn_frozen {
    int tensors;
    int64_t parameters, bytes;
};

/* Groups of parameters of whose gradients the norms are told. */
struct qn_norm_groups {
    const char **name; /* QN_MAX_NORM_GROUPS of them have room */
    int count;
    int *of;                                /* by parameter: its group; -1: none */
    const struct qn_norm_groups_attr *attr; /* of the operator */
    int table, norms; /* values: the group of each chunk, and the result; -1: there are no groups */
};

/* What stays on the device from update to update, the same for every batch size. */
struct qn_persist {
    struct qn_bound *graphs;
    int n_graphs;
    struct qn_run_set runs;
    struct qn_value *values;
    int n_values;
    struct qn_parameter *parameters;
    struct qn_moving *moving;
    int n_parameters, n_moving;
    const struct qn_op *optimizer;            /* as it was asked for; blocks have their own */
    const struct qn_optimizer_attr *settings; /* of the optimizer */
    const struct qn_average_attr *averaging;  /* NULL: parameters have no averages */
    struct qn_block blocks[QN_MAX_BLOCKS];
    int n_blocks;
    int n_chunks; /* of all blocks */
    struct qn_frozen frozen;
    int control; /* value of the control block */
    bool early;  /* parameters are updated in the micro-step, as their gradients complete */
    int norms;   /* value of early updates, and of a shard: the norms of all chunks; -1 */
    struct qn_shard shard;
    struct qn_norm_groups groups;
};

/* A store copies a value to host memory, a fetch brings it back. */
enum qn_task_kind { QN_TASK_GROUP, QN_TASK_UPLOAD, QN_TASK_DOWNLOAD, QN_TASK_STORE, QN_TASK_FETCH };

/* `operand` has the shape under which the node sees the value: of a view, the view's shape. */
struct qn_use {
    int value;
    struct qn_ref ref;
    struct qn_operand operand;
};

struct qn_output_use {
    int value;
    struct qn_ref ref;
    struct qn_operand operand;
    int in_place;     /* value that the task reads and whose bytes the write may take over; -1 */
    bool accumulates; /* adds to the present content (beta 1), in every micro-step */
};

struct qn_task {
    enum qn_task_kind kind;
    const char *name;
    int node;   /* -1: a task that belongs to no node, such as the optimizer */
    int output; /* of a download: number of the graph's output */
    const struct qn_op *op;
    const void *attr;
    const struct qn_group *group;
    int variant, setting; /* number in group->variant; number of that variant's setting */
    bool backward, repeatable;
    struct qn_use reads[QN_MAX_READS];
    struct qn_output_use writes[QN_MAX_WRITES];
    int n_reads, n_writes;
    int64_t scratch; /* bytes */
    int64_t blas_temp;
    double flops, bytes, seconds;
    int launches;
    bool measured; /* `seconds` was measured at exactly this batch; else it is estimated */
};

struct qn_problem {
    const struct qn_persist *persist;
    const struct qn_bound *bound; /* of the problem's graph */
    int run;                      /* of persist->runs; -1: the update, or the start of a cycle */
    const struct qn_facts *facts;
    int64_t batch;
    struct qn_value *values; /* first those of `persist`, with the numbers that they have there */
    int n_values;
    struct qn_task
        *tasks; /* forward tasks, then backward tasks, each after the tasks that write
                   what it reads; then store and fetch of each value that may be parked */
    int n_tasks, n_forward;
    int n_parking; /* stores and fetches: all that a step list may leave out */
    bool kept; /* of a kept micro-step: the forward tasks are those of `run`'s partner, and other
                  runs come before the first backward task */
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
    const struct qn_tuning *tuning; /* params->tuning, read; NULL: there is none */
    double calibration; /* factor of estimated seconds (qn_seconds_calibrate); 0: nothing timed */
    int64_t kept;       /* the micro-batch tuned first (struct qn_kept); 0: none */
    double must_gain;   /* to replace `kept` a micro-batch is this many times as fast; >= 1 */
    const struct qn_lists *lists; /* candidates of local search (improve.h), by run; NULL: none */
    bool early;                   /* lay out what is persistent for early updates */
    bool park;                    /* add stores and fetches */
    bool *too_large; /* set when a tensor is above the largest allocation or its bytes overflow, so
                        that a smaller batch may fit; NULL: not wanted */
    unsigned without_seeds; /* bit per enum qn_seed: left out of mode "auto", for tests */
};

/* The largest effective batch, which is that of cycle 0. */
int64_t qn_largest_batch(const struct qn_plan_params *params);
/* Samples of the whole cycle of batch size i, and the most of all. */
static inline int64_t qn_whole_cycle(const struct qn_plan_params *params, int i)
{
    return params->whole[i] ? params->whole[i] : params->batch[i];
}
int64_t qn_largest_cycle(const struct qn_plan_params *params);
/* One sample group of the graph, at most the largest batch: the batch at which shapes that do not
 * depend on the batch are computed. */
int64_t qn_one_group(const struct qn_plan_params *params, const struct qn_graph *graph);

/* The micro-batch must be a multiple of this: the least common multiple of all graphs' sample
 * groups; -1 on overflow. */
int64_t qn_persist_batch_group(const struct qn_persist *persist);

/* Lays out the persistent values of graphs that share parameters and state by name. QN_ERR_MEMORY:
 * a tensor is above the largest allocation; QN_ERR_SHAPE: two graphs describe a tensor differently.
 * The log names the tensor. */
qn_status qn_persist_make(const struct qn_lowering *how, const struct qn_graph *const *graphs,
                          int n_graphs, const struct qn_run_set *runs, struct qn_persist *persist);

/* Whether the run goes backward; qn_runs_train: whether some run of the program does. */
/* Samples of its repetitions under a micro-batch, if they are not the whole cycle. */
static inline int64_t qn_run_samples(const struct qn_run_of *run, int64_t micro_batch)
{
    return run->samples ? run->samples : micro_batch;
}

static inline bool qn_run_trains(const struct qn_run_of *run)
{
    return run->what == QN_RUN_TRAIN || run->what == QN_RUN_BACKWARD;
}
bool qn_runs_train(const struct qn_run_set *runs);

/* The number of a problem's graph. */
static inline int qn_graph_of(const struct qn_problem *problem)
{
    return (int)(problem->bound - problem->persist->graphs);
}

/* The graph of a run. */
static inline const struct qn_graph *qn_run_graph(const struct qn_persist *persist, int run)
{
    return persist->graphs[persist->runs.run[run].graph].graph;
}

/* Whether what a cell holds is saved, and as it was after a cycle that changes nothing. */
static inline bool qn_cell_is_kept(const struct qn_cell_of *cell)
{
    return cell->kind == QN_CELL_RING || cell->kind == QN_CELL_TABLE;
}

/* The cell of that name, or NULL. */
const struct qn_cell_of *qn_cell_named(const struct qn_run_set *runs, const char *name);
/* The cell of samples that a node is the input of; NULL: it is of none. */
const struct qn_cell_of *qn_cell_of_samples(const struct qn_run_set *runs,
                                            const struct qn_node *node);
/* Bytes of one row, and whether single rows can be filled. */
int64_t qn_cell_row_bytes(const struct qn_cell_of *cell);
/* Bytes of the rows that a sample has in a cell of samples. */
int64_t qn_cell_sample_bytes(const struct qn_cell_of *cell);
bool qn_cell_forgets(const struct qn_cell_of *cell);
/* Sets used[node] for the nodes that a repetition of the run computes. */
void qn_run_mark(const struct qn_run_set *runs, const struct qn_run_of *run,
                 const struct qn_graph *graph, bool *used);

/* The state of a block, or of a parameter's block, that corrects parameters in bf16; -1: none does.
 */
int qn_block_correction(const struct qn_block *block);
int qn_correction_of(const struct qn_persist *persist, const struct qn_parameter *parameter);

/* The rows that a block's chunk table has, of which there are at most block->chunks; gives how
 * many. Elements are counted from the beginning of the block, or of what is updated alone: with
 * early updates a parameter, of a shard a range. */
int qn_block_table(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table);

/* The part of slot `slot` of its block that a range has; slot -1: of the block's elements. */
struct qn_state_part qn_range_part(const struct qn_persist *persist, const struct qn_range *range,
                                   int slot);

/* The persist->n_chunks numbers of the table of persist->groups. */
void qn_norm_groups_table(const struct qn_persist *persist, int32_t *table);

/* Lowers one repetition of a run over `batch` samples; one of a backward run together with that of
 * its partner; the start of a cycle, if runs.zeroed; the update. */
qn_status qn_lower_run(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                       int64_t batch, struct qn_problem *problem);
qn_status qn_lower_kept(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                        int64_t batch, struct qn_problem *problem);
qn_status qn_lower_start(const struct qn_lowering *how, const struct qn_persist *persist,
                         struct qn_problem *problem);
qn_status qn_lower_update(const struct qn_lowering *how, const struct qn_persist *persist,
                          struct qn_problem *problem);
/* What comes before the update where members share it: the norms of this one's chunks. */
qn_status qn_lower_norms(const struct qn_lowering *how, const struct qn_persist *persist,
                         struct qn_problem *problem);

/* The call of a group's task, without addresses: every operand of its node has its shape, except
 * gradients that are not wanted and alternatives that were not chosen. `first`: the accumulators of
 * the cycle are written, not added to. */
void qn_task_call(const struct qn_problem *problem, const struct qn_task *task, bool first,
                  struct qn_call *call);

/* What the task does, as shown to people: the name of its group, or "upload" and the like. */
static inline const char *qn_task_does(const struct qn_task *task)
{
    static const char *const transfers[] = {[QN_TASK_UPLOAD] = "upload",
                                            [QN_TASK_DOWNLOAD] = "download",
                                            [QN_TASK_STORE] = "store",
                                            [QN_TASK_FETCH] = "fetch"};
    return task->group ? task->group->name : transfers[task->kind];
}

/* How many tasks every step list must run: tasks[0] up to this number. */
static inline int qn_tasks_required(const struct qn_problem *problem)
{
    return problem->n_tasks - problem->n_parking;
}

/* Whether a step list may run the task again. */
static inline bool qn_task_repeats(const struct qn_task *task)
{
    return task->repeatable && task->kind == QN_TASK_GROUP;
}

static inline bool qn_task_parks(const struct qn_task *task)
{
    return task->kind == QN_TASK_STORE || task->kind == QN_TASK_FETCH;
}

/* The number of the value's block; `value` itself if it is in none. */
static inline int qn_value_root(const struct qn_problem *problem, int value)
{
    return problem->values[value].block >= 0 ? problem->values[value].block : value;
}

#endif
