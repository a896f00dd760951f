/* SPDX-License-Identifier: MIT
 *
 * The contrastive loss InfoNCE (van den Oord et al., "Representation learning with contrastive
 * predictive coding", 2018): of each query (in 0) the negative logarithm of the share that its own
 * passage has in the softmax of its scores with all passages (in 1). With banks (in 4 to 6) of
 * queries and passages that earlier micro-steps made, it is that of ContAccum (Kim et al., NeurIPS
 * 2024, equations 5 to 9): queries of the bank are rows, too, and what is in the bank gets no
 * gradient. Its queries may be fewer, those of its newest samples.
 *
 * With a table (in 7) of what the bank's samples know of each other (bank_table) their scores are
 * not made again.
 *
 * Scores never exist whole: they are made tile by tile, once forward and once for each of the two
 * gradients, each of which adds up in a fixed order (as in Inf-CL, Cheng et al. 2024). The forward
 * pass keeps the logarithm of the sum of exponentials of each row.
 */
#include "ops/info_nce_tiles.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"

#include <quern/contrastive.h>

#include <math.h>

static bool are_vectors(const struct qn_operand *operand, int64_t features)
{
    return qn_is_float(operand) && operand->shape.rank == 2 && operand->shape.dim[1] == features;
}

static bool are_ids(const struct qn_operand *operand, int64_t samples)
{
    return operand->dtype == QN_I32 && operand->shape.rank == 1 && operand->shape.dim[0] == samples;
}

static qn_status check_bank(struct qn_shape_call *call, int64_t features, int64_t each)
{
    const struct qn_operand *queries = &call->in[QN_NCE_BANK_QUERIES];
    const struct qn_operand *passages = &call->in[QN_NCE_BANK_PASSAGES];
    const struct qn_operand *ids = &call->in[QN_NCE_BANK_IDS];
    if (!qn_present(passages))
        return qn_present(queries) || qn_present(ids)
                   ? qn_shape_error(call, "a bank of queries or ids goes with one of passages")
                   : QN_OK;
    if (!are_vectors(passages, features) || passages->shape.dim[0] % each != 0)
        return qn_shape_error(call,
                              "the bank of passages must have %lld rows of %lld elements for "
                              "each of its samples",
                              (long long)each, (long long)features);
    const int64_t samples = passages->shape.dim[0] / each;
    if (!are_ids(ids, samples))
        return qn_shape_error(call, "the bank of ids must have one in i32 for each sample");
    if (qn_present(queries) && (!are_vectors(queries, features) || queries->shape.dim[0] > samples))
        return qn_shape_error(call,
                              "the bank of queries must have rows of %lld elements, and no more "
                              "than %lld samples",
                              (long long)features, (long long)samples);
    return QN_OK;
}

static qn_status check_table(struct qn_shape_call *call)
{
    const struct qn_info_nce_attr *attr = call->attr;
    const struct qn_operand *table = &call->in[QN_NCE_TABLE];
    const struct qn_operand *queries = &call->in[QN_NCE_BANK_QUERIES];
    if (!qn_present(table))
        return QN_OK;
    if (!qn_present(queries) || qn_present(&call->in[QN_NCE_LOGIT_SCALE]))
        return qn_shape_error(call, "a table goes with a bank of queries and no logit scale");
    const int64_t stored = queries->shape.dim[0];
    const int64_t rows =
        qn_table_rows(call->in[QN_NCE_BANK_IDS].shape.dim[0], stored, attr->symmetric);
    if (table->dtype != QN_F32 || table->shape.rank != 2 || table->shape.dim[0] != rows ||
        table->shape.dim[1] != stored)
        return qn_shape_error(call, "the table must be (%lld, %lld) in f32", (long long)rows,
                              (long long)stored);
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_info_nce_attr *attr = call->attr;
    const struct qn_operand *queries = &call->in[QN_NCE_QUERIES];
    const struct qn_operand *passages = &call->in[QN_NCE_PASSAGES];
    const struct qn_operand *learned = &call->in[QN_NCE_LOGIT_SCALE];
    if (!qn_is_float(queries) || queries->shape.rank != 2)
        return qn_shape_error(call, "takes queries (n, d) of a float type");
    const int64_t samples = queries->shape.dim[0], features = queries->shape.dim[1];
    if (!are_vectors(passages, features) || passages->shape.dim[0] % samples != 0)
        return qn_shape_error(call,
                              "passages must be one or more rows of %lld elements for each "
                              "query",
                              (long long)features);
    const int64_t each = passages->shape.dim[0] / samples;
    if (!isfinite(attr->scale) || attr->scale <= 0)
        return qn_shape_error(call, "a scale of %g is not above 0", (double)attr->scale);
    if (qn_present(&call->in[QN_NCE_IDS]) ? !are_ids(&call->in[QN_NCE_IDS], samples)
                                          : attr->duplicates)
        return qn_shape_error(call, "ids must be one in i32 for each query");
    if (qn_present(learned) && (learned->dtype != QN_F32 || !qn_is_row_of(learned, 1)))
        return qn_shape_error(call, "the logit scale must be one number in f32");
    QN_TRY(check_bank(call, features, each));
    QN_TRY(check_table(call));
    const struct qn_operand *bank = &call->in[QN_NCE_BANK_QUERIES];
    const int64_t rows = samples + (qn_present(bank) ? bank->shape.dim[0] : 0);
    qn_shape_set(&call->out[0], QN_F32, 1, &samples);
    qn_shape_set(&call->out[1], QN_F32, 1, &samples);
    qn_shape_set(&call->saved[0], QN_F32, 2, (const int64_t[]){rows + 1, 2});
    if (attr->symmetric)
        qn_shape_set(&call->saved[1], QN_F32, 2, (const int64_t[]){rows, 2});
    return QN_OK;
}

/* The micro-step's own mean is in the rows: micro-steps weigh alike. */
static double loss_weight(const struct qn_call *call, const void *const *host)
{
    (void)call;
    (void)host;
    return 1;
}

static void scale_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 3, 4, &call->saved[0], cost);
}

static qn_status emit_scale(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_info_nce_attr *attr = call->attr;
    const struct qn_nce_sizes size = qn_nce_sizes_of(call);
    const struct qn_walk walk = qn_walk_rows(call, size.samples + size.bank);
    struct qn_launch launch = {
        .program = "info_nce",
        .kernel = "scale_gradient",
        .args = {QN_BUF(&call->in[QN_NCE_BANK_IDS]), QN_BUF(&call->saved[0]),
                 QN_BUF(&call->saved[1]), QN_BUF(&call->dout[0]), QN_BUF(&call->dout[1]),
                 QN_BUF(&call->din[QN_NCE_LOGIT_SCALE]), QN_BUF(&call->control),
                 QN_LONG(size.samples), QN_LONG(size.bank), QN_INT(attr->symmetric),
                 QN_INT(qn_present(&call->dout[1])), QN_FLOAT(call->beta_in[QN_NCE_LOGIT_SCALE])},
        .global = {walk.group},
        .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_nce_options(call, &launch);
    return qn_emit_launch(emit, &launch);
}

#define VARIANT(name, group, way)                                                                  \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        return qn_nce_fits(call, group, way, why);                                                 \
    }                                                                                              \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        qn_nce_cost(call, group, way, cost);                                                       \
    }                                                                                              \
    static qn_status name##_emit(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        return qn_nce_emit(emit, call, group, way);                                                \
    }
#define VARIANTS(name, group)                                                                      \
    VARIANT(name##_cpu, group, &qn_matmul_cpu)                                                     \
    VARIANT(name##_gpu, group, &qn_matmul_gpu)                                                     \
    VARIANT(name##_units, group, &qn_matmul_units)
VARIANTS(forward, QN_NCE_FORWARD)
VARIANTS(queries, QN_NCE_QUERY_GRADIENT)
VARIANTS(passages, QN_NCE_PASSAGE_GRADIENT)

/* clang-format off */
#define LIST(name)                                                                                 \
    {{"cpu", name##_cpu_fits, name##_cpu_cost, name##_cpu_emit, qn_matmul_settings, .cpu = true},  \
     {"gpu", name##_gpu_fits, name##_gpu_cost, name##_gpu_emit, qn_matmul_settings},               \
     {"units", name##_units_fits, name##_units_cost, name##_units_emit, qn_matmul_units_settings}}
#define READS                                                                                      \
    {QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_IN(3)}, {QN_IN(5)}, {QN_IN(6)}
/* clang-format on */

const struct qn_op qn_op_info_nce = {
    .name = "info_nce",
    .attr_size = sizeof(struct qn_info_nce_attr),
    .n_in = 8,
    .n_required = 2,
    .n_out = 2,
    .no_gradient = 1u << QN_NCE_IDS | 1u << QN_NCE_BANK_QUERIES | 1u << QN_NCE_BANK_PASSAGES |
                   1u << QN_NCE_BANK_IDS | 1u << QN_NCE_TABLE,
    .shape = shape,
    .loss_weight = loss_weight,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {READS, {QN_IN(4)}, {QN_IN(7)}},
                .write = {{QN_OUT(0)}, {QN_OUT(1)}, {QN_SAVED(0)}, {QN_SAVED(1)}},
                .variant = LIST(forward)},
               {.name = "query gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {READS, {QN_SAVED(0)}, {QN_SAVED(1)}, {QN_DOUT(0)}, {QN_DOUT(1)}},
                .write = {{QN_DIN(0)}},
                .variant = LIST(queries)},
               {.name = "passage gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(0)},
                         {QN_IN(1)},
                         {QN_IN(2)},
                         {QN_IN(3)},
                         {QN_IN(4)},
                         {QN_IN(6)},
                         {QN_SAVED(0)},
                         {QN_SAVED(1)},
                         {QN_DOUT(0)},
                         {QN_DOUT(1)}},
                .write = {{QN_DIN(1)}},
                .variant = LIST(passages)},
               {.name = "scale gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(6)}, {QN_SAVED(0)}, {QN_SAVED(1)}, {QN_DOUT(0)}, {QN_DOUT(1)}},
                .write = {{QN_DIN(3)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, scale_cost, emit_scale)}}};

qn_tensor qn_info_nce(qn_graph *graph, qn_tensor queries, qn_tensor passages,
                      const qn_info_nce_params *params, qn_tensor *local)
{
    static const qn_info_nce_params none = {0};
    const qn_info_nce_params *p = params ? params : &none;
    const struct qn_info_nce_attr attr = {.scale = qn_nce_scale(p->temperature),
                                          .symmetric = p->symmetric,
                                          .local_mean = p->local_mean,
                                          .duplicates = p->duplicates};
    const qn_tensor in[] = {[QN_NCE_QUERIES] = queries,
                            [QN_NCE_PASSAGES] = passages,
                            [QN_NCE_IDS] = p->ids,
                            [QN_NCE_LOGIT_SCALE] = p->logit_scale,
                            [QN_NCE_BANK_QUERIES] = p->bank_queries,
                            [QN_NCE_BANK_PASSAGES] = p->bank_passages,
                            [QN_NCE_BANK_IDS] = p->bank_ids,
                            [QN_NCE_TABLE] = p->bank_table};
    const qn_tensor loss = qn_op_apply(graph, &qn_op_info_nce, in, &attr);
    if (local)
        *local = (qn_tensor){loss.id ? loss.id + 1 : 0};
    return loss;
}
