/* SPDX-License-Identifier: MIT
 *
 * Every kind of metric adds up some of these: a sum, hits and misses, counts by class, deviations
 * by target. The table says which of them a kind needs and what becomes of them.
 */
#include "base/arena.h"
#include "base/exact.h"
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"

#include <inttypes.h>
#include <math.h>
#include <quern/metric.h>
#include <stdlib.h>
#include <string.h>

/* Of one target of a sample, over all samples: sums of the target, its square and the square of the
 * difference. */
struct spread {
    int64_t count;
    struct qn_exact targets, squares, errors;
};

/* What is counted. Behind it lie the metric's `counts` or `spreads`, if it has them. */
struct tally {
    struct qn_exact sum;
    int64_t hits, misses, labels;
};

struct qn_metric {
    struct qn_log log;
    struct qn_arena arena; /* the names, the counts */
    struct qn_metric_params params;
    const struct kind *kind;
    /* A sample's output is (outer, classes, inner), with outer * inner labels. */
    int64_t outer, classes, inner;
    struct tally *tally;
    int64_t bytes;          /* of the tally and what lies behind it */
    int64_t *counts;        /* (classes, classes); NULL: the kind needs none */
    struct spread *spreads; /* (outer); the same */
};

/* One row of logits, or one number of an output without classes, and its label. */
struct item {
    const void *rows;
    int64_t at; /* of the first class in `rows`; the next is `inner` further */
    int64_t label;
    double target; /* in the place of the label */
};

/* --- logits --- */

static double logit(const struct qn_metric *m, const struct item *item, int64_t c)
{
    const qn_dtype dtype = m->params.dtype;
    const int64_t at = (item->at + c * m->inner) * qn_dtype_size(dtype);
    double value;
    qn_number_decode(dtype, (const char *)item->rows + at, 1, &value);
    return value;
}

/* The class of the largest logit, the first of equal ones. */
static int64_t largest(const struct qn_metric *m, const struct item *item)
{
    int64_t best = 0;
    double most = logit(m, item, 0);
    for (int64_t c = 1; c < m->classes; c++) {
        const double other = logit(m, item, c);
        if (other > most) {
            best = c;
            most = other;
        }
    }
    return best;
}

/* Whether fewer than `top` classes come before the label's. Where one of two logits is a NaN, the
 * label's does not come first. */
static bool is_among(const struct qn_metric *m, const struct item *item, int top)
{
    const double own = logit(m, item, item->label);
    int64_t before = 0;
    for (int64_t c = 0; c < m->classes && before < top; c++) {
        const double other = logit(m, item, c);
        before += c < item->label ? !(other < own) : c > item->label && !(other <= own);
    }
    return before < top;
}

/* --- kinds --- */

static void add_value(struct qn_metric *m, const struct item *item)
{
    qn_exact_add(&m->tally->sum, logit(m, item, 0));
}

static void add_hit(struct qn_metric *m, const struct item *item)
{
    const int top = m->params.top;
    m->tally->hits += top > 1 ? is_among(m, item, top) : largest(m, item) == item->label;
}

static void add_pair(struct qn_metric *m, const struct item *item)
{
    const int64_t best = largest(m, item);
    m->tally->hits += best == item->label;
    m->counts[item->label * m->classes + best]++;
}

static void add_square(struct qn_metric *m, const struct item *item)
{
    const double error = logit(m, item, 0) - item->target;
    qn_exact_add(&m->tally->sum, error * error);
}

static void add_difference(struct qn_metric *m, const struct item *item)
{
    qn_exact_add(&m->tally->sum, fabs(logit(m, item, 0) - item->target));
}

static void add_spread(struct qn_metric *m, const struct item *item)
{
    struct spread *spread = &m->spreads[item->at % m->outer];
    const double error = logit(m, item, 0) - item->target;
    spread->count++;
    qn_exact_add(&spread->targets, item->target);
    qn_exact_add(&spread->squares, item->target * item->target);
    qn_exact_add(&spread->errors, error * error);
}

static void add_side(struct qn_metric *m, const struct item *item)
{
    m->tally->hits += (logit(m, item, 0) > 0) == (item->target > 0.5);
}

static void add_found(struct qn_metric *m, const struct item *item)
{
    const bool thought = logit(m, item, 0) > 0, is = item->target > 0.5;
    m->tally->hits += thought && is;
    m->tally->misses += thought != is;
}

static double mean(const struct qn_metric *m)
{
    return qn_exact_value(&m->tally->sum) / (double)m->tally->labels;
}

static double perplexity(const struct qn_metric *m)
{
    return exp(mean(m));
}

static double fraction(const struct qn_metric *m)
{
    return (double)m->tally->hits / (double)m->tally->labels;
}

static double mean_iou(const struct qn_metric *m)
{
    double sum = 0;
    int64_t classes = 0;
    for (int64_t c = 0; c < m->classes; c++) {
        int64_t both = m->counts[c * m->classes + c], either = -both;
        for (int64_t other = 0; other < m->classes; other++)
            either += m->counts[c * m->classes + other] + m->counts[other * m->classes + c];
        if (!either)
            continue;
        sum += (double)both / (double)either;
        classes++;
    }
    return sum / (double)classes;
}

/* Squared deviations from the mean: the sum of squares less the square of the sum over the count,
 * each in two doubles, of which the first ones cancel where the mean is large. */
static double deviations(const struct spread *spread)
{
    const double n = (double)spread->count, sum = qn_exact_value(&spread->targets);
    const double square = sum * sum, rest = fma(sum, sum, -square);
    const double part = square / n, left = fma(-part, n, square);
    const double more = left + rest + 2 * sum * qn_exact_rest(&spread->targets);
    return qn_exact_value(&spread->squares) - part + (qn_exact_rest(&spread->squares) - more / n);
}

static double explained(const struct qn_metric *m)
{
    double sum = 0;
    for (int64_t i = 0; i < m->outer; i++) {
        const double errors = qn_exact_value(&m->spreads[i].errors);
        const double all = deviations(&m->spreads[i]);
        sum += all == 0 ? errors == 0 : 1 - errors / all;
    }
    return sum / (double)m->outer;
}

static double f1(const struct qn_metric *m)
{
    const double twice = 2 * (double)m->tally->hits;
    return m->tally->hits ? twice / (twice + (double)m->tally->misses) : 0;
}

static const struct kind {
    const char *name;
    void (*add)(struct qn_metric *metric, const struct item *item);
    double (*result)(const struct qn_metric *metric); /* of at least one label */
    bool classes, counts;  /* whether the output has classes, and whether they are counted */
    bool targets, spreads; /* whether it has targets, and whether their deviations are added up */
} kinds[] = {
    [QN_METRIC_MEAN] = {"mean", add_value, mean, false, false},
    [QN_METRIC_PERPLEXITY] = {"perplexity", add_value, perplexity, false, false},
    [QN_METRIC_ACCURACY] = {"accuracy", add_hit, fraction, true, false},
    [QN_METRIC_CONFUSION] = {"confusion", add_pair, fraction, true, true},
    [QN_METRIC_MEAN_IOU] = {"mean IoU", add_pair, mean_iou, true, true},
    [QN_METRIC_SQUARED_ERROR] = {"squared error", add_square, mean, .targets = true},
    [QN_METRIC_ABSOLUTE_ERROR] = {"absolute error", add_difference, mean, .targets = true},
    [QN_METRIC_R2] = {"R2", add_spread, explained, .targets = true, .spreads = true},
    [QN_METRIC_BINARY_ACCURACY] = {"binary accuracy", add_side, fraction, .targets = true},
    [QN_METRIC_F1] = {"F1", add_found, f1, .targets = true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- making --- */

static bool is_name(const char *name)
{
    return name && *name && strlen(name) <= 100;
}

/* Divides the shape of a sample; false: it cannot be. */
static bool lay_out(struct qn_metric *m)
{
    struct qn_shape *shape = &m->params.shape;
    if (shape->rank == 0)
        *shape = (qn_shape){1, {QN_BATCH}};
    if (shape->rank < 0 || shape->rank > QN_MAX_DIMS || shape->dim[0] >= 0)
        return false;
    struct qn_shape row = *shape;
    row.dim[0] = -row.dim[0];
    for (int i = 0; i < row.rank; i++)
        if (row.dim[i] < 1)
            return false;
    const int at = m->params.class_dim ? m->params.class_dim : row.rank - 1;
    if (m->kind->classes && (at < 1 || at >= row.rank))
        return false;
    const int end = m->kind->classes ? at : row.rank;
    m->outer = qn_shape_span(&row, 0, end);
    m->classes = m->kind->classes ? row.dim[at] : 1;
    m->inner = m->kind->classes ? qn_shape_span(&row, at + 1, row.rank) : 1;
    return qn_shape_count(&row) >= 0;
}

static qn_status check(struct qn_metric *m)
{
    const struct qn_metric_params *params = &m->params;
    QN_REQUIRE(&m->log, is_name(params->output));
    QN_REQUIRE(&m->log,
               params->labels ? is_name(params->labels) : !m->kind->classes && !m->kind->targets);
    QN_REQUIRE(&m->log, !params->ignore || (params->labels && !m->kind->targets));
    QN_REQUIRE(&m->log, params->dtype >= QN_F32 && params->dtype <= QN_BF16);
    QN_REQUIRE(&m->log, params->top >= 0);
    return lay_out(m) ? QN_OK
                      : qn_fail(&m->log, QN_ERR_ARGUMENT, "%s of %s: shape: no output has it",
                                m->kind->name, params->output);
}

/* False: there is no memory. */
static bool make_tally(struct qn_metric *m)
{
    const int64_t head = (int64_t)sizeof *m->tally;
    const int64_t cells = m->kind->counts ? qn_mul(m->classes, m->classes) : 0;
    const int64_t counts = qn_mul(cells, (int64_t)sizeof *m->counts);
    const int64_t spreads = m->kind->spreads ? qn_mul(m->outer, (int64_t)sizeof *m->spreads) : 0;
    m->bytes = qn_sum_of(head, qn_sum_of(counts, spreads));
    char *block = m->bytes > 0 ? qn_arena_new(&m->arena, char, (size_t)m->bytes) : NULL;
    if (!block)
        return false;
    m->tally = (struct tally *)(void *)block;
    m->counts = counts ? (int64_t *)(void *)(block + head) : NULL;
    m->spreads = spreads ? (struct spread *)(void *)(block + head + counts) : NULL;
    return true;
}

static qn_status make_memory(struct qn_metric *m)
{
    struct qn_metric_params *params = &m->params;
    params->output = qn_arena_strdup(&m->arena, params->output);
    bool good = params->output != NULL;
    if (good && params->labels) {
        params->labels = qn_arena_strdup(&m->arena, params->labels);
        good = params->labels != NULL;
    }
    return good && make_tally(m)
               ? QN_OK
               : qn_fail(&m->log, QN_ERR_MEMORY, "%s: no memory for %" PRId64 " classes",
                         m->kind->name, m->classes);
}

qn_status qn_metric_create(qn_metric **metric, const qn_metric_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, metric && params);
    QN_REQUIRE(log, (int)params->kind >= 0 && (int)params->kind < KINDS);
    *metric = NULL;
    struct qn_metric *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail(log, QN_ERR_MEMORY, "metric: out of memory");
    made->log = params->log;
    made->params = *params;
    made->kind = &kinds[params->kind];
    if (!made->params.dtype)
        made->params.dtype = QN_F32;
    qn_status status = check(made);
    if (status == QN_OK)
        status = make_memory(made);
    if (status == QN_OK)
        *metric = made;
    else
        qn_metric_destroy(&made);
    return status;
}

void qn_metric_destroy(qn_metric **metric)
{
    if (!metric || !*metric)
        return;
    qn_arena_free(&(*metric)->arena);
    free(*metric);
    *metric = NULL;
}

/* --- counting --- */

static int64_t label_at(const struct qn_column *labels, int64_t index)
{
    return labels->dtype == QN_U8 ? ((const uint8_t *)labels->data)[index]
                                  : ((const int32_t *)labels->data)[index];
}

static bool is_ignored(const struct qn_metric *m, int64_t label)
{
    return m->params.ignore && label == m->params.ignore_label;
}

/* Whether they are of a type that the kind takes. */
static qn_status check_type(const struct qn_metric *m, const struct qn_column *labels)
{
    const bool integers = labels->dtype == QN_U8 || labels->dtype == QN_I32;
    const bool targets = m->kind->targets;
    if (targets ? labels->dtype == QN_F32 : integers)
        return QN_OK;
    return qn_fail(&m->log, QN_ERR_SHAPE, "%s: %s: %s, not %s", m->kind->name, m->params.labels,
                   targets ? "targets are f32" : "labels are u8 or i32",
                   qn_dtype_name(labels->dtype));
}

/* Whether there is a class for each row of logits, or a target for each number. */
static qn_status check_labels(const struct qn_metric *m, const struct qn_column *labels,
                              int64_t first, int64_t end)
{
    const char *name = m->params.labels, *kind = m->kind->name;
    const int64_t each = m->outer * m->inner;
    QN_TRY(check_type(m, labels));
    if (qn_shape_count(&labels->shape) != each)
        return qn_fail(&m->log, QN_ERR_SHAPE,
                       "%s: %s: %" PRId64 " labels a sample, but %s has %" PRId64, kind, name,
                       qn_shape_count(&labels->shape), m->params.output, each);
    for (int64_t i = first * each; m->kind->classes && i < end * each; i++) {
        int64_t label = label_at(labels, i);
        if (!is_ignored(m, label) && (label < 0 || label >= m->classes))
            return qn_fail(&m->log, QN_ERR_FORMAT,
                           "%s: %s: label %" PRId64 ", but there are %" PRId64 " classes", kind,
                           name, label, m->classes);
    }
    return QN_OK;
}

/* `labels` begins at the same sample as `rows`; NULL: there are none. */
static void add_rows(struct qn_metric *m, const void *rows, int64_t count,
                     const struct qn_column *labels, int64_t first)
{
    const int64_t each = m->outer * m->inner;
    for (int64_t i = 0; i < count * each; i++) {
        struct item item = {.rows = rows,
                            .at = i / m->inner * m->classes * m->inner + i % m->inner};
        if (labels && m->kind->targets)
            item.target = (double)((const float *)labels->data)[first * each + i];
        else if (labels)
            item.label = label_at(labels, first * each + i);
        if (labels && is_ignored(m, item.label))
            continue;
        m->kind->add(m, &item);
        m->tally->labels++;
    }
}

qn_status qn_metric_update(qn_metric *metric, const char *output, int64_t first, int64_t count,
                           const void *rows, const qn_batch *batch)
{
    QN_REQUIRE(NULL, metric);
    QN_REQUIRE(&metric->log, output && rows && first >= 0 && count >= 0);
    const struct qn_column *labels = NULL;
    if (strcmp(output, metric->params.output) != 0)
        return QN_OK;
    if (metric->params.labels) {
        labels = qn_batch_column(batch, metric->params.labels);
        if (!labels || !labels->data || !qn_batch_has(batch, first, count))
            return qn_fail(&metric->log, QN_ERR_ARGUMENT,
                           "%s: %s: the batch has no such column, or not so many samples",
                           metric->kind->name, metric->params.labels);
        QN_TRY(check_labels(metric, labels, first, first + count));
    }
    add_rows(metric, rows, count, labels, first);
    return QN_OK;
}

double qn_metric_result(const qn_metric *metric)
{
    return metric && metric->tally->labels ? metric->kind->result(metric) : NAN;
}

int64_t qn_metric_count(const qn_metric *metric)
{
    return metric ? metric->tally->labels : 0;
}

const int64_t *qn_metric_confusion(const qn_metric *metric, int64_t *classes)
{
    if (!metric || !metric->kind->counts)
        return NULL;
    if (classes)
        *classes = metric->classes;
    return metric->counts;
}

void qn_metric_reset(qn_metric *metric)
{
    if (metric)
        memset(metric->tally, 0, (size_t)metric->bytes);
}

/* --- joining --- */

const void *qn_metric_state(const qn_metric *metric, int64_t *bytes)
{
    if (!metric || !bytes)
        return NULL;
    *bytes = metric->bytes;
    return metric->tally;
}

static void join_spread(struct spread *spread, const struct spread *other)
{
    spread->count += other->count;
    qn_exact_join(&spread->targets, &other->targets);
    qn_exact_join(&spread->squares, &other->squares);
    qn_exact_join(&spread->errors, &other->errors);
}

qn_status qn_metric_join(qn_metric *metric, const void *state, int64_t bytes)
{
    QN_REQUIRE(NULL, metric);
    QN_REQUIRE(&metric->log, state && bytes == metric->bytes);
    const struct tally *other = state;
    const int64_t *counts = (const void *)(other + 1);
    const struct spread *spreads = (const void *)(other + 1);
    qn_exact_join(&metric->tally->sum, &other->sum);
    metric->tally->hits += other->hits;
    metric->tally->misses += other->misses;
    metric->tally->labels += other->labels;
    for (int64_t i = 0; metric->counts && i < metric->classes * metric->classes; i++)
        metric->counts[i] += counts[i];
    for (int64_t i = 0; metric->spreads && i < metric->outer; i++)
        join_spread(&metric->spreads[i], &spreads[i]);
    return QN_OK;
}
