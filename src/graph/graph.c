/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"

#include "base/log.h"
#include "base/shape.h"
#include "graph/error.h"
#include "op/loss.h"

#include <quern/ops.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_storage(qn_dtype dtype)
{
    return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16;
}

qn_status qn_graph_create(qn_graph **out, const qn_graph_params *params)
{
    const qn_graph_params none = {0};
    params = params ? params : &none;
    QN_REQUIRE(&params->log, out);
    *out = NULL;
    qn_dtype storage = params->storage ? params->storage : QN_F32;
    qn_dtype parameter_storage = params->parameter_storage ? params->parameter_storage : QN_F32;
    QN_REQUIRE(&params->log, is_storage(storage) && is_storage(parameter_storage));
    qn_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return qn_fail(&params->log, QN_ERR_MEMORY, "graph: out of host memory");
    graph->log = params->log;
    graph->storage = storage;
    graph->parameter_storage = parameter_storage;
    graph->couples = params->couples;
    graph->n_tensors = 0;
    *out = graph;
    return QN_OK;
}

void qn_graph_destroy(qn_graph **graph)
{
    if (!graph || !*graph)
        return;
    qn_arena_free(&(*graph)->arena);
    free((*graph)->nodes);
    free((*graph)->tensors);
    free((*graph)->names.slots);
    free(*graph);
    *graph = NULL;
}

qn_status qn_graph_status(const qn_graph *graph)
{
    QN_REQUIRE(NULL, graph);
    return graph->status;
}

const char *qn_graph_error(const qn_graph *graph)
{
    return graph ? graph->error : "no graph";
}

qn_dtype qn_graph_storage(const qn_graph *graph)
{
    return graph ? graph->storage : QN_F32;
}

qn_tensor qn_graph_fail(qn_graph *graph, qn_status status, const char *format, ...)
{
    if (graph->status != QN_OK)
        return (qn_tensor){0};
    const struct qn_source *source = &graph->source;
    va_list args;
    int used = 0;
    if (source->file && status != QN_ERR_MEMORY) {
        used =
            snprintf(graph->error, sizeof graph->error, "%.200s:%d: ", source->file, source->line);
        status = QN_ERR_FORMAT;
    }
    va_start(args, format);
    vsnprintf(graph->error + used, sizeof graph->error - (size_t)used, format, args);
    va_end(args);
    graph->status = status;
    qn_log_write(&graph->log, QN_LOG_ERROR, "%s", graph->error);
    return (qn_tensor){0};
}

qn_status qn_graph_refuse(qn_graph *graph, const char *format, ...)
{
    QN_REQUIRE(NULL, graph);
    char line[sizeof graph->error];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s", line);
    return graph->status;
}

static bool grow(void **items, int *capacity, int count, size_t size)
{
    if (count < *capacity)
        return true;
    int larger = *capacity ? *capacity * 2 : 64;
    void *memory = realloc(*items, (size_t)larger * size);
    if (!memory)
        return false;
    *items = memory;
    *capacity = larger;
    return true;
}

/* Appends one tensor; number 0 is taken by "none". */
static uint32_t append_tensor(qn_graph *graph, uint32_t node, int index,
                              const struct qn_operand *symbolic)
{
    int needed = graph->n_tensors ? graph->n_tensors : 1;
    if (!grow((void **)&graph->tensors, &graph->tensor_capacity, needed, sizeof *graph->tensors))
        return 0;
    if (!graph->n_tensors) {
        graph->tensors[0] = (struct qn_tensor_entry){0};
        graph->n_tensors = 1;
    }
    graph->tensors[graph->n_tensors] = (struct qn_tensor_entry){node, index, *symbolic};
    return (uint32_t)graph->n_tensors++;
}

/* Appends a node with its output tensors; NULL when out of memory. */
static struct qn_node *append_node(qn_graph *graph, const struct qn_node *node,
                                   const struct qn_operand *outputs, int n_out)
{
    if (!grow((void **)&graph->nodes, &graph->node_capacity, graph->n_nodes, sizeof *graph->nodes))
        return NULL;
    uint32_t number = (uint32_t)graph->n_nodes;
    struct qn_node *added = &graph->nodes[number];
    *added = *node;
    for (int i = 0; i < n_out; i++) {
        uint32_t tensor = append_tensor(graph, number, i, &outputs[i]);
        if (!tensor)
            return NULL;
        if (i == 0)
            added->out = tensor;
    }
    graph->n_nodes++;
    return added;
}

static bool name_taken(qn_graph *graph, const char *name)
{
    return qn_graph_named(graph, name) >= 0;
}

/* "relu_7": the kind and the number of the node, or the next number that nobody took. */
static const char *free_name(qn_graph *graph, const char *kind, char *name, size_t capacity)
{
    int number = graph->n_nodes;
    do
        snprintf(name, capacity, "%s_%d", kind, number++);
    while (name_taken(graph, name));
    return name;
}

/* Whether there is room for a name that somebody gives, and for what a checkpoint adds to it. */
static bool short_name(qn_graph *graph, const char *name)
{
    if (!graph || !name || strlen(name) <= QN_GRAPH_MAX_NAME)
        return true;
    qn_graph_fail(graph, QN_ERR_ARGUMENT, "%.40s...: the name is longer than %d bytes", name,
                  QN_GRAPH_MAX_NAME);
    return false;
}

static bool known(const qn_graph *graph, qn_tensor tensor)
{
    return tensor.id > 0 && tensor.id < (uint32_t)graph->n_tensors;
}

static struct qn_node *node_of(const qn_graph *graph, qn_tensor tensor)
{
    return &graph->nodes[graph->tensors[tensor.id].node];
}

/* The node of a tensor that may be changed now; NULL (and an error) otherwise. */
static struct qn_node *editable(qn_graph *graph, qn_tensor tensor, const char *what)
{
    if (!graph || graph->status != QN_OK)
        return NULL;
    if (!known(graph, tensor)) {
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: no such tensor", what);
        return NULL;
    }
    return node_of(graph, tensor);
}

/* --- leaves --- */

static qn_tensor add_leaf(qn_graph *graph, struct qn_node *node, const char *name, int rank,
                          const int64_t *dim)
{
    if (!graph || graph->status != QN_OK)
        return (qn_tensor){0};
    if (!name || !*name || rank < 0 || rank > QN_MAX_DIMS || (rank && !dim))
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: needs a name and at most %d dimensions",
                             name ? name : "leaf", QN_MAX_DIMS);
    if (name_taken(graph, name))
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: the name is already taken", name);
    qn_shape_set(&node->leaf, node->leaf.dtype, rank, dim);
    struct qn_operand two;
    qn_operand_at(&node->leaf, 2, &two);
    if (qn_operand_bytes(&two) < 0)
        return qn_graph_fail(graph, QN_ERR_SHAPE, "%s: is too large to count", name);
    node->name = qn_arena_strdup(&graph->arena, name);
    struct qn_node *added = node->name ? append_node(graph, node, &node->leaf, 1) : NULL;
    if (!added)
        return qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    return (qn_tensor){added->out};
}

static bool all_positive(int rank, const int64_t *dim)
{
    for (int i = 0; i < rank; i++)
        if (dim[i] <= 0)
            return false;
    return true;
}

/* An input of a scope in which a sample has several rows. */
static qn_tensor add_input(qn_graph *graph, struct qn_node *node, const char *name, int rank,
                           const int64_t *dim)
{
    const int64_t each = graph ? graph->scope.each : 0;
    int64_t wide[QN_MAX_DIMS + 1], flat[QN_MAX_DIMS];
    if (each <= 1 || rank == QN_MAX_DIMS)
        return add_leaf(graph, node, name, rank, dim);
    memcpy(flat, dim, (size_t)rank * sizeof *dim);
    memcpy(wide + 1, dim, (size_t)rank * sizeof *dim);
    wide[0] = dim[0];
    wide[1] = each;
    flat[0] = dim[0] * each;
    return qn_reshape(graph, add_leaf(graph, node, name, rank + 1, wide), rank, flat);
}

qn_tensor qn_input(qn_graph *graph, const char *name, qn_dtype dtype, int rank, const int64_t *dim)
{
    if (graph && (rank < 1 || rank > QN_MAX_DIMS || !dim || dim[0] >= 0 || dim[0] == INT64_MIN ||
                  !all_positive(rank - 1, dim + 1)))
        return qn_graph_fail(
            graph, QN_ERR_SHAPE,
            "%s: dimension 0 of an input is a multiple of QN_BATCH, the others are "
            "positive",
            name ? name : "input");
    if (graph && qn_dtype_size(dtype) == 0)
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: no such type", name ? name : "input");
    char scoped[QN_SCOPED_BYTES];
    name = qn_graph_scoped(graph, name, scoped);
    if (!short_name(graph, name))
        return (qn_tensor){0};
    struct qn_node node = {.kind = QN_NODE_INPUT, .leaf = {.dtype = dtype}};
    return add_input(graph, &node, name, rank, dim);
}

qn_tensor qn_cell_input(qn_graph *graph, const char *name, qn_dtype dtype, int rank,
                        const int64_t *dim)
{
    if (graph && (rank < 1 || rank > QN_MAX_DIMS || !dim || !all_positive(rank, dim)))
        return qn_graph_fail(graph, QN_ERR_SHAPE, "%s: sizes of a cell's input are positive",
                             name ? name : "cell");
    if (graph && qn_dtype_size(dtype) == 0)
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: no such type", name ? name : "cell");
    char scoped[QN_SCOPED_BYTES];
    name = qn_graph_scoped(graph, name, scoped);
    if (!short_name(graph, name))
        return (qn_tensor){0};
    struct qn_node node = {.kind = QN_NODE_INPUT, .leaf = {.dtype = dtype}, .cell = true};
    return add_leaf(graph, &node, name, rank, dim);
}

static bool usable_init(const qn_init *init)
{
    return (int)init->kind >= 0 && init->kind <= QN_INIT_NORMAL && isfinite(init->a) &&
           isfinite(init->b);
}

/* The parameter of that name and shape, in a scope whose parameters are shared. */
static qn_tensor shared_parameter(qn_graph *graph, const char *name, const struct qn_operand *leaf)
{
    if (!graph || graph->status != QN_OK || !graph->scope.shared || !name)
        return (qn_tensor){0};
    const int number = qn_graph_named(graph, name);
    const struct qn_node *node = number < 0 ? NULL : &graph->nodes[number];
    const bool same = node && node->kind == QN_NODE_PARAMETER && node->leaf.dtype == leaf->dtype &&
                      qn_shape_equal(&node->leaf.shape, &leaf->shape);
    return same ? (qn_tensor){node->out} : (qn_tensor){0};
}

qn_tensor qn_parameter(qn_graph *graph, const char *name, int rank, const int64_t *dim,
                       const qn_init *init)
{
    if (graph && (rank < 0 || (rank && !dim) || !all_positive(rank, dim)))
        return qn_graph_fail(graph, QN_ERR_SHAPE, "%s: sizes of a parameter are positive",
                             name ? name : "parameter");
    char scoped[QN_SCOPED_BYTES];
    name = qn_graph_scoped_parameter(graph, name, scoped);
    if (!short_name(graph, name))
        return (qn_tensor){0};
    if (graph && init && !usable_init(init))
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: starts with no kind of finite numbers",
                             name ? name : "parameter");
    struct qn_node node = {.kind = QN_NODE_PARAMETER, .rate = 1, .decay = rank >= 2};
    node.leaf.dtype = graph && rank >= 2 ? graph->parameter_storage : QN_F32;
    if (init)
        node.init = *init;
    qn_shape_set(&node.leaf, node.leaf.dtype, rank, dim);
    const qn_tensor there = shared_parameter(graph, name, &node.leaf);
    return there.id ? there : add_leaf(graph, &node, name, rank, dim);
}

qn_tensor qn_op_constant(qn_graph *graph, const char *name, const float *values, int64_t count)
{
    if (!graph || graph->status != QN_OK || !values)
        return (qn_tensor){0};
    char unique[QN_GRAPH_MAX_NAME + 16];
    float *copy = qn_arena_copy(&graph->arena, values, (size_t)count * sizeof *values);
    if (!copy)
        return qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    struct qn_node node = {
        .kind = QN_NODE_CONSTANT, .leaf = {.dtype = QN_F32}, .values = copy, .frozen = true};
    return add_leaf(graph, &node, free_name(graph, name, unique, sizeof unique), 1, &count);
}

qn_tensor qn_constant(qn_graph *graph, const char *name, const float *values, int64_t count)
{
    if (graph && (!name || !*name || !values || count < 1))
        return qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: a constant has a name and values",
                             name && *name ? name : "constant");
    char scoped[QN_SCOPED_BYTES];
    name = qn_graph_scoped(graph, name, scoped);
    if (!short_name(graph, name))
        return (qn_tensor){0};
    return qn_op_constant(graph, name, values, count);
}

qn_init qn_init_he(int64_t fan_in)
{
    return (qn_init){QN_INIT_NORMAL, 0, sqrt(2.0 / (double)fan_in)};
}

qn_init qn_init_fan_in(int64_t fan_in)
{
    double bound = 1.0 / sqrt((double)fan_in);
    return (qn_init){QN_INIT_UNIFORM, -bound, bound};
}

qn_init qn_init_constant(double value)
{
    return (qn_init){QN_INIT_CONSTANT, value, 0};
}

/* --- operators --- */

static bool inputs_usable(qn_graph *graph, const struct qn_op *op, const qn_tensor *in)
{
    for (int i = 0; i < op->n_in; i++) {
        bool absent = in[i].id == 0;
        if (absent ? i < op->n_required : !known(graph, in[i])) {
            qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: input %d is no tensor of this graph",
                          op->name, i);
            return false;
        }
    }
    return true;
}

static bool holds_batch(const struct qn_operand *symbolic)
{
    return symbolic->shape.rank > 0 && symbolic->shape.dim[0] < 0;
}

static bool batch_allowed(qn_graph *graph, const struct qn_node *node)
{
    char text[96];
    for (int i = 0; i < node->op->n_in; i++) {
        const struct qn_tensor_entry *in = &graph->tensors[node->in[i]];
        const enum qn_batch_rule rule = node->op->batch[i];
        const char *name = graph->nodes[in->node].name;
        if (holds_batch(&in->symbolic) && rule == QN_BATCH_NEVER && !graph->couples)
            qn_graph_fail(graph, QN_ERR_SHAPE,
                          "%s: %s %s has the batch in it, but input %d is one for all samples",
                          node->name, name, qn_shape_text(&in->symbolic.shape, text, sizeof text),
                          i);
        else if (!holds_batch(&in->symbolic) && rule == QN_BATCH_MUST)
            qn_graph_fail(graph, QN_ERR_SHAPE, "%s: %s has no batch in dimension 0", node->op->name,
                          name);
    }
    return graph->status == QN_OK;
}

/* Whether an output holds the batch where its inputs do: in dimension 0 alone. */
static bool batch_kept(qn_graph *graph, const struct qn_node *node, const struct qn_operand *output)
{
    char from[96], to[96];
    const struct qn_tensor_entry *in = NULL;
    for (int i = 0; i < node->op->n_in; i++)
        if (holds_batch(&graph->tensors[node->in[i]].symbolic))
            in = &graph->tensors[node->in[i]];
    if (!in || graph->couples)
        return true;
    bool kept = holds_batch(output);
    for (int d = 1; d < output->shape.rank; d++)
        kept = kept && output->shape.dim[d] >= 0;
    if (!kept)
        qn_graph_fail(graph, QN_ERR_SHAPE,
                      "%s: %s %s has the batch in it, but the result %s not in dimension 0 alone",
                      node->name, graph->nodes[in->node].name,
                      qn_shape_text(&in->symbolic.shape, from, sizeof from),
                      qn_shape_text(&output->shape, to, sizeof to));
    return kept;
}

/* The operand whose sizes are `one` at batch 1 and `two` at batch 2, as multiples of the batch. */
static bool make_symbolic(const struct qn_operand *one, const struct qn_operand *two,
                          struct qn_operand *symbolic)
{
    *symbolic = *one;
    for (int d = 0; d < one->shape.rank; d++) {
        int64_t a = one->shape.dim[d], b = two->shape.dim[d];
        if (a > 0 && b - a == a)
            symbolic->shape.dim[d] = -a;
        else if (a != b)
            return false;
    }
    return true;
}

static bool infer_outputs(qn_graph *graph, const struct qn_node *node, struct qn_operand *outputs)
{
    struct qn_shape_call one, two;
    qn_status status = qn_graph_node_shape(graph, node, 1, &one);
    const struct qn_shape_call *failed = &one;
    if (status == QN_OK) {
        status = qn_graph_node_shape(graph, node, 2, &two);
        failed = &two;
    }
    if (status != QN_OK) {
        qn_graph_fail(graph, status, "%s: %s", node->name, failed->reason);
        return false;
    }
    for (int i = 0; i < node->op->n_out; i++) {
        if (!make_symbolic(&one.out[i], &two.out[i], &outputs[i])) {
            qn_graph_fail(graph, QN_ERR_SHAPE, "%s: its shape is no multiple of the batch",
                          node->name);
            return false;
        }
        if (!batch_kept(graph, node, &outputs[i]))
            return false;
    }
    return true;
}

qn_tensor qn_op_apply(qn_graph *graph, const struct qn_op *op, const qn_tensor *in,
                      const void *attr)
{
    if (!graph || graph->status != QN_OK || !inputs_usable(graph, op, in))
        return (qn_tensor){0};
    char made_up[64], scoped[QN_SCOPED_BYTES];
    const char *name = qn_graph_scoped(graph, graph->source.name, scoped);
    struct qn_node node = {.kind = QN_NODE_OPERATOR, .op = op};
    for (int i = 0; i < op->n_in; i++)
        node.in[i] = in[i].id;
    if (!name)
        name = free_name(graph, op->name, made_up, sizeof made_up);
    node.name = qn_arena_strdup(&graph->arena, name);
    node.attr = qn_arena_copy(&graph->arena, attr, (size_t)op->attr_size);
    struct qn_operand outputs[QN_MAX_OUT] = {0};
    if (!node.name || !node.attr)
        return qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    if (!batch_allowed(graph, &node) || !infer_outputs(graph, &node, outputs))
        return (qn_tensor){0};
    struct qn_node *added = append_node(graph, &node, outputs, op->n_out);
    if (!added)
        return qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    return (qn_tensor){added->out};
}

void qn_op_warn(qn_graph *graph, const char *format, ...)
{
    char line[256];
    va_list args;
    if (!graph || graph->status != QN_OK || graph->warned)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    graph->warned = true;
    qn_log_write(&graph->log, QN_LOG_WARNING, "%s", line);
}

/* --- marks --- */

void qn_name(qn_graph *graph, qn_tensor tensor, const char *name)
{
    struct qn_node *node = editable(graph, tensor, "qn_name");
    char scoped[QN_SCOPED_BYTES];
    if (!node)
        return;
    name = name && *name ? qn_graph_scoped(graph, name, scoped) : name;
    if (!short_name(graph, name))
        return;
    if (!name || !*name || (strcmp(name, node->name) != 0 && name_taken(graph, name))) {
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: the name is empty or already taken",
                      name ? name : "qn_name");
        return;
    }
    char *copy = qn_arena_strdup(&graph->arena, name);
    if (!copy)
        qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    else {
        node->name = copy;
        qn_graph_renamed(graph, (int)(node - graph->nodes));
    }
}

void qn_freeze(qn_graph *graph, qn_tensor parameter)
{
    struct qn_node *node = editable(graph, parameter, "qn_freeze");
    if (node && node->kind == QN_NODE_PARAMETER)
        node->frozen = true;
    else if (node)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_freeze: %s is no parameter", node->name);
}

void qn_no_decay(qn_graph *graph, qn_tensor parameter, bool no_decay)
{
    struct qn_node *node = editable(graph, parameter, "qn_no_decay");
    if (node && node->kind == QN_NODE_PARAMETER)
        node->decay = !no_decay;
    else if (node)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_no_decay: %s is no parameter", node->name);
}

void qn_recompute(qn_graph *graph, qn_tensor tensor)
{
    struct qn_node *node = editable(graph, tensor, "qn_recompute");
    if (node && node->kind == QN_NODE_OPERATOR)
        node->recompute = true;
    else if (node)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_recompute: %s is not computed", node->name);
}

static bool output_taken(const qn_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_outputs; i++)
        if (strcmp(graph->outputs[i].name, name) == 0)
            return true;
    return false;
}

/* Evaluation gives the rows of samples that the device computed. */
static bool usable_as_output(qn_graph *graph, qn_tensor tensor, const char *name)
{
    const struct qn_shape *shape = &graph->tensors[tensor.id].symbolic.shape;
    const qn_tensor root = {qn_graph_root(graph, tensor.id)};
    if (node_of(graph, root)->kind != QN_NODE_OPERATOR)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_output: %s is computed by no operator",
                      node_of(graph, root)->name);
    else if ((shape->rank < 1 || shape->dim[0] >= 0) && !node_of(graph, tensor)->op->table)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_output: %s has no batch in dimension 0",
                      node_of(graph, tensor)->name);
    else if (!*name || output_taken(graph, name))
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_output: %s: the name is empty or already taken",
                      name);
    else if (graph->n_outputs == QN_GRAPH_MAX_OUTPUTS)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "qn_output: %s: at most %d outputs", name,
                      QN_GRAPH_MAX_OUTPUTS);
    return graph->status == QN_OK;
}

void qn_output(qn_graph *graph, qn_tensor tensor, const char *name)
{
    const struct qn_node *node = editable(graph, tensor, "qn_output");
    if (!node)
        return;
    char scoped[QN_SCOPED_BYTES];
    name = name ? qn_graph_scoped(graph, name, scoped) : node->name;
    if (!short_name(graph, name) || !usable_as_output(graph, tensor, name))
        return;
    char *copy = qn_arena_strdup(&graph->arena, name);
    if (!copy)
        qn_graph_fail(graph, QN_ERR_MEMORY, "qn_output: %s: out of host memory", name);
    else
        graph->outputs[graph->n_outputs++] = (struct qn_graph_output){tensor.id, copy};
}

/* --- losses --- */

static bool usable_as_loss(qn_graph *graph, qn_tensor rows, const char *name,
                           const qn_loss_params *params)
{
    if (!editable(graph, rows, "qn_loss"))
        return false;
    const struct qn_shape *shape = &graph->tensors[rows.id].symbolic.shape;
    if (shape->rank < 1 || shape->dim[0] >= 0)
        qn_graph_fail(graph, QN_ERR_SHAPE, "%s: a loss has the batch in dimension 0",
                      node_of(graph, rows)->name);
    else if (params->weights.id && (!known(graph, params->weights) ||
                                    node_of(graph, params->weights)->kind != QN_NODE_INPUT))
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: weights of a loss are an input of the graph",
                      node_of(graph, rows)->name);
    else if (!isfinite(params->coefficient) || (int)params->reduction < 0 ||
             params->reduction > QN_REDUCE_SUM)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: a coefficient of %g or the reduction %d",
                      node_of(graph, rows)->name, params->coefficient, (int)params->reduction);
    else if (graph->n_losses == QN_MAX_LOSSES)
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "at most %d losses", QN_MAX_LOSSES);
    else if (name && (!*name || name_taken(graph, name)))
        qn_graph_fail(graph, QN_ERR_ARGUMENT, "%s: the name of a loss is empty or already taken",
                      *name ? name : "qn_loss");
    return graph->status == QN_OK;
}

static double coefficient_of(const qn_loss_params *params)
{
    if (params->monitor)
        return 0;
    return params->coefficient == 0 ? 1 : params->coefficient;
}

void qn_loss(qn_graph *graph, qn_tensor rows, const char *name, const qn_loss_params *params)
{
    const qn_loss_params none = {0};
    params = params ? params : &none;
    if (!graph || !usable_as_loss(graph, rows, name, params))
        return;
    const struct qn_op *op = qn_op_find("loss");
    struct qn_loss_attr attr = {.index = graph->n_losses};
    const qn_tensor in[QN_MAX_IN] = {rows, params->weights};
    qn_op_apply(graph, op, in, &attr);
    if (graph->status != QN_OK)
        return;
    uint32_t node = (uint32_t)graph->n_nodes - 1;
    const char *own = name ? qn_arena_strdup(&graph->arena, name) : graph->nodes[node].name;
    if (!own) {
        qn_graph_fail(graph, QN_ERR_MEMORY, "%s: out of host memory", name);
        return;
    }
    graph->nodes[node].name = own;
    qn_graph_renamed(graph, (int)node);
    graph->losses[graph->n_losses++] = (struct qn_graph_loss){
        node, attr.index, qn_graph_root(graph, rows.id), params->reduction, coefficient_of(params)};
}

qn_shape qn_shape_of(const qn_graph *graph, qn_tensor tensor)
{
    return graph && known(graph, tensor) ? graph->tensors[tensor.id].symbolic.shape : (qn_shape){0};
}

qn_dtype qn_dtype_of(const qn_graph *graph, qn_tensor tensor)
{
    return graph && known(graph, tensor) ? graph->tensors[tensor.id].symbolic.dtype : QN_DTYPE_NONE;
}

const char *qn_graph_input(const qn_graph *graph, int index, qn_tensor *tensor)
{
    for (int n = 0; graph && index >= 0 && n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind != QN_NODE_INPUT || node->cell || index--)
            continue;
        if (tensor)
            *tensor = (qn_tensor){node->out};
        return node->name;
    }
    return NULL;
}

const char *qn_graph_output(const qn_graph *graph, int index, qn_tensor *tensor)
{
    if (!graph || index < 0 || index >= graph->n_outputs)
        return NULL;
    if (tensor)
        *tensor = (qn_tensor){graph->outputs[index].tensor};
    return graph->outputs[index].name;
}
