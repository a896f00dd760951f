/* SPDX-License-Identifier: MIT
 *
 * Graphs as text: one node a line with its name, operator, operands and attributes, which are those
 * of ops.h. docs/graph-file.md is the grammar on one page.
 *
 *     input images u8 Bx1x28x28
 *     input labels i32 B
 *     x = normalize(images) mean=0.286 deviation=0.353
 *     x1 = flatten(x)
 *     fc1 = linear_activation(x1) features=128 activation=relu
 *     fc2 = linear(fc1) features=10
 *     loss = softmax_cross_entropy(fc2, labels)
 *     objective = loss(loss)
 *     output logits = fc2
 *     output loss
 *
 * Every text is untrusted: what does not fit is refused with one line, `NAME:LINE: reason`.
 */
#ifndef QUERN_GRAPH_FILE_H
#define QUERN_GRAPH_FILE_H

#include <quern/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds of a text: bytes, bytes of a line, nodes, and numbers of all constants together. */
enum {
    QN_GRAPH_FILE_BYTES = 16 << 20,
    QN_GRAPH_FILE_LINE = 64 << 10,
    QN_GRAPH_FILE_NODES = 100000,
    QN_GRAPH_FILE_NUMBERS = 16 << 20,
};

/* Builds what the text says into a graph that has no node yet, or into a scope of one
 * (qn_graph_begin_scope); its storage types stay as they were asked for. `name` begins every
 * message; NULL: "graph". The error, QN_ERR_FORMAT or QN_ERR_MEMORY, sticks to the graph, as of the
 * functions that build one. */
QN_API qn_status qn_graph_read(qn_graph *graph, const char *text, const char *name);
/* The same from a file; QN_ERR_IO: it cannot be read. */
QN_API qn_status qn_graph_load(qn_graph *graph, const char *path);

typedef struct qn_graph_write_params {
    qn_log log;
    bool summary; /* behind each line, as a comment: the shape, and of one sample floating-point
                     operations of the forward pass and bytes of the result; at the end the sums */
    const char *output; /* this output alone and all parameters, with what it is computed from: the
                           graph for predictions. NULL: the whole graph */
} qn_graph_write_params;

/* The text of a graph: qn_graph_read makes the same one of it, down to the hash of its plans. The
 * caller frees it with qn_free. NULL: out of memory, no node, there is no such output, or something
 * has no written form, such as a node whose name has a blank; the log says which. Parameters are
 * always lines of their own. `params` may be NULL. */
QN_API char *qn_graph_write(const qn_graph *graph, const qn_graph_write_params *params);

/* A node, and what one sample costs in the forward pass of a training. */
typedef struct qn_node_info {
    const char *name, *kind; /* borrowed from the graph; "input", "parameter", "constant" */
    qn_dtype dtype;
    qn_shape shape;     /* as qn_shape_of */
    int64_t parameters; /* numbers that it is, of a parameter */
    bool frozen;
    double flops;  /* floating-point operations */
    int64_t bytes; /* of the result; 0: it shares another's bytes */
} qn_node_info;

/* All nodes in their order, for qn_free; NULL: out of memory, or the graph has an error. */
QN_API qn_node_info *qn_graph_nodes(const qn_graph *graph, int *count);

#ifdef __cplusplus
}
#endif
#endif
