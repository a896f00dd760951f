/* SPDX-License-Identifier: MIT
 *
 * What the samples of a bank know of each other (op/info_nce.h): largest scores and sums of
 * exponentials over tiles of the bank, for info_nce, which would otherwise make all scores of the
 * bank anew in every micro-step. Vectors of a bank stay until they are written over, so that a
 * micro-step changes no more than the columns of its own samples and the rows of the tiles that
 * they are in: n * m and tile * k scores of k queries with the passages of m samples, where the
 * whole has k * m.
 */
#include "base/log.h"
#include "base/shape.h"
#include "op/info_nce.h"
#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

#include <quern/contrastive.h>

#include <math.h>

/* As in cl_kernels/bank_table.cl. */
enum { ALL, FRESH, TOUCHED };
enum { PASSAGES, QUERIES, OWN };
/* Of a block of scores: what looks and is looked at, at most, but for whole tiles; scores.
 * Operations on a score beside its product. */
enum { MOST_ROWS = 2048, MOST_COLUMNS = 1024, MOST_SCORES = MOST_ROWS * MOST_COLUMNS };
enum { LEARNING = 12 };

static bool are_vectors(const struct qn_operand *operand)
{
    return qn_is_float(operand) && operand->shape.rank == 2;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_bank_table_attr *attr = call->attr;
    const struct qn_operand *queries = &call->in[QN_TABLE_QUERIES];
    const struct qn_operand *passages = &call->in[QN_TABLE_PASSAGES];
    const struct qn_operand *ids = &call->in[QN_TABLE_IDS], *before = &call->in[QN_TABLE_BEFORE];
    if (ids->dtype != QN_I32 || ids->shape.rank != 1)
        return qn_shape_error(call, "ids must be one in i32 for each sample of the bank");
    const int64_t samples = ids->shape.dim[0];
    if (!are_vectors(queries) || !are_vectors(passages) || queries->dtype != passages->dtype ||
        queries->shape.dim[1] != passages->shape.dim[1] || queries->shape.dim[0] > samples ||
        passages->shape.dim[0] % samples != 0)
        return qn_shape_error(call,
                              "takes queries (k, d) and passages (m * p, d) of one type, k at most "
                              "m, which is %lld",
                              (long long)samples);
    const int64_t stored = queries->shape.dim[0];
    const int64_t rows = qn_table_rows(samples, stored, attr->symmetric);
    if (before->dtype != QN_F32 || before->shape.rank != 2 || before->shape.dim[0] != rows ||
        before->shape.dim[1] != stored)
        return qn_shape_error(call, "the table must be (%lld, %lld) in f32", (long long)rows,
                              (long long)stored);
    if (!isfinite(attr->scale) || attr->scale <= 0)
        return qn_shape_error(call, "a scale of %g is not above 0", (double)attr->scale);
    qn_shape_set(&call->out[0], QN_F32, 2, before->shape.dim);
    return QN_OK;
}

/* --- the work --- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Vectors of a bank, of its samples or of those whose queries it has: `count` entries with `each`
 * of them, of which the first `take` count. */
struct side {
    const struct qn_operand *vectors;
    int64_t count, each, take;
    int what;
};

/* `product` is the call as the products see it, with the scratch that is left for them. */
struct work {
    const struct qn_call *call;
    const struct qn_bank_table_attr *attr;
    const struct qn_matmul_way *way;
    int64_t samples, queries, each, fresh, tile, features;
    bool back;
    struct side looks, seen;
    int64_t row; /* of the table: the largest scores with the first tile */
    struct qn_call product;
};

/* Queries look at passages, or own passages at queries. */
static struct work work_of(const struct qn_call *call, const struct qn_matmul_way *way, bool back)
{
    const struct qn_operand *queries = &call->in[QN_TABLE_QUERIES];
    const struct qn_operand *passages = &call->in[QN_TABLE_PASSAGES];
    const int64_t samples = call->in[QN_TABLE_IDS].shape.dim[0];
    const int64_t stored = queries->shape.dim[0], each = passages->shape.dim[0] / samples;
    const struct side all = {passages, samples, each, each, PASSAGES};
    const struct side asking = {queries, stored, 1, 1, QUERIES};
    const struct side own = {passages, stored, each, 1, OWN};
    return (struct work){.call = call,
                         .attr = call->attr,
                         .way = way,
                         .samples = samples,
                         .queries = stored,
                         .each = each,
                         .fresh = least(call->batch, stored),
                         .tile = qn_table_tile(back ? stored : samples),
                         .features = queries->shape.dim[1],
                         .back = back,
                         .looks = back ? own : asking,
                         .seen = back ? asking : all,
                         .row = 1 + (back ? 2 * qn_table_tiles(samples) : 0),
                         .product = *call};
}

/* Tiles that fresh entries may be in, wherever they begin: one more than they fill at either end,
 * and the last of the ring, which may be short. */
static int64_t touched_tiles(const struct work *w)
{
    const int64_t tiles = qn_table_tiles(w->seen.count);
    const int64_t missing = tiles * w->tile - w->seen.count;
    return least(tiles, (w->fresh + missing + w->tile - 2) / w->tile + 1);
}

/* A block of scores: entries of a list from `first` on that look, and entries that are seen. */
struct block {
    int rows, columns; /* lists */
    int64_t first_row, row_count, first_column, column_count;
    struct qn_operand looks, seen, scores;
};

static struct qn_operand take(struct qn_operand *scratch, qn_dtype dtype, int64_t rows,
                              int64_t columns)
{
    const int64_t size = qn_dtype_size(dtype), word = (int64_t)sizeof(float);
    const int64_t taken = qn_round_up(qn_div_up(rows * columns * size, word), 16);
    struct qn_operand operand = *scratch;
    operand.offset = scratch->offset * word / size;
    qn_shape_set(&operand, dtype, 2, (const int64_t[]){rows, columns});
    scratch->offset += taken;
    scratch->shape.dim[0] -= taken;
    return operand;
}

static struct qn_operand vectors_of(const struct side *side, int64_t first, int64_t count)
{
    struct qn_operand rows = *side->vectors;
    rows.offset += first * side->each * rows.shape.dim[1];
    rows.shape.dim[0] = count * side->each;
    return rows;
}

/* What is done with each block; `user` is of the one who visits. */
struct visitor {
    qn_status (*gather)(void *user, const struct work *w, const struct side *side, int list,
                        int64_t first, const struct qn_operand *to);
    qn_status (*score)(void *user, const struct work *w, const struct block *block);
    void *user;
};

/* Columns of a block: entries in whole tiles. */
static int64_t block_columns(const struct work *w, int64_t rows, int64_t tiles)
{
    const int64_t wide = w->tile * w->seen.take;
    return least(tiles, most(1, most(MOST_COLUMNS, MOST_SCORES / rows) / wide)) * w->tile;
}

/* Whether those that look stand side by side, in the order of the table's columns. */
static bool in_order(const struct work *w)
{
    return w->looks.each == 1 && (w->looks.what == QUERIES || w->queries == w->samples);
}

/* All that look, at the tiles that have fresh entries. */
static qn_status visit_touched(struct work *w, const struct visitor *visitor)
{
    const int64_t count = touched_tiles(w) * w->tile;
    const int64_t columns = block_columns(w, w->queries, touched_tiles(w));
    const int64_t rows = in_order(w) ? most(1, MOST_SCORES / (columns * w->seen.take)) : MOST_ROWS;
    const int64_t high = least(w->queries, rows);
    struct qn_operand *scratch = &w->product.scratch;
    const qn_dtype dtype = w->seen.vectors->dtype;
    struct block b = {.rows = ALL, .columns = TOUCHED};
    const struct qn_operand seen = take(scratch, dtype, columns * w->seen.take, w->features);
    const struct qn_operand looks = take(scratch, dtype, in_order(w) ? 0 : high, w->features);
    b.scores = take(scratch, QN_F32, high, columns * w->seen.take);
    for (; b.first_column < count; b.first_column += columns) {
        b.column_count = least(columns, count - b.first_column);
        b.seen = seen;
        b.seen.shape.dim[0] = b.column_count * w->seen.take;
        QN_TRY(visitor->gather(visitor->user, w, &w->seen, TOUCHED, b.first_column, &b.seen));
        for (b.first_row = 0; b.first_row < w->queries; b.first_row += high) {
            b.row_count = least(high, w->queries - b.first_row);
            b.looks = in_order(w) ? vectors_of(&w->looks, b.first_row, b.row_count) : looks;
            b.looks.shape.dim[0] = b.row_count;
            if (!in_order(w))
                QN_TRY(visitor->gather(visitor->user, w, &w->looks, ALL, b.first_row, &b.looks));
            QN_TRY(visitor->score(visitor->user, w, &b));
        }
    }
    return QN_OK;
}

/* Fresh ones look at all tiles. */
static qn_status visit_fresh(struct work *w, const struct visitor *visitor)
{
    const int64_t high = least(w->fresh, MOST_ROWS);
    const int64_t columns = block_columns(w, high, qn_table_tiles(w->seen.count));
    struct qn_operand *scratch = &w->product.scratch;
    struct block b = {.rows = FRESH, .columns = ALL};
    const struct qn_operand vectors = take(scratch, w->looks.vectors->dtype, high, w->features);
    b.scores = take(scratch, QN_F32, high, least(columns, w->seen.count) * w->seen.take);
    for (; b.first_row < w->fresh; b.first_row += high) {
        b.row_count = least(high, w->fresh - b.first_row);
        b.looks = vectors;
        b.looks.shape.dim[0] = b.row_count;
        QN_TRY(visitor->gather(visitor->user, w, &w->looks, FRESH, b.first_row, &b.looks));
        for (b.first_column = 0; b.first_column < w->seen.count; b.first_column += columns) {
            b.column_count = least(columns, w->seen.count - b.first_column);
            b.seen = vectors_of(&w->seen, b.first_column, b.column_count);
            QN_TRY(visitor->score(visitor->user, w, &b));
        }
    }
    return QN_OK;
}

/* Each part begins with the same scratch. */
static qn_status visit(const struct qn_call *call, const struct qn_matmul_way *way,
                       const struct visitor *visitor)
{
    const struct qn_bank_table_attr *attr = call->attr;
    for (int back = 0; back < 1 + (attr->symmetric != 0); back++) {
        struct work touched = work_of(call, way, back), fresh = touched;
        QN_TRY(visit_touched(&touched, visitor));
        QN_TRY(visit_fresh(&fresh, visitor));
    }
    return QN_OK;
}

static struct qn_matmul product_of(const struct work *w, const struct block *block)
{
    return (struct qn_matmul){.m = block->looks.shape.dim[0],
                              .n = block->seen.shape.dim[0],
                              .k = w->features,
                              .trans_b = true,
                              .a = &block->looks,
                              .b = &block->seen,
                              .c = &block->scores};
}

/* --- fits and costs --- */

static qn_status gather_nothing(void *user, const struct work *w, const struct side *side, int list,
                                int64_t first, const struct qn_operand *to)
{
    (void)user, (void)w, (void)side, (void)list, (void)first, (void)to;
    return QN_OK;
}

struct asking {
    const char **why;
    bool fits;
};

static qn_status ask(void *user, const struct work *w, const struct block *block)
{
    struct asking *asking = user;
    const struct qn_matmul product = product_of(w, block);
    asking->fits = asking->fits && w->way->fits(&w->product, &product, asking->why);
    return QN_OK;
}

static bool fits(const struct qn_call *call, const struct qn_matmul_way *way, const char **why)
{
    struct asking asking = {why, true};
    visit(call, way, &(struct visitor){gather_nothing, ask, &asking});
    return asking.fits;
}

static qn_status add_gather(void *user, const struct work *w, const struct side *side, int list,
                            int64_t first, const struct qn_operand *to)
{
    (void)w, (void)side, (void)list, (void)first, (void)to;
    ((struct qn_cost *)user)->launches++;
    return QN_OK;
}

static qn_status add_block(void *user, const struct work *w, const struct block *block)
{
    struct qn_cost *cost = user, one = {0};
    const struct qn_matmul product = product_of(w, block);
    const int64_t own = w->product.scratch.offset - w->call->scratch.offset;
    w->way->cost(&w->product, &product, &one);
    cost->flops += one.flops + LEARNING * (double)product.m * (double)product.n;
    cost->launches += one.launches + 2;
    cost->scratch = most(cost->scratch, one.scratch + own * (int64_t)sizeof(float));
    return QN_OK;
}

static void cost_of(const struct qn_call *call, const struct qn_matmul_way *way,
                    struct qn_cost *cost)
{
    visit(call, way, &(struct visitor){add_gather, add_block, cost});
    cost->launches++;
    cost->bytes = qn_group_bytes(call, 0) + 2 * (double)cost->scratch;
}

/* --- launches --- */

/* Where there are fewer queries than samples the kernels ask which is whose: then by the next rows
 * of the rings of queries and passages, since that of ids says which are fresh. */
static void table_options(struct qn_launch *launch, const struct work *w)
{
    launch->program = "bank_table";
    qn_launch_option(launch, "QN_TILE", w->tile);
    if (w->queries == w->samples)
        return;
    qn_launch_option(launch, "QN_EACH", w->each);
    qn_launch_option(launch, "QN_BANK_ROWS", w->queries);
    qn_launch_option(launch, "QN_BANK_SAMPLES", w->samples);
    qn_launch_option(launch, "QN_ROW_SLOT", w->call->slot[QN_TABLE_QUERIES]);
    qn_launch_option(launch, "QN_SAMPLE_SLOT", w->call->slot[QN_TABLE_PASSAGES]);
}

static qn_status emit_gather(void *user, const struct work *w, const struct side *side, int list,
                             int64_t first, const struct qn_operand *to)
{
    struct qn_launch launch = {
        .kernel = "gather",
        .args = {QN_BUF(side->vectors), QN_BUF(to), QN_BUF(&w->call->control), QN_LONG(w->samples),
                 QN_LONG(w->queries), QN_LONG(w->fresh), QN_LONG(to->shape.dim[0]),
                 QN_LONG(w->features), QN_LONG(side->take), QN_LONG(side->each), QN_LONG(first),
                 QN_INT(list), QN_INT(side->what), QN_INT(w->call->slot[QN_TABLE_IDS])},
        .global = {w->features, qn_row_range(to->shape.dim[0])},
        .local = {QN_ELEMENTWISE_LOCAL}};
    table_options(&launch, w);
    qn_launch_type(&launch, "V", to);
    return qn_emit_launch(user, &launch);
}

static qn_status emit_scores(struct qn_emit *emit, const struct work *w, const struct block *block)
{
    const int64_t m = block->row_count, n = block->seen.shape.dim[0];
    struct qn_launch launch = {
        .kernel = "scores",
        .args = {QN_BUF(&block->scores), QN_BUF(&w->call->in[QN_TABLE_IDS]),
                 QN_BUF(&w->call->control), QN_LONG(w->samples), QN_LONG(w->queries),
                 QN_LONG(w->fresh), QN_LONG(m), QN_LONG(n), QN_LONG(block->first_row),
                 QN_LONG(block->first_column), QN_INT(block->rows), QN_INT(block->columns),
                 QN_FLOAT(w->attr->scale), QN_INT(w->attr->duplicates), QN_INT(w->back),
                 QN_INT(w->call->slot[QN_TABLE_IDS])},
        .global = {n, qn_row_range(m)},
        .local = {QN_ELEMENTWISE_LOCAL}};
    table_options(&launch, w);
    qn_launch_option(&launch, "QN_COLUMN_EACH", w->seen.take);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_learn(struct qn_emit *emit, const struct work *w, const struct block *block)
{
    const int64_t n = block->seen.shape.dim[0], wide = w->tile * w->seen.take;
    const struct qn_walk walk = qn_walk_rows(w->call, least(n, wide));
    struct qn_launch launch = {
        .kernel = "learn",
        .args = {QN_BUF(&block->scores), QN_BUF(&w->call->out[0]), QN_BUF(&w->call->control),
                 QN_LONG(w->samples), QN_LONG(w->queries), QN_LONG(w->fresh), QN_LONG(n),
                 QN_LONG(block->first_row), QN_LONG(block->first_column), QN_LONG(w->row),
                 QN_INT(block->rows), QN_INT(block->columns), QN_INT(w->back),
                 QN_INT(w->call->slot[QN_TABLE_IDS])},
        .global = {block->row_count * qn_div_up(n, wide) * walk.group},
        .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    table_options(&launch, w);
    qn_launch_option(&launch, "QN_COLUMN_EACH", w->seen.take);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_block(void *user, const struct work *w, const struct block *block)
{
    const struct qn_matmul product = product_of(w, block);
    QN_TRY(w->way->emit(user, &w->product, &product));
    QN_TRY(emit_scores(user, w, block));
    return emit_learn(user, w, block);
}

/* Before and after are the same table in a plan. */
static qn_status emit_copy(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_operand *from = &call->in[QN_TABLE_BEFORE], *to = &call->out[0];
    const bool same = from->buffer == to->buffer && from->offset == to->offset;
    const int64_t count = same ? 0 : qn_operand_count(to);
    const struct qn_launch launch = {.program = "bank_table",
                                     .kernel = "copy",
                                     .args = {QN_BUF(from), QN_BUF(to), QN_LONG(count)},
                                     .global = {count},
                                     .local = {QN_ELEMENTWISE_LOCAL}};
    return qn_emit_launch(emit, &launch);
}

static qn_status emit(struct qn_emit *emit, const struct qn_call *call,
                      const struct qn_matmul_way *way)
{
    QN_TRY(emit_copy(emit, call));
    return visit(call, way, &(struct visitor){emit_gather, emit_block, emit});
}

#define VARIANT(name)                                                                              \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        return fits(call, &qn_matmul_##name, why);                                                 \
    }                                                                                              \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        cost_of(call, &qn_matmul_##name, cost);                                                    \
    }                                                                                              \
    static qn_status name##_emit(struct qn_emit *to, const struct qn_call *call)                   \
    {                                                                                              \
        return emit(to, call, &qn_matmul_##name);                                                  \
    }
VARIANT(cpu)
VARIANT(gpu)
VARIANT(units)

/* Samples of one tile have queries in several where there are fewer of these. */
static int64_t stretch(const struct qn_call *call)
{
    const struct qn_bank_table_attr *attr = call->attr;
    const int64_t samples = call->in[QN_TABLE_IDS].shape.dim[0];
    const bool all = call->in[QN_TABLE_QUERIES].shape.dim[0] == samples;
    return attr->symmetric && !all ? 1 : qn_table_tile(samples);
}

static const struct qn_table_rule rule = {1u << QN_TABLE_IDS, stretch};

const struct qn_op qn_op_bank_table = {
    .name = "bank_table",
    .attr_size = sizeof(struct qn_bank_table_attr),
    .n_in = 4,
    .n_required = 4,
    .n_out = 1,
    .table = &rule,
    .no_gradient = 1u << QN_TABLE_QUERIES | 1u << QN_TABLE_PASSAGES | 1u << QN_TABLE_IDS |
                   1u << QN_TABLE_BEFORE,
    .shape = shape,
    .groups = {
        {.name = "update",
         .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
         .read = {{QN_IN(QN_TABLE_QUERIES)},
                  {QN_IN(QN_TABLE_PASSAGES)},
                  {QN_IN(QN_TABLE_IDS)},
                  {QN_IN(QN_TABLE_BEFORE)}},
         .write = {{QN_OUT(0), QN_IN(QN_TABLE_BEFORE)}},
         .once = true,
         .variant = {{"cpu", cpu_fits, cpu_cost, cpu_emit, qn_matmul_settings, .cpu = true},
                     {"gpu", gpu_fits, gpu_cost, gpu_emit, qn_matmul_settings},
                     {"units", units_fits, units_cost, units_emit, qn_matmul_units_settings}}}}};

qn_tensor qn_bank_table(qn_graph *graph, const qn_info_nce_params *params)
{
    static const qn_info_nce_params none = {0};
    const qn_info_nce_params *p = params ? params : &none;
    const struct qn_bank_table_attr attr = {.scale = qn_nce_scale(p->temperature),
                                            .symmetric = p->symmetric,
                                            .duplicates = p->duplicates};
    const qn_tensor in[] = {[QN_TABLE_QUERIES] = p->bank_queries,
                            [QN_TABLE_PASSAGES] = p->bank_passages,
                            [QN_TABLE_IDS] = p->bank_ids,
                            [QN_TABLE_BEFORE] = p->bank_table};
    return qn_op_apply(graph, &qn_op_bank_table, in, &attr);
}

int64_t qn_bank_table_rows(int64_t samples, int64_t queries, bool symmetric)
{
    return samples < 1 || queries < 1 ? 0 : qn_table_rows(samples, queries, symmetric);
}
