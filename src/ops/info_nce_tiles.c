/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/info_nce_tiles.h"

/* Rows (queries) and columns (passages) of a tile: 8 MiB of scores, which is what a loss over any
 * number of samples needs beside its operands. */
enum { TILE_ROWS = 2048, TILE_COLUMNS = 1024 };
/* Numbers that are known of a row (cl_kernels/info_nce.cl), and bits of its `what`. */
enum { KNOWN = 4 };
enum { LEARNED = 1, EMPTY_ROWS = 2, EMPTY_COLUMNS = 4, DUPLICATES = 8, SAME_SIDE = 16 };
/* Operations on a score beside its product: forward and backward. */
enum { LEARNING = 12, GRADIENT = 14 };
/* Operations on a pair of numbers of the table. */
enum { RECALLING = 4 };

struct qn_nce_sizes qn_nce_sizes_of(const struct qn_call *call)
{
    const int64_t samples = call->in[QN_NCE_QUERIES].shape.dim[0];
    const struct qn_operand *bank = &call->in[QN_NCE_BANK_QUERIES];
    const struct qn_operand *ids = &call->in[QN_NCE_BANK_IDS];
    return (struct qn_nce_sizes){.samples = samples,
                                 .bank = qn_present(bank) ? bank->shape.dim[0] : 0,
                                 .stored = qn_present(ids) ? ids->shape.dim[0] : 0,
                                 .each = call->in[QN_NCE_PASSAGES].shape.dim[0] / samples};
}

/* The bank has queries, but not of all its samples. */
static bool has_fewer_queries(const struct qn_nce_sizes *size)
{
    return size->bank > 0 && size->bank < size->stored;
}

void qn_nce_options(const struct qn_call *call, struct qn_launch *launch)
{
    const struct qn_nce_sizes size = qn_nce_sizes_of(call);
    qn_launch_option(launch, "QN_EACH", size.each);
    if (!has_fewer_queries(&size))
        return;
    qn_launch_option(launch, "QN_BANK_ROWS", size.bank);
    qn_launch_option(launch, "QN_BANK_SAMPLES", size.stored);
    qn_launch_option(launch, "QN_ROW_SLOT", call->slot[QN_NCE_BANK_QUERIES]);
    qn_launch_option(launch, "QN_SAMPLE_SLOT", call->slot[QN_NCE_BANK_IDS]);
}

/* Rows or columns of scores: queries or passages, of the micro-step or of a bank. */
struct side {
    const struct qn_operand *vectors, *ids;
    int64_t count; /* of vectors */
    int64_t at;    /* place of its first sample among those of micro-step and bank */
    bool bank;
};

/* A group of a call. `product` is the call as the products see it, with the scratch that is left
 * for them; `known` is of all rows, and of all columns of own passages behind them. */
struct work {
    enum qn_nce_group group;
    struct qn_nce_sizes size;
    const struct qn_info_nce_attr *attr;
    const struct qn_matmul_way *way;
    struct side row[2], column[2];
    int rows, columns; /* sides that there are, or whose scores the group needs */
    struct qn_operand scores, known_rows, known_columns;
    struct qn_operand sum; /* the gradient of a block of vectors, where it needs f32 of its own */
    struct qn_call product;
};

static struct qn_operand take(struct qn_operand *scratch, int64_t rows, int64_t columns)
{
    const int64_t taken = qn_round_up(rows * columns, 16);
    struct qn_operand operand = *scratch;
    qn_shape_set(&operand, QN_F32, 2, (const int64_t[]){rows, columns});
    scratch->offset += taken;
    scratch->shape.dim[0] -= taken;
    return operand;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct side side_of(const struct qn_call *call, int vectors, bool bank)
{
    const struct qn_operand *of = &call->in[vectors];
    return (struct side){.vectors = of,
                         .ids = &call->in[bank ? QN_NCE_BANK_IDS : QN_NCE_IDS],
                         .count = qn_present(of) ? of->shape.dim[0] : 0,
                         .at = bank ? call->in[QN_NCE_QUERIES].shape.dim[0] : 0,
                         .bank = bank};
}

/* Vectors of the bank get no gradient: the scores of its own with its own are for the loss alone.
 */
static void add_sides(struct work *w, const struct qn_call *call)
{
    w->row[0] = side_of(call, QN_NCE_QUERIES, false);
    w->row[1] = side_of(call, QN_NCE_BANK_QUERIES, true);
    w->column[0] = side_of(call, QN_NCE_PASSAGES, false);
    w->column[1] = side_of(call, QN_NCE_BANK_PASSAGES, true);
    w->rows = w->group == QN_NCE_QUERY_GRADIENT ? 1 : 1 + (w->row[1].count > 0);
    w->columns = w->group == QN_NCE_PASSAGE_GRADIENT ? 1 : 1 + (w->column[1].count > 0);
}

static const struct qn_operand *wanted(const struct work *w, const struct qn_call *call)
{
    return &call->din[w->group == QN_NCE_QUERY_GRADIENT ? QN_NCE_QUERIES : QN_NCE_PASSAGES];
}

static int64_t most(const struct side *side, int sides)
{
    return sides > 1 && side[1].count > side[0].count ? side[1].count : side[0].count;
}

static struct work work_of(const struct qn_call *call, enum qn_nce_group group,
                           const struct qn_matmul_way *way)
{
    struct work w = {.group = group,
                     .size = qn_nce_sizes_of(call),
                     .attr = call->attr,
                     .way = way,
                     .product = *call};
    add_sides(&w, call);
    const int64_t rows = least(TILE_ROWS, most(w.row, w.rows));
    const int64_t columns = least(TILE_COLUMNS, most(w.column, w.columns));
    const int64_t features = call->in[QN_NCE_QUERIES].shape.dim[1];
    const int64_t known = w.size.samples + w.size.bank;
    w.scores = take(&w.product.scratch, rows, columns);
    if (group == QN_NCE_FORWARD) {
        w.known_rows = take(&w.product.scratch, known, KNOWN);
        w.known_columns = take(&w.product.scratch, w.attr->symmetric ? known : 0, KNOWN);
    } else if (wanted(&w, call)->dtype != QN_F32) {
        w.sum = take(&w.product.scratch, group == QN_NCE_QUERY_GRADIENT ? rows : columns, features);
    }
    return w;
}

/* --- tiles --- */

struct tile {
    const struct side *row, *column;
    int64_t first_row, m, first_column, n;
    bool begins_rows, begins_columns; /* the first of these rows, of these columns */
    bool ends;                        /* the last of those that a block's gradient is the sum of */
    struct qn_operand scores, queries, passages;
};

static struct qn_operand rows_of(const struct qn_operand *all, int64_t first, int64_t count)
{
    struct qn_operand rows = *all;
    rows.offset += first * qn_shape_span(&all->shape, 1, all->shape.rank);
    rows.shape.dim[0] = count;
    return rows;
}

static struct tile tile_of(const struct work *w, const struct side *row, int64_t first_row,
                           const struct side *column, int64_t first_column)
{
    struct tile t = {.row = row,
                     .column = column,
                     .first_row = first_row,
                     .first_column = first_column,
                     .m = least(TILE_ROWS, row->count - first_row),
                     .n = least(TILE_COLUMNS, column->count - first_column)};
    const bool last_column = column == &w->column[w->columns - 1];
    const bool last_row = row == &w->row[w->rows - 1];
    t.begins_rows = !column->bank && first_column == 0;
    t.begins_columns = !row->bank && first_row == 0;
    t.ends = w->group == QN_NCE_QUERY_GRADIENT ? last_column && first_column + t.n == column->count
                                               : last_row && first_row + t.m == row->count;
    t.scores = w->scores;
    qn_shape_set(&t.scores, QN_F32, 2, (const int64_t[]){t.m, t.n});
    t.queries = rows_of(row->vectors, first_row, t.m);
    t.passages = rows_of(column->vectors, first_column, t.n);
    return t;
}

/* How many queries may have their own passages, which look for them, among the tile's columns, and
 * which is the first: none where queries alone look, or where the side's are no rows. Where queries
 * of the bank are, the host does not know if it has fewer of them. */
static int64_t own_passages(const struct work *w, const struct tile *tile, int64_t *first)
{
    const int64_t each = w->size.each;
    *first = 0;
    if (!w->attr->symmetric || (tile->column->bank && w->size.bank == 0))
        return 0;
    if (tile->column->bank && has_fewer_queries(&w->size))
        return w->size.bank;
    *first = qn_div_up(tile->first_column, each);
    return qn_div_up(tile->first_column + tile->n, each) - *first;
}

typedef qn_status (*visit_fn)(void *user, const struct work *w, const struct tile *tile);

/* Sides of columns that the rows' scores are made of: what the bank knows of itself may be in a
 * table. */
static int columns_of(const struct work *w, const struct side *row)
{
    return row->bank && qn_present(&w->product.in[QN_NCE_TABLE]) ? 1 : w->columns;
}

static qn_status visit_row(const struct work *w, const struct side *row, int64_t first,
                           visit_fn visit, void *user)
{
    for (int c = 0; c < columns_of(w, row); c++)
        for (int64_t j = 0; j < w->column[c].count; j += TILE_COLUMNS) {
            const struct tile tile = tile_of(w, row, first, &w->column[c], j);
            QN_TRY(visit(user, w, &tile));
        }
    return QN_OK;
}

static qn_status visit_column(const struct work *w, int64_t first, visit_fn visit, void *user)
{
    for (int r = 0; r < w->rows; r++)
        for (int64_t i = 0; i < w->row[r].count; i += TILE_ROWS) {
            const struct tile tile = tile_of(w, &w->row[r], i, &w->column[0], first);
            QN_TRY(visit(user, w, &tile));
        }
    return QN_OK;
}

/* All tiles that the group needs, those of one sum after another. */
static qn_status visit_tiles(const struct work *w, visit_fn visit, void *user)
{
    for (int64_t j = 0; w->group == QN_NCE_PASSAGE_GRADIENT && j < w->column[0].count;
         j += TILE_COLUMNS)
        QN_TRY(visit_column(w, j, visit, user));
    for (int r = 0; w->group != QN_NCE_PASSAGE_GRADIENT && r < w->rows; r++)
        for (int64_t i = 0; i < w->row[r].count; i += TILE_ROWS)
            QN_TRY(visit_row(w, &w->row[r], i, visit, user));
    return QN_OK;
}

/* --- products --- */

static struct qn_matmul scores_of(const struct tile *tile)
{
    return (struct qn_matmul){.m = tile->m,
                              .n = tile->n,
                              .k = tile->queries.shape.dim[1],
                              .trans_b = true,
                              .a = &tile->queries,
                              .b = &tile->passages,
                              .c = &tile->scores};
}

/* The rows of the gradient that the tile adds to. */
static struct qn_operand gradient_of(const struct work *w, const struct tile *tile)
{
    const bool queries = w->group == QN_NCE_QUERY_GRADIENT;
    const int64_t first = queries ? tile->first_row : tile->first_column;
    return rows_of(wanted(w, &w->product), first, queries ? tile->m : tile->n);
}

/* Where they are added up. */
static struct qn_operand sum_of(const struct work *w, const struct qn_operand *gradient)
{
    return qn_present(&w->sum) ? rows_of(&w->sum, 0, gradient->shape.dim[0]) : *gradient;
}

/* scores * passages, or scores^T * queries. */
static struct qn_matmul add_to(const struct work *w, const struct tile *tile,
                               const struct qn_operand *sum)
{
    const bool queries = w->group == QN_NCE_QUERY_GRADIENT;
    const bool begins = queries ? tile->begins_rows : tile->begins_columns;
    const float beta =
        qn_present(&w->sum) ? 0 : w->product.beta_in[queries ? QN_NCE_QUERIES : QN_NCE_PASSAGES];
    return (struct qn_matmul){.m = queries ? tile->m : tile->n,
                              .n = tile->queries.shape.dim[1],
                              .k = queries ? tile->n : tile->m,
                              .trans_a = !queries,
                              .a = &tile->scores,
                              .b = queries ? &tile->passages : &tile->queries,
                              .c = sum,
                              .beta = begins ? beta : 1};
}

/* --- fits and costs --- */

struct asking {
    const char **why;
    bool fits;
};

static qn_status ask_tile(void *user, const struct work *w, const struct tile *tile)
{
    struct asking *asking = user;
    if (!asking->fits || tile->first_row > 0 || tile->first_column > 0)
        return QN_OK; /* what fits the first tile of two sides fits the others */
    const struct qn_matmul scores = scores_of(tile);
    asking->fits = w->way->fits(&w->product, &scores, asking->why);
    if (!asking->fits || w->group == QN_NCE_FORWARD)
        return QN_OK;
    const struct qn_operand gradient = gradient_of(w, tile), sum = sum_of(w, &gradient);
    const struct qn_matmul product = add_to(w, tile, &sum);
    asking->fits = w->way->fits(&w->product, &product, asking->why);
    return QN_OK;
}

bool qn_nce_fits(const struct qn_call *call, enum qn_nce_group group,
                 const struct qn_matmul_way *way, const char **why)
{
    const struct work w = work_of(call, group, way);
    struct asking asking = {why, true};
    visit_tiles(&w, ask_tile, &asking);
    return asking.fits;
}

static void add_product(const struct work *w, const struct qn_matmul *product, struct qn_cost *cost)
{
    struct qn_cost one = {0};
    w->way->cost(&w->product, product, &one);
    cost->flops += one.flops;
    cost->launches += one.launches;
    cost->scratch = one.scratch > cost->scratch ? one.scratch : cost->scratch;
}

static qn_status add_tile(void *user, const struct work *w, const struct tile *tile)
{
    struct qn_cost *cost = user;
    int64_t first;
    const bool forward = w->group == QN_NCE_FORWARD;
    const struct qn_matmul scores = scores_of(tile);
    const int each = forward ? LEARNING * (1 + (w->attr->symmetric != 0)) : GRADIENT;
    add_product(w, &scores, cost);
    cost->flops += (double)each * (double)tile->m * (double)tile->n;
    cost->launches += forward ? 2 + (own_passages(w, tile, &first) > 0) : 1;
    if (forward)
        return QN_OK;
    const struct qn_operand gradient = gradient_of(w, tile), sum = sum_of(w, &gradient);
    const struct qn_matmul product = add_to(w, tile, &sum);
    add_product(w, &product, cost);
    cost->launches += tile->ends && qn_present(&w->sum);
    return QN_OK;
}

void qn_nce_cost(const struct qn_call *call, enum qn_nce_group group,
                 const struct qn_matmul_way *way, struct qn_cost *cost)
{
    const struct work w = work_of(call, group, way);
    const int64_t own = w.product.scratch.offset - call->scratch.offset;
    visit_tiles(&w, add_tile, cost);
    cost->launches += group == QN_NCE_FORWARD;
    if (group == QN_NCE_FORWARD && qn_present(&call->in[QN_NCE_TABLE])) {
        cost->launches++;
        cost->flops +=
            RECALLING * (double)(call->in[QN_NCE_TABLE].shape.dim[0] / 2) * (double)w.size.bank;
    }
    cost->scratch += own * (int64_t)sizeof(float);
    cost->bytes = qn_group_bytes(call, group) + 2 * (double)cost->scratch;
}

/* --- launches --- */

static int what_of(const struct work *w, const struct tile *tile)
{
    return (qn_present(&w->product.in[QN_NCE_LOGIT_SCALE]) ? LEARNED : 0) |
           (tile->row->bank ? EMPTY_ROWS : 0) | (tile->column->bank ? EMPTY_COLUMNS : 0) |
           (w->attr->duplicates ? DUPLICATES : 0) |
           (tile->row->bank == tile->column->bank ? SAME_SIDE : 0);
}

static qn_status launch_scores(struct qn_emit *emit, const struct work *w, const struct tile *tile,
                               struct qn_launch *launch)
{
    launch->program = "info_nce";
    launch->global[0] = tile->n;
    launch->global[1] = qn_row_range(tile->m);
    launch->local[0] = QN_ELEMENTWISE_LOCAL;
    qn_nce_options(&w->product, launch);
    return qn_emit_launch(emit, launch);
}

static qn_status emit_scores(struct qn_emit *emit, const struct work *w, const struct tile *tile)
{
    struct qn_launch launch = {
        .kernel = "scores",
        .args = {QN_BUF(&tile->scores), QN_BUF(tile->row->ids), QN_BUF(tile->column->ids),
                 QN_BUF(&w->product.in[QN_NCE_LOGIT_SCALE]), QN_BUF(&w->product.control),
                 QN_LONG(tile->m), QN_LONG(tile->n), QN_INT(tile->first_row),
                 QN_INT(tile->first_column), QN_FLOAT(w->attr->scale), QN_INT(what_of(w, tile))}};
    return launch_scores(emit, w, tile, &launch);
}

static qn_status launch_row_groups(struct qn_emit *emit, const struct work *w, int64_t groups,
                                   int64_t n, struct qn_launch *launch)
{
    const struct qn_walk walk = qn_walk_rows(&w->product, n);
    launch->program = "info_nce";
    launch->global[0] = groups * walk.group;
    launch->local[0] = walk.group;
    qn_walk_options(launch, &walk);
    qn_nce_options(&w->product, launch);
    return qn_emit_launch(emit, launch);
}

static qn_status learn_rows(struct qn_emit *emit, const struct work *w, const struct tile *tile)
{
    struct qn_launch launch = {.kernel = "learn_rows",
                               .args = {QN_BUF(&tile->scores), QN_BUF(&w->known_rows),
                                        QN_BUF(&w->product.control), QN_LONG(tile->n),
                                        QN_LONG(tile->row->at + tile->first_row),
                                        QN_INT(tile->first_row), QN_INT(tile->first_column),
                                        QN_INT(what_of(w, tile)), QN_INT(tile->begins_rows)}};
    return launch_row_groups(emit, w, tile->m, tile->n, &launch);
}

static qn_status learn_columns(struct qn_emit *emit, const struct work *w, const struct tile *tile)
{
    int64_t first;
    const int64_t queries = own_passages(w, tile, &first);
    struct qn_launch launch = {.program = "info_nce",
                               .kernel = "learn_columns",
                               .args = {QN_BUF(&tile->scores), QN_BUF(&w->known_columns),
                                        QN_BUF(&w->product.control), QN_LONG(tile->m),
                                        QN_LONG(tile->n), QN_LONG(queries), QN_LONG(first),
                                        QN_LONG(tile->column->at + first), QN_INT(tile->first_row),
                                        QN_INT(tile->first_column), QN_INT(what_of(w, tile)),
                                        QN_INT(tile->begins_columns)},
                               .global = {queries},
                               .local = {QN_ELEMENTWISE_LOCAL}};
    qn_nce_options(&w->product, &launch);
    return queries > 0 ? qn_emit_launch(emit, &launch) : QN_OK;
}

static qn_status emit_forward(struct qn_emit *emit, const struct work *w, const struct tile *tile)
{
    QN_TRY(emit_scores(emit, w, tile));
    QN_TRY(learn_rows(emit, w, tile));
    return learn_columns(emit, w, tile);
}

static qn_status emit_score_gradient(struct qn_emit *emit, const struct work *w,
                                     const struct tile *tile)
{
    const struct qn_call *call = &w->product;
    struct qn_launch launch = {.kernel = "gradient",
                               .args = {QN_BUF(&tile->scores),
                                        QN_BUF(tile->row->ids),
                                        QN_BUF(tile->column->ids),
                                        QN_BUF(&call->in[QN_NCE_LOGIT_SCALE]),
                                        QN_BUF(&call->saved[0]),
                                        QN_BUF(&call->saved[1]),
                                        QN_BUF(&call->dout[0]),
                                        QN_BUF(&call->dout[1]),
                                        QN_BUF(&call->control),
                                        QN_LONG(tile->m),
                                        QN_LONG(tile->n),
                                        QN_LONG(w->size.samples),
                                        QN_LONG(w->size.bank),
                                        QN_INT(tile->first_row),
                                        QN_INT(tile->first_column),
                                        QN_LONG(tile->row->at),
                                        QN_LONG(tile->column->at),
                                        QN_FLOAT(w->attr->scale),
                                        QN_INT(what_of(w, tile)),
                                        QN_INT(w->attr->symmetric),
                                        QN_INT(qn_present(&call->dout[1]))}};
    return launch_scores(emit, w, tile, &launch);
}

static qn_status emit_gradient(struct qn_emit *emit, const struct work *w, const struct tile *tile)
{
    const struct qn_operand gradient = gradient_of(w, tile), sum = sum_of(w, &gradient);
    const struct qn_matmul product = add_to(w, tile, &sum);
    const int input = w->group == QN_NCE_QUERY_GRADIENT ? QN_NCE_QUERIES : QN_NCE_PASSAGES;
    QN_TRY(emit_score_gradient(emit, w, tile));
    QN_TRY(w->way->emit(emit, &w->product, &product));
    if (!tile->ends || !qn_present(&w->sum))
        return QN_OK;
    return qn_elementwise_scale(
        emit, &w->product, &(struct qn_scaling){&sum, &gradient, 1, w->product.beta_in[input]});
}

static qn_status emit_tile(void *user, const struct work *w, const struct tile *tile)
{
    struct qn_emit *emit = user;
    const struct qn_matmul scores = scores_of(tile);
    QN_TRY(w->way->emit(emit, &w->product, &scores));
    return w->group == QN_NCE_FORWARD ? emit_forward(emit, w, tile) : emit_gradient(emit, w, tile);
}

static qn_status emit_recall(struct qn_emit *emit, const struct work *w)
{
    const struct qn_operand *table = &w->product.in[QN_NCE_TABLE];
    struct qn_launch launch = {
        .program = "info_nce",
        .kernel = "recall",
        .args = {QN_BUF(table), QN_BUF(&w->product.in[QN_NCE_BANK_IDS]), QN_BUF(&w->known_rows),
                 QN_BUF(&w->known_columns), QN_BUF(&w->product.control), QN_LONG(w->size.samples),
                 QN_LONG(w->size.bank), QN_LONG(qn_table_tiles(w->size.stored)),
                 QN_LONG(w->attr->symmetric ? qn_table_tiles(w->size.bank) : 0)},
        .global = {w->size.bank},
        .local = {QN_ELEMENTWISE_LOCAL}};
    qn_nce_options(&w->product, &launch);
    return qn_present(table) ? qn_emit_launch(emit, &launch) : QN_OK;
}

static qn_status emit_finish(struct qn_emit *emit, const struct work *w)
{
    const struct qn_call *call = &w->product;
    struct qn_launch launch = {
        .kernel = "finish",
        .args = {QN_BUF(&w->known_rows), QN_BUF(&w->known_columns),
                 QN_BUF(&call->in[QN_NCE_BANK_IDS]), QN_BUF(&call->saved[0]),
                 QN_BUF(&call->saved[1]), QN_BUF(&call->out[0]), QN_BUF(&call->out[1]),
                 QN_BUF(&call->control), QN_LONG(w->size.samples), QN_LONG(w->size.bank),
                 QN_INT(w->attr->symmetric), QN_INT(w->attr->local_mean),
                 QN_INT(qn_present(&call->saved[0])), QN_INT(qn_present(&call->out[1]))}};
    return launch_row_groups(emit, w, 1, w->size.samples + w->size.bank, &launch);
}

qn_status qn_nce_emit(struct qn_emit *emit, const struct qn_call *call, enum qn_nce_group group,
                      const struct qn_matmul_way *way)
{
    const struct work w = work_of(call, group, way);
    QN_TRY(visit_tiles(&w, emit_tile, emit));
    if (group != QN_NCE_FORWARD)
        return QN_OK;
    QN_TRY(emit_recall(emit, &w));
    return emit_finish(emit, &w);
}
