/* SPDX-License-Identifier: MIT
 *
 * Bytes in, plan out. A plan is a pure function of (graph, device facts, params): it chooses the
 * micro-batch, what is recomputed and the address of every byte, proves the peak, and can be
 * printed, compared and hashed without a device.
 */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include <quern/device.h>
#include <quern/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safety: immutable once made; safe to read from several threads.
 * Lifetime: until qn_plan_destroy; outlives its graph, must outlive its trainers. */
typedef struct qn_plan qn_plan;

/* What device memory is for. X(name, text) */
#define QN_TAG_MAP(X)                                                                              \
    X(PARAMETERS, "parameters")                                                                    \
    X(STATE, "state")                                                                              \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(AVERAGES, "averages")                                                                        \
    X(INPUTS, "inputs")                                                                            \
    X(BANKS, "banks")                                                                              \
    X(CACHES, "caches")                                                                            \
    X(TABLES, "tables")                                                                            \
    X(KEPT, "kept activations")                                                                    \
    X(RECOMPUTED, "recomputed activations")                                                        \
    X(ACTIVATION_GRADIENTS, "activation gradients")                                                \
    X(SCRATCH, "scratch")

typedef enum qn_tag {
#define QN_TAG_ENUM(name, text) QN_TAG_##name,
    QN_TAG_MAP(QN_TAG_ENUM)
#undef QN_TAG_ENUM
        QN_TAG_COUNT
} qn_tag;

QN_API const char *qn_tag_name(qn_tag tag);

/* The names of the optimizers, one after another ("sgd", "adam", ...); NULL past the last.
 * Thread-safety: Safe. */
QN_API const char *qn_optimizer_name(int index);
/* The type of parameters (qn_graph_params.parameter_storage) that the optimizer is made for:
 * QN_BF16 if it keeps 8 more bits of such in the place of a master, else QN_F32. Thread-safety:
 * Safe. */
QN_API qn_dtype qn_optimizer_storage(const char *name);

/* PyTorch's definitions and names where it has the optimizer. Zero means default. */
typedef struct qn_optimizer {
    const char *name; /* one of qn_optimizer_name; NULL: "sgd". The learning rate of adafactor is a
                         share of the root mean square of a parameter */
    double momentum;  /* of sgd, below 1; 0: none */
    bool nesterov;    /* needs momentum */
    bool no_master;   /* of parameters in f16 or bf16 (qn_graph_params.parameter_storage): they are
                         updated themselves, rounded stochastically so that no small step is lost
                         on average (Gupta et al. 2015). Else each has a master in f32, which is
                         updated and saved, and they are it rounded to nearest. Of flash_adamw those
                         in bf16 have 8 more bits in any case, with which they are updated and
                         saved as f32, and no master */
    double beta1, beta2; /* below 1; 0: the optimizer's own, 0.9 and 0.999 of Adam's kin and
                            apollo, 0.9 and 0.99 of lion */
    double eps; /* of Adam's kin and apollo; 0: 1e-8. Of adafactor, which adds it to squares of
                   gradients; 0: 1e-30 */
    double ema; /* below 1; above 0: trained parameters have an exponential moving average in f32,
                   average = ema * average + (1 - ema) * parameter after each update that is not
                   skipped, which begins as the parameter does (Polyak and Juditsky 1992).
                   Evaluations read the averages, and files of weights hold them; training and
                   qn_trainer_read go by the parameters */
} qn_optimizer;

typedef enum qn_recompute_mode {
    QN_RECOMPUTE_AUTO,   /* whatever is fastest within the budget */
    QN_RECOMPUTE_NONE,   /* every activation is kept */
    QN_RECOMPUTE_ALL,    /* only the boundaries between segments are kept */
    QN_RECOMPUTE_CHOSEN, /* the nodes named by qn_recompute or `chosen` are recomputed */
} qn_recompute_mode;

/* How long the search for what to recompute takes; counted in moves, so that it gives the same on
 * every machine. */
typedef enum qn_plan_effort {
    QN_EFFORT_DEFAULT,  /* less than a second for small networks, some for a thousand operators */
    QN_EFFORT_INSTANT,  /* simple plans alone */
    QN_EFFORT_THOROUGH, /* minutes */
} qn_plan_effort;

enum { QN_MAX_BATCH_SIZES = 16, QN_MAX_NORM_GROUPS = 64 };
enum { QN_MAX_GROUP = 1024 }; /* members */

typedef struct qn_plan_params {
    int64_t budget; /* bytes of all device buffers together; 0: three quarters of the device's
                       global memory */
    int64_t batch[QN_MAX_BATCH_SIZES]; /* effective batch sizes that training will use, ended by 0
                                          if they are fewer */
    int64_t micro_batch;               /* 0: chosen; above the batch: the batch */
    qn_recompute_mode recompute;
    qn_plan_effort effort;
    const char *chosen;    /* names of nodes, comma-separated, added to those of qn_recompute */
    const char *variants;  /* "linear=clblast,conv2d=gpu": kernel variants to use where they fit,
                              before all others; "linear=cpu:8x2" names a setting too; "" or NULL:
                              none */
    const char *tuning;    /* what qn_tune found (tune.h): the variants to use where `variants` says
                              nothing; NULL or "": nothing was tuned */
    const char *cache_dir; /* plans that were found, for all budgets; as in qn_device_params */
    qn_optimizer optimizer;
    bool early_updates; /* each parameter may be updated as soon as its gradient is complete, which
                           then makes room for others: where this makes a plan possible or faster,
                           the whole batch is one micro-step, and the storage is not f16 (its loss
                           scale waits for all gradients). The numbers are the same to the bit, but
                           for an update whose gradient is not finite: else it changes nothing, and
                           here parameters whose own gradient is finite change. So it has to be
                           asked for. A trainer of such a plan cannot clip, nor give gradients. */
    bool park; /* what the forward pass makes may be copied to host memory, and back before it is
                  read again: where the transfers take less time than making it again, or nothing
                  else frees so many bytes. The numbers are the same to the bit. It has to be asked
                  for because it takes host memory, qn_plan_info.parked_bytes. */
    const char *norm_groups; /* groups of parameters of whose gradients qn_trainer_grad_norms gives
                                the norms: patterns of names as of qn_freeze_named, each a group,
                                of the trained parameters that it is the first to match; at most
                                QN_MAX_NORM_GROUPS. A pattern that is left none is refused. "auto":
                                a group for each layer by name, "layer1.0" or "transformer.h.3", as
                                qn_plan_norm_group has it. NULL or "", and programs that train
                                nothing: none. No number of the training changes; the norms take
                                some bytes of the budget. */
    /* Of a group (group.h) whose members share the optimizer's work: how many there are, and the
     * number of the one that the plan is for. It has the optimizer's state, the masters and the
     * averages (optimizer.ema) of its own chunks of parameters alone, and sends out what it has
     * updated. 0 or 1 member: there are no others, or each has all. No early_updates. */
    int members, member;
    int64_t whole[QN_MAX_BATCH_SIZES]; /* of a group: samples of the whole cycle of which batch[i]
                                          is the plan's share, for runs and cells of the whole
                                          cycle; 0: batch[i] */
} qn_plan_params;

/* --- programs of several runs --- */

/* What of a graph a run runs. */
typedef enum qn_run_what {
    QN_RUN_TRAIN,    /* forward, and backward from the losses */
    QN_RUN_FORWARD,  /* forward alone, as in training (dropout) */
    QN_RUN_BACKWARD, /* forward again, and backward from the gradients that cells hold of outputs;
                        the random numbers are those of the forward run, by their key. Micro-steps
                        are taken from the last to the first. What the last one has made in a
                        QN_RUN_FORWARD of the graph is kept where it fits, so that its forward pass
                        does not run again: no bit depends on that. Not where the graph reads
                        rings or caches, or one of the two runs has alternatives */
    QN_RUN_EVALUATE, /* forward as in evaluation; no part of a cycle, but when it is called for:
                        qn_trainer_evaluate_run */
} qn_run_what;

/* One run of a program. Zero means default. */
typedef struct qn_run {
    const char *name;      /* unique; for people and
                              qn_trainer_evaluate_run. NULL: "run N", from 0 */
    const qn_graph *graph; /* borrowed until the plan is made; the same pointer is the same graph.
                              Graphs share parameters and running averages by name; a parameter
                              starts as the first graph that has it says */
    qn_run_what what;
    bool whole;       /* once a cycle, over all its samples; else once for each micro-step */
    bool alternative; /* to the run before: for each micro-step qn_cycle.choose takes one of them */
    int64_t samples;  /* of an evaluation: at most so many at a time; 0: the plan's micro-batch */
} qn_run;

typedef enum qn_cell_kind {
    QN_CELL_SAMPLES, /* a row for each sample of the cycle; lives as long as the cycle. Written by
                        runs for each micro-step, read by whole runs */
    QN_CELL_RING,    /* the last `rows` rows; lives as long as the training and is saved. A run
                        reads what stood there before its repetition, whose own rows come last;
                        evaluations read it and add nothing */
    QN_CELL_APPEND,  /* up to `rows` rows, one after another; lives as long as the trainer or until
                        qn_trainer_clear_cell. Runs without a backward pass append first, and read
                        their own rows too */
    QN_CELL_TABLE,   /* what an operator keeps of rings, `rows` rows: the output of its name is made
                        when the rings have taken the rows of a repetition, in the place of what it
                        was, and follows where they forget. Lives as long as they do and is saved
                        and undone with them; evaluations change it not */
} qn_cell_kind;

/* A named array on the device that outlives a run. Outputs of its name (qn_output) are written to
 * it, inputs of its name (qn_input; qn_cell_input for rings and appending) are what it holds. */
typedef struct qn_cell {
    const char *name;
    qn_cell_kind kind;
    int64_t rows;  /* of samples 0 */
    double first;  /* every element before it is written */
    bool gradient; /* of samples: runs that read it give its gradient, from which runs of kind
                      QN_RUN_BACKWARD go on */
    int64_t start; /* of rings: updates of which no row stays: each is `first` again as soon as its
                      repetition is over. As with qn_trainer_limit_cell, rows have a multiple of 4
                      bytes */
} qn_cell;

enum { QN_MAX_RUNS = 16, QN_MAX_CELLS = 80 };

/* A program: runs in the order in which a cycle takes them, then the update, unless no run has a
 * backward pass. Runs that follow one another and are alternatives take turns micro-step by
 * micro-step; every other run sees the whole cycle before the next begins. */
typedef struct qn_run_list {
    const qn_run *runs;
    int n_runs; /* 1 to QN_MAX_RUNS */
    const qn_cell *cells;
    int n_cells; /* up to QN_MAX_CELLS */
} qn_run_list;

/* The facts of a plan for programs; qn_plan_text and qn_plan_json give all of it. */
typedef struct qn_plan_info {
    int64_t budget_bytes;
    int64_t peak_bytes; /* sum of all buffers that a trainer of this plan creates */
    int64_t live_bytes; /* largest sum of live bytes at one moment */
    int64_t micro_batch, micro_steps, remainder; /* of the largest effective batch */
    int recomputed_steps;                        /* forward steps that a micro-step runs again */
    int steps;                                   /* of a micro-step, recomputed ones included */
    double seconds;                              /* predicted for one update of the largest batch */
    double keep_all_seconds; /* the same at the same micro-batch when nothing is recomputed */
    double backward_seconds; /* of `seconds`: the backward pass of the last micro-step, in which
                                gradients become complete */
    double update_seconds;   /* of `seconds`: what follows when all gradients are complete */
    int64_t smallest_budget; /* for which a plan of these params is found */
    int64_t next_budget;     /* the least with which the plan would be faster; 0: there is none */
    int64_t bytes_by_tag[QN_TAG_COUNT]; /* at the moment of the largest live bytes */
    bool early_updates;                 /* parameters are updated as their gradients complete */
    int64_t parked_bytes;       /* of host memory that a trainer of this plan takes for parking */
    double parked_seconds;      /* predicted for the transfers of one update of the largest batch */
    int64_t trained_parameters; /* numbers that have a gradient */
    int frozen_tensors;         /* that qn_freeze and its like left untrained */
    int64_t frozen_parameters;  /* numbers that they have */
    int64_t frozen_bytes; /* of gradients, f32 masters and optimizer state that they would have;
                             what  activations no longer live for their sake comes on top */
    int64_t micro_steps_again; /* of an update of the largest batch: micro-steps of runs of kind
                                  QN_RUN_BACKWARD for which the forward pass runs again; not those
                                  whose activations are kept since the forward run */
    int64_t row_bytes; /* of a sample, in the cells that whole runs read: what members of a group
                          send one another of their samples in the middle of a cycle */
    int row_cells;     /* how many cells these are, one after another */
    double measured_share; /* of `seconds`, inputs and results aside: what tuning timed on the
                              device at the very batch of its step; 1: all */
    int pools;
    uint64_t hash;
    const char *optimizer;
} qn_plan_info;

/* A plan that the search found: no other needs fewer bytes and less time. */
typedef struct qn_plan_point {
    int64_t bytes;  /* the least budget for it */
    double seconds; /* predicted for one update of every batch size of the params together; at
                       another micro-batch than the first that was tuned a tenth more, and more
                       where timings varied: that one is left only for what is no noise */
    int64_t micro_batch;
    int recomputed_steps; /* of a micro-step */
    bool early_updates;   /* parameters are updated as their gradients complete */
    int64_t parked_bytes; /* of host memory */
} qn_plan_point;

/* Makes a plan. Facts, params and all that it needs of the graph are copied; the graph's log
 * becomes its own and gets the reason of a refusal. QN_ERR_BUDGET: nothing fits; the log and
 * *smallest (may be NULL) give the smallest budget for which this planner finds a plan, 0 if there
 * is none. QN_ERR_ARGUMENT, QN_ERR_SHAPE: graph (its own first error included), facts or params are
 * not usable. QN_ERR_MEMORY: a tensor is above the largest allocation at every micro-batch, or the
 * host has no memory. QN_ERR_DEVICE: no kernel variant of some operator fits the device. */
QN_API qn_status qn_plan_create(qn_plan **plan, const qn_graph *graph, const qn_facts *facts,
                                const qn_plan_params *params, int64_t *smallest);
/* The same for a program of several runs; qn_plan_create is that of one run of kind QN_RUN_TRAIN
 * and, if the graph has outputs, one of kind QN_RUN_EVALUATE. The log of the first graph is taken.
 * The peak is the largest over all runs. Moreover QN_ERR_ARGUMENT: a cell that nobody writes or
 * reads, or in an order that cannot be; QN_ERR_SHAPE: graphs that differ in what they share. */
QN_API qn_status qn_plan_create_runs(qn_plan **plan, const qn_run_list *list, const qn_facts *facts,
                                     const qn_plan_params *params, int64_t *smallest);
QN_API void qn_plan_destroy(qn_plan **plan);

/* What was planned, and the params as given but for the budget, which is filled in; borrowed, valid
 * as long as the plan; NULL of NULL. */
QN_API const qn_plan_info *qn_plan_facts(const qn_plan *plan);
QN_API const qn_plan_params *qn_plan_settings(const qn_plan *plan);

/* The names of the plan's norm_groups, one after another; NULL past the last. Of patterns they are
 * these. Of "auto" the part of a parameter's name up to the first number between dots, or, where
 * there is none, up to its last dot, in the order of the parameters: "transformer.h.3" and
 * "transformer.wte". If these are more than QN_MAX_NORM_GROUPS, the last component of each is left
 * out, and so on ("transformer.h"); if that is of no help, there is one group "*". Valid as long as
 * the plan. */
QN_API const char *qn_plan_norm_group(const qn_plan *plan, int index);

/* What other budgets would give, by bytes upwards: number of points, of which the first `room` are
 * copied to `points`. The first has the smallest budget, the last is the fastest of all; the plan
 * itself is the last within its budget. */
QN_API int qn_plan_frontier(const qn_plan *plan, qn_plan_point *points, int room);

/* For people, and as JSON; freed by the caller with qn_free, as all texts here. NULL when out of
 * memory. */
QN_API char *qn_plan_text(const qn_plan *plan);
QN_API char *qn_plan_json(const qn_plan *plan);
/* One line per node, group, chosen kernel variant and its setting, as JSON: the variant table. */
QN_API char *qn_plan_variants_json(const qn_plan *plan);
/* Where the tensors of this name (of a node or parameter) live, for people: size, tag and address,
 * which steps of each phase write and read them, and why they are kept or made again in between.
 * *text is freed by the caller with qn_free. QN_ERR_ARGUMENT: no tensor has the name. */
QN_API qn_status qn_plan_explain(const qn_plan *plan, const char *name, char **text);
/* All arrays on the device with their addresses, as JSON: "phases" with the names of their "steps",
 * which lie one after another on a timeline from "start" on; bytes alive at each position of it,
 * "live"; and "arrays", each a list: name, number in "tags", first and last position, bytes, number
 * in "pools", offset, and why it is there, for people. */
QN_API char *qn_plan_memory_json(const qn_plan *plan);
/* Bytes over the steps of the whole cycle, as an SVG picture. */
QN_API char *qn_plan_svg(const qn_plan *plan);

/* --- placement alone --- */

/* A buffer of a lifetime table: `size` bytes during the half-open interval [lower, upper) of times
 * from 0 on. */
typedef struct qn_lifetime {
    int64_t lower, upper, size;
    int64_t offset; /* what qn_place finds */
} qn_lifetime;

typedef struct qn_place_params {
    int64_t capacity; /* bytes; 0: as many as live at the same time, the least there can be */
    int64_t nodes;    /* of the search, before it gives up; 0: 2^28, which takes minutes */
    qn_log log;
} qn_place_params;

/* Gives each of `count` buffers an offset within the capacity so that no two that live together
 * overlap, by an exact search; `params` may be NULL. *bound (may be NULL): the most bytes that live
 * at the same time. The same arguments give the same offsets. QN_ERR_BUDGET: there are no such
 * offsets, or the search gave up; the log says which. QN_ERR_MEMORY: also where more than 2^25
 * pairs of buffers live together. Thread-safety: Safe. */
QN_API qn_status qn_place(qn_lifetime *buffers, int count, const qn_place_params *params,
                          int64_t *bound);

#ifdef __cplusplus
}
#endif
#endif
