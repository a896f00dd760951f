/* SPDX-License-Identifier: MIT
 *
 * Attention of single tokens to a cache of keys and values that all of them share, each as far as
 * its own position: what generation takes. It has no backward pass.
 */
#include "op/cached_attention.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"

#include <math.h>
#include <quern/ops.h>

enum { QUERY, CACHE, POSITIONS };
enum { HEAD_STEP = 8, MOST_HEAD = 128 };

/* CPU shape: queries of a work-group at most, work-groups for each compute unit that are aimed at,
 * and keys of a tile. */
enum { MOST_ROWS = 16, GROUPS_PER_UNIT = 2, TILE = 32 };

struct sizes {
    int64_t tokens, keys, heads, kv_heads, head;
};

static struct sizes sizes_of(const struct qn_call *call)
{
    const struct qn_cached_attention_attr *attr = call->attr;
    const int64_t *q = call->in[QUERY].shape.dim;
    return (struct sizes){.tokens = q[0] * q[1],
                          .keys = call->in[CACHE].shape.dim[0],
                          .heads = attr->heads,
                          .kv_heads = attr->kv_heads,
                          .head = q[2] / attr->heads};
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cached_attention_attr *attr = call->attr;
    const struct qn_operand *q = &call->in[QUERY], *cache = &call->in[CACHE];
    const struct qn_operand *positions = &call->in[POSITIONS];
    if (attr->heads < 1 || attr->kv_heads < 1 || attr->heads % attr->kv_heads != 0)
        return qn_shape_error(call, "%d heads cannot share %d heads of keys", attr->heads,
                              attr->kv_heads);
    if (q->shape.rank != 3 || q->dtype != call->storage)
        return qn_shape_error(call, "takes q (b, t, n) in the storage type");
    if (positions->dtype != QN_I32 || positions->shape.rank != 2 ||
        positions->shape.dim[0] != q->shape.dim[0] || positions->shape.dim[1] != q->shape.dim[1])
        return qn_shape_error(call, "positions are i32 (b, t), one for each token of q");
    const int64_t head = q->shape.dim[2] / attr->heads;
    if (head * attr->heads != q->shape.dim[2] || head < HEAD_STEP || head > MOST_HEAD ||
        head % HEAD_STEP != 0)
        return qn_shape_error(call,
                              "%lld elements a token are not %d heads of a multiple of %d up to %d",
                              (long long)q->shape.dim[2], attr->heads, HEAD_STEP, MOST_HEAD);
    if (cache->shape.rank != 2 || cache->dtype != call->storage ||
        cache->shape.dim[1] != 2 * attr->kv_heads * head)
        return qn_shape_error(call, "the cache is (rows, %lld) in the storage type",
                              2ll * attr->kv_heads * (long long)head);
    if (cache->shape.dim[0] > INT32_MAX / 2)
        return qn_shape_error(call, "%lld rows are too many", (long long)cache->shape.dim[0]);
    call->out[0] = *q;
    return QN_OK;
}

static void cost_of(const struct qn_call *call, struct qn_cost *cost)
{
    const struct sizes s = sizes_of(call);
    cost->flops = 4.0 * (double)(s.tokens * s.heads) * (double)(s.keys * s.head);
    cost->bytes = qn_group_bytes(call, 0);
    cost->launches = 1;
}

static int64_t rows_of(const struct qn_facts *facts, const struct sizes *s)
{
    const int64_t queries = s->tokens * (s->heads / s->kv_heads);
    int64_t rows = MOST_ROWS;
    while (rows > 1 &&
           s->kv_heads * qn_div_up(queries, rows) < GROUPS_PER_UNIT * (int64_t)facts->compute_units)
        rows /= 2;
    return rows;
}

/* The widest vectors that a head is a multiple of. */
static int64_t vector_of(const struct qn_facts *facts, int64_t head)
{
    const int64_t width = qn_vector_width(facts);
    return head % width == 0 ? width : HEAD_STEP;
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct sizes s = sizes_of(call);
    const float scale = (float)(1.4426950408889634 / sqrt((double)s.head));
    const int64_t rows = call->cpu ? rows_of(call->facts, &s) : 1;
    const int64_t queries = s.tokens * (s.heads / s.kv_heads);
    struct qn_launch launch = {.program = "cached_attention",
                               .kernel = "cached_attention",
                               .args = {QN_BUF(&call->in[QUERY]), QN_BUF(&call->in[CACHE]),
                                        QN_BUF(&call->in[POSITIONS]), QN_BUF(&call->out[0]),
                                        QN_INT(queries), QN_INT(s.keys), QN_INT(s.kv_heads),
                                        QN_INT(s.heads / s.kv_heads), QN_FLOAT(scale)},
                               .local = {call->cpu ? 1 : QN_ROW_GROUP}};
    launch.global[0] = s.kv_heads * qn_div_up(queries, rows) * launch.local[0];
    qn_launch_type(&launch, "X", &call->in[QUERY]);
    qn_launch_option(&launch, "HEAD", s.head);
    qn_launch_option(&launch, "ROWS", rows);
    qn_launch_option(&launch, "TILE", TILE);
    qn_launch_option(&launch, "QN_V", vector_of(call->facts, s.head));
    qn_launch_option(&launch, "QN_WG", launch.local[0]);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_cached_attention = {
    .name = "cached_attention",
    .attr_size = sizeof(struct qn_cached_attention_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .batch = {QN_BATCH_MUST, QN_BATCH_NEVER, QN_BATCH_MUST},
    .no_gradient = 1u << QUERY | 1u << CACHE | 1u << POSITIONS,
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(QUERY)}, {QN_IN(CACHE)}, {QN_IN(POSITIONS)}},
                .write = {{QN_OUT(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost_of, emit_forward)}}};

qn_tensor qn_cached_attention(qn_graph *graph, qn_tensor q, qn_tensor cache, qn_tensor positions,
                              int heads, int kv_heads)
{
    const struct qn_cached_attention_attr attr = {.heads = heads ? heads : 1,
                                                  .kv_heads = kv_heads ? kv_heads
                                                              : heads  ? heads
                                                                       : 1};
    return qn_op_apply(graph, &qn_op_cached_attention, (const qn_tensor[]){q, cache, positions},
                       &attr);
}
