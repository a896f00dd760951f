/* SPDX-License-Identifier: MIT
 *
 * The graph as the planner and the trainer read it: nodes in building order, tensors by number.
 */
#ifndef QN_GRAPH_GRAPH_H
#define QN_GRAPH_GRAPH_H

#include "base/arena.h"
#include "op/control.h"
#include "op/op.h"

enum qn_node_kind { QN_NODE_INPUT, QN_NODE_PARAMETER, QN_NODE_CONSTANT, QN_NODE_OPERATOR };

struct qn_node {
    enum qn_node_kind kind;
    const char *name;
    uint32_t out; /* number of its first output tensor; the others follow */
    /* of an operator */
    const struct qn_op *op;
    const void *attr;
    uint32_t in[QN_MAX_IN]; /* tensor numbers; 0: absent */
    bool recompute;         /* chosen by qn_recompute */
    /* of a leaf */
    struct qn_operand leaf; /* dtype and shape, the batch still symbolic */
    struct qn_init init;
    const float *values; /* of a constant */
    bool frozen;
    float rate, decay; /* of a parameter: factors of learning rate and weight decay */
    bool cell;         /* an input that only a cell fills */
};

struct qn_graph_loss {
    uint32_t node; /* of the operator `loss` */
    int index;     /* its place in the control block: in the list, or among those of a plan */
    uint32_t rows; /* tensor of the numerators, before views */
    enum qn_reduction reduction;
    double coefficient;
};

struct qn_graph_output {
    uint32_t tensor;
    const char *name;
};

enum { QN_GRAPH_MAX_OUTPUTS = 96, QN_GRAPH_MAX_NAME = 100 };

/* Numbers of nodes + 1 by a hash of their names; 0: free (names.c). */
struct qn_node_names {
    uint32_t *slots;
    size_t room; /* a power of two, or 0 */
    int known;   /* so many nodes are in it */
    int used;
};

/* The line of a text that a node is being made for (form/read.c). */
struct qn_source {
    const char *file; /* begins messages; NULL: there is no text */
    int line;
    const char *name; /* of the operator that is applied next; NULL: made up */
    int64_t numbers;  /* of constants that may follow */
};

/* The scope of now; an empty prefix: there is none. */
struct qn_graph_scope {
    char prefix[QN_GRAPH_MAX_NAME + 1];
    char parameters[QN_GRAPH_MAX_NAME + 1];
    bool shared; /* parameters may be taken again */
    int64_t each;
};

struct qn_graph {
    struct qn_log log;
    qn_dtype storage, parameter_storage;
    bool couples;          /* as in qn_graph_params */
    struct qn_arena arena; /* names, attributes, constants */
    struct qn_node *nodes;
    int n_nodes, node_capacity;
    struct qn_tensor_entry {
        uint32_t node;
        int index;
        struct qn_operand symbolic; /* sizes that depend on the batch are negative */
    } * tensors;                    /* entry 0 is "none" */
    int n_tensors, tensor_capacity;
    struct qn_graph_loss losses[QN_MAX_LOSSES];
    int n_losses;
    struct qn_graph_output outputs[QN_GRAPH_MAX_OUTPUTS];
    int n_outputs;
    bool fused; /* qn_graph_fuse was here */
    bool
        evaluated; /* of a plan's: no run does anything else with it, so batch norm has no groups */
    bool warned;   /* qn_op_warn was */
    struct qn_node_names names;
    struct qn_source source;
    struct qn_graph_scope scope;
    qn_status status;
    char error[512];
};

/* A deep copy that shares nothing; NULL when out of memory. */
qn_graph *qn_graph_clone(const qn_graph *graph);

/* The number of the node of that name; -1: there is none. */
int qn_graph_named(qn_graph *graph, const char *name);
/* The name with the prefix of the scope; gives `text`. Cut off names are longer than
 * QN_GRAPH_MAX_NAME. */
enum { QN_SCOPED_BYTES = QN_GRAPH_MAX_NAME + 2 };
const char *qn_graph_scoped(const qn_graph *graph, const char *name, char text[QN_SCOPED_BYTES]);
/* The same of a parameter's. */
const char *qn_graph_scoped_parameter(const qn_graph *graph, const char *name,
                                      char text[QN_SCOPED_BYTES]);
/* What a network of the scope calls so: a node, or a parameter, which may be an earlier network's.
 * Of an input it is what the network sees. None: there is no such node. */
qn_tensor qn_graph_scoped_tensor(qn_graph *graph, const char *name);
/* To be told when a node has another name than before. */
void qn_graph_renamed(qn_graph *graph, int number);

/* Makes one node of a batch norm and the ReLU that alone reads it, and of chains of elementwise
 * operators, where that keeps no more memory: the batch norm stays, the last of a chain becomes the
 * operator `chain`, the others stay as nodes that nobody reads. Numbers, names and results remain;
 * a node that is chosen for recomputation passes that on to the one that does its work.
 * Once is enough: a second call changes nothing. False when out of memory. */
bool qn_graph_fuse(qn_graph *graph);

/* Shapes of every tensor and of every node's inner operands when the batch is `batch`. */
struct qn_shapes {
    struct qn_operand *tensors;  /* by tensor number */
    struct qn_shape_call *calls; /* by node number; of operators */
};

/* Allocated from `arena`. QN_ERR_SHAPE logs node and reason to `log`. */
qn_status qn_graph_shapes(const qn_graph *graph, int64_t batch, struct qn_arena *arena,
                          const struct qn_log *log, struct qn_shapes *shapes);

/* The shape rule of one operator at this batch, from the symbolic shapes of its inputs. */
qn_status qn_graph_node_shape(const qn_graph *graph, const struct qn_node *node, int64_t batch,
                              struct qn_shape_call *call);

/* The operand with every multiple of the batch multiplied out. */
void qn_operand_at(const struct qn_operand *symbolic, int64_t batch, struct qn_operand *concrete);

/* The least common multiple of two numbers above 0; -1 when it does not fit. */
int64_t qn_common_multiple(int64_t a, int64_t b);

/* The tensor that `tensor` is a view of, through any chain of views. */
uint32_t qn_graph_root(const qn_graph *graph, uint32_t tensor);

/* By tensor how often it is an operand or an output of the graph, for free(); NULL when out of
 * memory. */
int *qn_graph_uses(const qn_graph *graph);

/* Which nodes a training micro-step or an evaluation needs: sets used[node]. */
void qn_graph_mark_training(const qn_graph *graph, bool *used);
void qn_graph_mark_evaluation(const qn_graph *graph, bool *used);
/* Sets used[node] for all that the nodes already set are computed from. */
void qn_graph_mark_ancestors(const qn_graph *graph, bool *used);

/* Sets wanted[tensor] for each tensor whose gradient a training step needs: those computed from a
 * leaf n with gradient[n] >= 0. */
void qn_graph_mark_gradients(const qn_graph *graph, const int *gradient, bool *wanted);

#endif
