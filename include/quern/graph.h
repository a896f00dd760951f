/* SPDX-License-Identifier: MIT
 *
 * A graph: nodes in building order. Errors stick: after the first one every function gives no
 * tensor, so that a model reads like its mathematics and is checked once, with qn_graph_status.
 */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H

#include <quern/log.h>
#include <quern/tensor.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safety: Unsafe. Lifetime: until qn_graph_destroy; plans copy what they need. */
typedef struct qn_graph qn_graph;

typedef struct qn_graph_params {
    qn_log log;
    qn_dtype storage;           /* of activations: QN_F32 (default), QN_F16 or QN_BF16; gradients of
                                   parameters, statistics and losses stay f32 */
    qn_dtype parameter_storage; /* of parameters of rank 2 or more: QN_F32 (default), QN_F16 or
                                   QN_BF16; biases and scales stay f32. qn_optimizer.no_master says
                                   whether there is an f32 master of each */
    bool couples; /* samples may see each other, as in a loss over the whole cycle: the graph runs
                     only in whole runs (plan.h), since else its gradient would follow from the
                     plan, or at a micro-batch that is given (qn_plan_params.micro_batch) and
                     thereby a part of the method */
} qn_graph_params;

QN_API qn_status qn_graph_create(qn_graph **graph, const qn_graph_params *params);
/* Frees and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_graph_destroy(qn_graph **graph);

/* QN_OK, or the first error; `qn_graph_error` is its one line, "" when there is none. */
QN_API qn_status qn_graph_status(const qn_graph *graph);
QN_API const char *qn_graph_error(const qn_graph *graph);
/* For functions that build models: the type of activations, which attention wants its queries, keys
 * and values in, be they inputs; QN_F32 of NULL. */
QN_API qn_dtype qn_graph_storage(const qn_graph *graph);
/* For functions that build models: makes QN_ERR_ARGUMENT with this line stick, unless an earlier
 * error did, and gives the graph's status. */
QN_API qn_status qn_graph_refuse(qn_graph *graph, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* Data that arrives with each micro-batch. dim[0] must be a multiple of QN_BATCH. Names of nodes
 * and parameters are unique and have at most 100 bytes. */
QN_API qn_tensor qn_input(qn_graph *graph, const char *name, qn_dtype dtype, int rank,
                          const int64_t *dim);
/* The name of an input that data is for, in the order in which they were made, and its tensor (may
 * be NULL); NULL past the last. */
QN_API const char *qn_graph_input(const qn_graph *graph, int index, qn_tensor *tensor);

/* What a ring or appending cell of the same name holds (plan.h): dim[0] is the cell's rows. No
 * gradient goes into it. The graph runs only in programs that have the cell. */
QN_API qn_tensor qn_cell_input(qn_graph *graph, const char *name, qn_dtype dtype, int rank,
                               const int64_t *dim);

/* A network inside a larger one, such as a tower of a dual encoder. */
typedef struct qn_scope {
    const char *prefix; /* names of inputs, outputs and nodes begin with it: "query." makes "images"
                           "query.images"; from 1 to 100 bytes */
    const char *parameters; /* of parameters instead, and one that is there with the same shape is
                               taken again, so that two networks have the same; "": they have their
                               own names. NULL: as `prefix`, and each is new */
    int64_t each; /* above 1: an input has so many rows for each sample, (batch, each, ...), and the
                     network sees each * batch samples; 0: 1 */
} qn_scope;

/* From now on until the scope ends; scopes do not nest. */
QN_API void qn_graph_begin_scope(qn_graph *graph, const qn_scope *scope);
QN_API void qn_graph_end_scope(qn_graph *graph);

/* How a parameter starts. All are drawn from (seed, name, element). The numbers are finite. */
typedef enum qn_init_kind {
    QN_INIT_CONSTANT, /* a */
    QN_INIT_UNIFORM,  /* [a, b) */
    QN_INIT_NORMAL,   /* mean a, standard deviation b */
} qn_init_kind;

typedef struct qn_init {
    qn_init_kind kind;
    double a, b;
} qn_init;

/* He et al. 2015, for layers followed by a rectifier: normal, standard deviation sqrt(2 / fan_in).
 */
QN_API qn_init qn_init_he(int64_t fan_in);
/* PyTorch's default of linear and convolution layers: uniform, bound 1 / sqrt(fan_in). */
QN_API qn_init qn_init_fan_in(int64_t fan_in);
QN_API qn_init qn_init_constant(double value);

/* A trainable f32 tensor. `init` NULL: zeros. One that no loss reaches is held and saved like a
 * frozen one. */
QN_API qn_tensor qn_parameter(qn_graph *graph, const char *name, int rank, const int64_t *dim,
                              const qn_init *init);
/* A frozen parameter has neither gradient nor optimizer state; `no_decay` exempts it from weight
 * decay (the default for parameters of fewer than two dimensions). */
QN_API void qn_freeze(qn_graph *graph, qn_tensor parameter);
QN_API void qn_no_decay(qn_graph *graph, qn_tensor parameter, bool no_decay);

/* The same for all parameters made so far whose names match one of the patterns: '*' is any
 * characters, dots included, '?' any one; patterns are separated by commas. A pattern that matches
 * none is QN_ERR_ARGUMENT with the names nearest to it. The factors, from 0 to 1e6, are of the
 * learning rate (1 otherwise) and of weight decay (1, or 0 of parameters of fewer than two
 * dimensions and after qn_no_decay); of several calls that name a parameter the last holds. A
 * factor of 0 leaves gradient and optimizer state where they are: frozen parameters have none. */
QN_API void qn_freeze_named(qn_graph *graph, const char *patterns);
QN_API void qn_scale_rate(qn_graph *graph, const char *patterns, double factor);
QN_API void qn_scale_decay(qn_graph *graph, const char *patterns, double factor);
/* Whether it is a parameter that is frozen. */
QN_API bool qn_frozen(const qn_graph *graph, qn_tensor parameter);
/* The name of a parameter, in the order in which they were made, and its tensor (may be NULL); NULL
 * past the last. */
QN_API const char *qn_graph_parameter(const qn_graph *graph, int index, qn_tensor *tensor);

/* An f32 array of `count` numbers that belong to the model and never change, copied. A number that
 * nobody took is added to the name. */
QN_API qn_tensor qn_constant(qn_graph *graph, const char *name, const float *values, int64_t count);

/* Names the node that made a tensor; names its state too ("bn1" -> "bn1.running_mean"). */
QN_API void qn_name(qn_graph *graph, qn_tensor tensor, const char *name);
/* Marks a tensor as a result that evaluation gives back under a name that no other output has
 * (NULL: the node's); at most 96. An operator made it and the batch is its dimension 0. */
QN_API void qn_output(qn_graph *graph, qn_tensor tensor, const char *name);
/* The name of a result, in the order in which they were marked, and its tensor (may be NULL); NULL
 * past the last. */
QN_API const char *qn_graph_output(const qn_graph *graph, int index, qn_tensor *tensor);
/* Takes a result back: evaluation does not give it any more. Its tensor; none if there is no such
 * output. In a scope the name is the scope's. */
QN_API qn_tensor qn_graph_take_output(qn_graph *graph, const char *name);
/* Chooses a node for recomputation: its results are dropped after the forward pass and made again
 * in the backward pass, under recompute mode QN_RECOMPUTE_CHOSEN. Where a plan makes one node of
 * several, such as a batch norm and the ReLU behind it, each of them stands for that node. */
QN_API void qn_recompute(qn_graph *graph, qn_tensor tensor);

typedef enum qn_reduction {
    QN_REDUCE_MEAN, /* sum of numerators / sum of weights, over the whole effective batch */
    QN_REDUCE_SUM,
} qn_reduction;

typedef struct qn_loss_params {
    qn_reduction reduction;
    double coefficient; /* 0: 1 */
    bool monitor;       /* it is only told: the coefficient is 0, whatever it says */
    qn_tensor weights; /* an input of the shape of `rows`: numerators are rows * weights, the weight
                          their sum; none: the weight is what the operator that made `rows` says
                          (cross entropy: labels that count, by class weight), else the count */
} qn_loss_params;

/* Declares what training minimises: the sum over all calls, at most 8. `rows` holds one numerator
 * an element, with the batch in dimension 0. `name` is unique among nodes; NULL: made up. */
QN_API void qn_loss(qn_graph *graph, qn_tensor rows, const char *name,
                    const qn_loss_params *params);

/* Shape and type of a tensor; sizes that depend on the batch are negative (see QN_BATCH). */
QN_API qn_shape qn_shape_of(const qn_graph *graph, qn_tensor tensor);
QN_API qn_dtype qn_dtype_of(const qn_graph *graph, qn_tensor tensor);

/* Samples that the micro-batch must be a multiple of: the least common multiple over operators that
 * couple samples (groups of batch norm), 1 where there are none or the graph is only evaluated; -1
 * when it does not fit. */
QN_API int64_t qn_graph_batch_group(const qn_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
