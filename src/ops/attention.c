/* SPDX-License-Identifier: MIT
 *
 * Attention without the matrix of all queries and keys: the forward pass keeps one number a query
 * and head, the logarithm of the sum of its exponentials, from which the gradients make the
 * probabilities of one tile after another anew.
 */
#include "op/attention.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/attention_units.h"
#include "ops/common.h"

#include <math.h>
#include <quern/ops.h>
#include <string.h>

enum { QUERY, KEY, VALUE, LENGTHS };
enum { FORWARD, EVALUATION, ROW_SUMS, QUERY_GRADIENT, KEY_VALUE_GRADIENT };
enum { HEAD_STEP = 8, MOST_HEAD = 128, DRAWN = 4, SUMS_GROUP = 64 };

/* What is attended to. Strides are in elements, from one token to the next. */
struct sizes {
    bool packed; /* q, k and v lie in input 0, side by side */
    int64_t rows, queries, keys, heads, kv_heads, head, q_row, k_row;
};

static struct sizes sizes_of(const void *attr_, const struct qn_operand *in)
{
    const struct qn_attention_attr *attr = attr_;
    const int64_t *q = in[QUERY].shape.dim;
    struct sizes s = {.packed = !qn_present(&in[KEY]),
                      .rows = q[0],
                      .queries = q[1],
                      .keys = q[1],
                      .heads = attr->heads,
                      .kv_heads = attr->kv_heads,
                      .q_row = q[2],
                      .k_row = q[2]};
    s.head = q[2] / (s.packed ? s.heads + 2 * s.kv_heads : s.heads);
    if (!s.packed) {
        s.keys = in[KEY].shape.dim[1];
        s.k_row = in[KEY].shape.dim[2];
    }
    return s;
}

/* --- the shape rule --- */

static qn_status check_attributes(struct qn_shape_call *call)
{
    const struct qn_attention_attr *attr = call->attr;
    if (attr->heads < 1 || attr->kv_heads < 1 || attr->heads % attr->kv_heads != 0)
        return qn_shape_error(call, "%d heads cannot share %d heads of keys", attr->heads,
                              attr->kv_heads);
    if (!(attr->dropout >= 0 && attr->dropout < 1))
        return qn_shape_error(call, "dropout %g is not in [0, 1)", (double)attr->dropout);
    if (!(attr->scale >= 0 && isfinite(attr->scale)))
        return qn_shape_error(call, "scale %g is not a positive number", (double)attr->scale);
    return QN_OK;
}

static qn_status check_inputs(struct qn_shape_call *call)
{
    const struct qn_operand *in = call->in;
    if (qn_present(&in[KEY]) != qn_present(&in[VALUE]))
        return qn_shape_error(call, "k and v come together, or q holds all three");
    for (int i = QUERY; i <= VALUE; i++)
        if (qn_present(&in[i]) && (in[i].shape.rank != 3 || in[i].dtype != call->storage ||
                                   in[i].shape.dim[0] != in[QUERY].shape.dim[0]))
            return qn_shape_error(call, "attention takes q, k and v (b, t, n) in the storage type");
    if (qn_present(&in[KEY]) && (in[KEY].shape.dim[1] != in[VALUE].shape.dim[1] ||
                                 in[KEY].shape.dim[2] != in[VALUE].shape.dim[2]))
        return qn_shape_error(call, "k and v differ in shape");
    if (qn_present(&in[LENGTHS]) && (in[LENGTHS].dtype != QN_I32 || in[LENGTHS].shape.rank != 1 ||
                                     in[LENGTHS].shape.dim[0] != in[QUERY].shape.dim[0]))
        return qn_shape_error(call, "lengths are i32 (b), one for each row of q");
    return QN_OK;
}

static qn_status check_sizes(struct qn_shape_call *call, const struct sizes *s)
{
    const struct qn_attention_attr *attr = call->attr;
    const int64_t heads = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
    if (s->head * heads != s->q_row || (!s->packed && s->head * s->kv_heads != s->k_row))
        return qn_shape_error(call, "%lld and %lld elements a token are not %lld and %lld heads",
                              (long long)s->q_row, (long long)s->k_row, (long long)heads,
                              (long long)s->kv_heads);
    if (s->head < HEAD_STEP || s->head > MOST_HEAD || s->head % HEAD_STEP != 0)
        return qn_shape_error(call, "the head size %lld is not a multiple of %d up to %d",
                              (long long)s->head, HEAD_STEP, MOST_HEAD);
    if (s->queries > INT32_MAX / 2 || s->keys > INT32_MAX / 2)
        return qn_shape_error(call, "%lld queries and %lld keys are too many",
                              (long long)s->queries, (long long)s->keys);
    const double each = (double)qn_rows_per_sample(&call->in[QUERY], call->batch);
    const double draws = (double)s->heads * (double)s->queries * (double)qn_div_up(s->keys, DRAWN);
    if (attr->dropout > 0 && each * draws > UINT32_MAX)
        return qn_shape_error(call, "dropout has too few random numbers for so long a sample");
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    QN_TRY(check_attributes(call));
    QN_TRY(check_inputs(call));
    const struct sizes s = sizes_of(call->attr, call->in);
    QN_TRY(check_sizes(call, &s));
    qn_shape_set(&call->out[0], call->storage, 3,
                 (const int64_t[]){s.rows, s.queries, s.heads * s.head});
    const int64_t statistic[] = {s.rows, s.heads, s.queries};
    qn_shape_set(&call->saved[0], QN_F32, 3, statistic);
    qn_shape_set(&call->temp[0], QN_F32, 3, statistic);
    return QN_OK;
}

/* --- costs --- */

/* Products of vectors of a head's length, one for each score. */
static double flops_of(const struct qn_call *call, int products)
{
    const struct qn_attention_attr *attr = call->attr;
    const struct sizes s = sizes_of(attr, call->in);
    const double seen = (double)(s.queries < s.keys ? s.queries : s.keys);
    const double later = (double)s.queries - seen; /* queries that see all keys */
    const double scores = attr->causal ? seen * (seen + 1) / 2 + later * (double)s.keys
                                       : (double)s.queries * (double)s.keys;
    return 2.0 * products * scores * (double)(s.rows * s.heads * s.head);
}

static void cost_of(const struct qn_call *call, int group, double flops, int launches,
                    struct qn_cost *cost)
{
    cost->flops = flops;
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = launches;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, FORWARD, flops_of(call, 2), 1, cost);
}

static void evaluation_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, EVALUATION, flops_of(call, 2), 1, cost);
}

static void row_sums_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, ROW_SUMS, 2 * (double)qn_operand_count(&call->out[0]), 1, cost);
}

static void query_gradient_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const bool packed = !qn_present(&call->in[KEY]);
    cost_of(call, QUERY_GRADIENT, flops_of(call, packed ? 7 : 3), packed ? 2 : 1, cost);
}

static void key_value_gradient_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, KEY_VALUE_GRADIENT, flops_of(call, 4), 1, cost);
}

/* --- launches --- */

/* CPU shape: panels of a work-group, vectors of a panel, rows of a tile. The largest that fits the
 * local memory is taken. */
struct block {
    int64_t panels, vectors, rows;
};
static const struct block blocks[] = {{4, 2, 64}, {2, 2, 32}, {1, 2, 16}, {1, 1, 8}};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

/* Of the kernel that needs most: the gradients of k and v. */
static int64_t local_bytes_of(const struct block *block, int64_t vector, int64_t head)
{
    const int64_t panel = block->vectors * vector;
    const int64_t floats = 4 * block->panels * panel * head + 2 * block->rows * (head + panel);
    return floats * (int64_t)sizeof(float);
}

static const struct block *block_of(const struct qn_facts *facts, int64_t head)
{
    const struct block *block = blocks;
    while (block < blocks + BLOCKS - 1 &&
           local_bytes_of(block, facts->vector_width, head) > facts->local_bytes)
        block++;
    return block;
}

static bool fits_cpu(const struct qn_call *call, const char **why)
{
    if (!qn_fits_cpu(call, why))
        return false;
    const int64_t head = sizes_of(call->attr, call->in).head;
    *why = "the device has too little local memory";
    return call->facts->local_bytes >=
           local_bytes_of(&blocks[BLOCKS - 1], call->facts->vector_width, head);
}

/* GPU shape: as in attention_gpu.cl, for heads up to `most`. The first that fits the head and the
 * device is taken. Long heads are shared by more work-items, so that sums stay in registers. */
enum { EACH = 4, PIECE = 32 };
struct gpu_shape {
    int64_t wide, tall, deep, most;
    bool whole; /* heads are in local memory whole, though they be longer than PIECE */
};
static const struct gpu_shape gpu_shapes[] = {
    {8, 8, 4, PIECE},      {8, 8, 2, PIECE},     {8, 16, 4, 64, true},
    {8, 8, 4, 63},         {16, 16, 1, 64},      {8, 32, 1, MOST_HEAD},
    {8, 16, 1, MOST_HEAD}, {8, 8, 4, MOST_HEAD}, {8, 8, 2, MOST_HEAD}};
enum { GPU_SHAPES = sizeof gpu_shapes / sizeof *gpu_shapes };

static int64_t piece_of(const struct gpu_shape *shape, int64_t head)
{
    return shape->whole || head < PIECE ? head : PIECE;
}

/* Of the kernel that needs most: a gradient, which keeps two panels of whole heads. */
static int64_t gpu_bytes(const struct gpu_shape *shape, int64_t head)
{
    const int64_t piece = piece_of(shape, head), block = shape->wide * EACH;
    const int64_t rows = shape->tall * shape->deep, panels = piece == head ? 2 : 1;
    return (panels * piece * (block + EACH) + rows * (piece + block)) * (int64_t)sizeof(float);
}

/* Whether several work-groups fit a multiprocessor, each with local memory for whole heads: those
 * with matrix units of layout mma have enough. CPUs take that shape, too, since tests run there. */
static bool is_roomy(const struct qn_facts *facts)
{
    return facts->cpu || (facts->matrix_units && facts->matrix_layout == QN_MATRIX_MMA);
}

static bool fits_shape(const struct qn_facts *facts, int64_t head, const struct gpu_shape *shape)
{
    return head <= shape->most && (!shape->whole || is_roomy(facts)) &&
           facts->max_work_group >= shape->wide * shape->tall &&
           facts->local_bytes >= gpu_bytes(shape, head);
}

static const struct gpu_shape *gpu_shape_of(const struct qn_facts *facts, int64_t head)
{
    const struct gpu_shape *shape = gpu_shapes;
    while (shape < gpu_shapes + GPU_SHAPES - 1 && !fits_shape(facts, head, shape))
        shape++;
    return shape;
}

static bool fits_gpu(const struct qn_call *call, const char **why)
{
    const int64_t head = sizes_of(call->attr, call->in).head;
    *why = "the device's work-groups or its local memory are too small";
    return fits_shape(call->facts, head, gpu_shape_of(call->facts, head));
}

/* By matrix units, for the forward pass or for both gradients. */
static struct qn_attention_units units_of(const struct qn_call *call, int64_t head, bool gradient)
{
    const struct qn_attention_attr *attr = call->attr;
    return (struct qn_attention_units){head, gradient, attr->dropout > 0};
}

static bool fits_units(const struct qn_call *call, bool gradient, const char **why)
{
    const int64_t head = sizes_of(call->attr, call->in).head;
    const struct qn_attention_units units = units_of(call, head, gradient);
    return qn_attention_units_fit(call->facts, call->in[QUERY].dtype, &units, why);
}

static bool fits_units_forward(const struct qn_call *call, const char **why)
{
    return fits_units(call, false, why);
}

static bool fits_units_gradient(const struct qn_call *call, const char **why)
{
    return fits_units(call, true, why);
}

/* The three operands, or their gradients, of which `from` holds three or one. */
struct triple {
    struct qn_operand q, k, v;
};

/* What lies `skipped` elements after the start of the operand, to its end. */
static struct qn_operand rest_of(const struct qn_operand *operand, int64_t skipped)
{
    struct qn_operand rest = *operand;
    rest.offset += skipped;
    rest.shape = (struct qn_shape){1, {qn_operand_count(operand) - skipped}};
    return rest;
}

static struct triple triple_of(const struct sizes *s, const struct qn_operand *from)
{
    struct triple t = {from[QUERY], from[KEY], from[VALUE]};
    if (s->packed) {
        t.k = rest_of(&t.q, s->heads * s->head);
        t.v = rest_of(&t.k, s->kv_heads * s->head);
    }
    return t;
}

static int arguments_of(const struct qn_launch *launch)
{
    int n = 0;
    while (launch->args[n].kind != QN_ARG_END)
        n++;
    return n;
}

/* Sets program, options and local size of a kernel, and gives the tokens of a work-group. */
typedef int64_t set_fn(struct qn_launch *launch, const struct qn_call *call, int64_t head);

static int64_t set_cpu(struct qn_launch *launch, const struct qn_call *call, int64_t head)
{
    const struct block *block = block_of(call->facts, head);
    const int64_t vector = call->facts->vector_width;
    launch->program = "attention_cpu";
    launch->local[0] = 1;
    qn_launch_option(launch, "QN_V", vector);
    qn_launch_option(launch, "MR", vector < 16 ? 4 : 8);
    qn_launch_option(launch, "NV", block->vectors);
    qn_launch_option(launch, "PANELS", block->panels);
    qn_launch_option(launch, "ROWS", block->rows);
    return block->panels * block->vectors * vector;
}

static int64_t set_gpu(struct qn_launch *launch, const struct qn_call *call, int64_t head)
{
    const struct gpu_shape *shape = gpu_shape_of(call->facts, head);
    launch->program = "attention_gpu";
    launch->local[0] = shape->wide;
    launch->local[1] = launch->global[1] = shape->tall;
    qn_launch_option(launch, "WIDE", shape->wide);
    qn_launch_option(launch, "TALL", shape->tall);
    qn_launch_option(launch, "DEEP", shape->deep);
    qn_launch_option(launch, "PIECE", piece_of(shape, head));
    qn_launch_aligned(launch, call, EACH, head);
    return shape->wide * EACH;
}

static int64_t set_shape(struct qn_launch *launch, const struct qn_call *call, int64_t head)
{
    return (call->cpu ? set_cpu : set_gpu)(launch, call, head);
}

static int64_t set_units_forward(struct qn_launch *launch, const struct qn_call *call, int64_t head)
{
    const struct qn_attention_units units = units_of(call, head, false);
    return qn_attention_units_set(launch, call->facts, &units);
}

static int64_t set_units_gradient(struct qn_launch *launch, const struct qn_call *call,
                                  int64_t head)
{
    const struct qn_attention_units units = units_of(call, head, true);
    return qn_attention_units_set(launch, call->facts, &units);
}

/* Launches a kernel over `tokens` of so many heads of each row. Its own arguments are there; those
 * of all kernels come before them. */
static qn_status emit_kernel(struct qn_emit *emit, const struct qn_call *call, set_fn *set,
                             struct qn_launch *launch, int64_t heads, int64_t tokens)
{
    const struct qn_attention_attr *attr = call->attr;
    const struct sizes s = sizes_of(attr, call->in);
    const struct triple in = triple_of(&s, call->in);
    const double scale = attr->scale > 0 ? (double)attr->scale : 1 / sqrt((double)s.head);
    const struct qn_arg common[] = {QN_BUF(&in.q),
                                    QN_INT(s.q_row),
                                    QN_BUF(&in.k),
                                    QN_BUF(&in.v),
                                    QN_INT(s.k_row),
                                    QN_BUF(&call->in[LENGTHS]),
                                    QN_BUF(&call->control),
                                    QN_INT(s.queries),
                                    QN_INT(s.keys),
                                    QN_INT(s.heads),
                                    QN_INT(s.heads / s.kv_heads),
                                    QN_INT(attr->causal),
                                    QN_INT(qn_present(&call->in[LENGTHS])),
                                    QN_INT(qn_rows_per_sample(&call->in[QUERY], call->batch)),
                                    QN_INT(call->node),
                                    QN_FLOAT((float)(scale * 1.4426950408889634)),
                                    QN_FLOAT(attr->dropout)};
    enum { COMMON = sizeof common / sizeof *common };
    memmove(launch->args + COMMON, launch->args,
            (size_t)arguments_of(launch) * sizeof *launch->args);
    memcpy(launch->args, common, sizeof common);

    qn_launch_type(launch, "X", &call->in[QUERY]);
    qn_launch_option(launch, "HEAD", s.head);
    const int64_t block = set(launch, call, s.head);
    launch->global[0] = s.rows * heads * qn_div_up(tokens, block) * launch->local[0];
    return qn_emit_launch(emit, launch);
}

static void set_dropout(struct qn_launch *launch, const struct qn_call *call, bool training)
{
    const struct qn_attention_attr *attr = call->attr;
    qn_launch_option(launch, "DROPOUT", training && attr->dropout > 0);
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call, set_fn *set,
                              bool training)
{
    const struct sizes s = sizes_of(call->attr, call->in);
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_INT(training)}};
    set_dropout(&launch, call, training);
    return emit_kernel(emit, call, set, &launch, s.heads, s.queries);
}

static qn_status emit_query_gradient(struct qn_emit *emit, const struct qn_call *call, set_fn *set)
{
    const struct sizes s = sizes_of(call->attr, call->in);
    const struct triple d = triple_of(&s, call->din);
    struct qn_launch launch = {.kernel = "query_gradient",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]),
                                        QN_BUF(&call->temp[0]), QN_BUF(&d.q),
                                        QN_FLOAT(call->beta_in[QUERY])}};
    set_dropout(&launch, call, true);
    return emit_kernel(emit, call, set, &launch, s.heads, s.queries);
}

static qn_status emit_key_value_gradient(struct qn_emit *emit, const struct qn_call *call,
                                         set_fn *set)
{
    const struct sizes s = sizes_of(call->attr, call->in);
    const struct triple d = triple_of(&s, call->din);
    struct qn_launch launch = {.kernel = "key_value_gradient",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]),
                                        QN_BUF(&call->temp[0]), QN_BUF(&d.k), QN_BUF(&d.v),
                                        QN_INT(qn_present(&d.k)), QN_INT(qn_present(&d.v)),
                                        QN_FLOAT(call->beta_in[s.packed ? QUERY : KEY]),
                                        QN_FLOAT(call->beta_in[s.packed ? QUERY : VALUE])}};
    set_dropout(&launch, call, true);
    return emit_kernel(emit, call, set, &launch, s.kv_heads, s.keys);
}

static qn_status row_sums(struct qn_emit *emit, const struct qn_call *call)
{
    const struct sizes s = sizes_of(call->attr, call->in);
    struct qn_launch launch = {.program = "attention",
                               .kernel = "row_sums",
                               .args = {QN_BUF(&call->out[0]), QN_BUF(&call->dout[0]),
                                        QN_BUF(&call->temp[0]), QN_LONG(s.rows), QN_LONG(s.queries),
                                        QN_LONG(s.heads)},
                               .global = {s.rows * s.heads * s.queries},
                               .local = {SUMS_GROUP}};
    qn_launch_type(&launch, "X", &call->out[0]);
    qn_launch_option(&launch, "HEAD", s.head);
    return qn_emit_launch(emit, &launch);
}

/* A packed tensor has one gradient: the parts of k and v follow that of q. */
static qn_status emit_first_gradient(struct qn_emit *emit, const struct qn_call *call, set_fn *set)
{
    QN_TRY(emit_query_gradient(emit, call, set));
    return qn_present(&call->in[KEY]) ? QN_OK : emit_key_value_gradient(emit, call, set);
}

/* --- variants --- */

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, set_shape, true);
}

static qn_status forward_units(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, set_units_forward, true);
}

static qn_status evaluation(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, set_shape, false);
}

static qn_status evaluation_units(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, set_units_forward, false);
}

static qn_status query_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_first_gradient(emit, call, set_shape);
}

static qn_status query_gradient_units(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_first_gradient(emit, call, set_units_gradient);
}

static qn_status key_value_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_key_value_gradient(emit, call, set_shape);
}

static qn_status key_value_gradient_units(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_key_value_gradient(emit, call, set_units_gradient);
}

const struct qn_op qn_op_attention = {
    .name = "attention",
    .attr_size = sizeof(struct qn_attention_attr),
    .n_in = 4,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MUST, QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY},
    .no_gradient = 1u << LENGTHS,
    .shape = shape,
    .groups = {
        [FORWARD] = {.name = "forward",
                     .phase = QN_PHASE_TRAIN,
                     .read = {{QN_IN(QUERY)}, {QN_IN(KEY)}, {QN_IN(VALUE)}, {QN_IN(LENGTHS)}},
                     .write = {{QN_OUT(0)}, {QN_SAVED(0)}},
                     .variant = {{"cpu", fits_cpu, forward_cost, forward, .cpu = true},
                                 {"gpu", fits_gpu, forward_cost, forward},
                                 {"units", fits_units_forward, forward_cost, forward_units}}},
        [EVALUATION] = {.name = "evaluation",
                        .phase = QN_PHASE_EVAL,
                        .read = {{QN_IN(QUERY)}, {QN_IN(KEY)}, {QN_IN(VALUE)}, {QN_IN(LENGTHS)}},
                        .write = {{QN_OUT(0)}},
                        .variant = {{"cpu", fits_cpu, evaluation_cost, evaluation, .cpu = true},
                                    {"gpu", fits_gpu, evaluation_cost, evaluation},
                                    {"units", fits_units_forward, evaluation_cost,
                                     evaluation_units}}},
        [ROW_SUMS] = {.name = "row sums",
                      .phase = QN_PHASE_BACKWARD,
                      .read = {{QN_OUT(0)}, {QN_DOUT(0)}},
                      .write = {{QN_TEMP(0)}},
                      .variant = QN_BOTH_SHAPES(NULL, row_sums_cost, row_sums)},
        [QUERY_GRADIENT] = {.name = "query gradient",
                            .phase = QN_PHASE_BACKWARD,
                            .read = {{QN_IN(QUERY)},
                                     {QN_IN(KEY)},
                                     {QN_IN(VALUE)},
                                     {QN_IN(LENGTHS)},
                                     {QN_DOUT(0)},
                                     {QN_SAVED(0)},
                                     {QN_TEMP(0)}},
                            .write = {{QN_DIN(QUERY)}},
                            .variant = {{"cpu", fits_cpu, query_gradient_cost, query_gradient,
                                         .cpu = true},
                                        {"gpu", fits_gpu, query_gradient_cost, query_gradient},
                                        {"units", fits_units_gradient, query_gradient_cost,
                                         query_gradient_units}}},
        [KEY_VALUE_GRADIENT] = {.name = "key and value gradients",
                                .phase = QN_PHASE_BACKWARD,
                                .read = {{QN_IN(QUERY)},
                                         {QN_IN(KEY)},
                                         {QN_IN(VALUE)},
                                         {QN_IN(LENGTHS)},
                                         {QN_DOUT(0)},
                                         {QN_SAVED(0)},
                                         {QN_TEMP(0)}},
                                .write = {{QN_DIN(KEY)}, {QN_DIN(VALUE)}},
                                .variant = {{"cpu", fits_cpu, key_value_gradient_cost,
                                             key_value_gradient, .cpu = true},
                                            {"gpu", fits_gpu, key_value_gradient_cost,
                                             key_value_gradient},
                                            {"units", fits_units_gradient, key_value_gradient_cost,
                                             key_value_gradient_units}}},
    }};

qn_tensor qn_attention(qn_graph *graph, qn_tensor q, qn_tensor k, qn_tensor v, qn_tensor lengths,
                       const qn_attention_params *params)
{
    const qn_attention_params none = {0};
    params = params ? params : &none;
    const int heads = params->heads ? params->heads : 1;
    const struct qn_attention_attr attr = {.heads = heads,
                                           .kv_heads = params->kv_heads ? params->kv_heads : heads,
                                           .causal = params->causal,
                                           .scale = (float)params->scale,
                                           .dropout = (float)params->dropout};
    return qn_op_apply(graph, &qn_op_attention, (const qn_tensor[]){q, k, v, lengths}, &attr);
}
