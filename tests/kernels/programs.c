/* SPDX-License-Identifier: MIT
 *
 * Prints every kernel that the operators launch, one "RANK OPERATOR VARIANT SETTING ITEMS STEM
 * KERNEL OPTIONS" a line, where STEM is that of the program: each case of the harness, with each
 * storage type, variant and setting, in every phase. RANK is "gpu" and "cpu" for the facts of a GPU
 * with matrix units of each layout and of a CPU, that nobody has looked at, and "more" for CPUs of
 * other widths and local memories. SETTING is the index of the variant's setting, 0 the default;
 * ITEMS are those of a work-group. tools/gpu/programs.py reads it. Fails where a group makes more
 * or fewer launches than its cost says, which is what a plan counts. No device is used: the linker
 * puts the functions below in the place of those that record launches (--wrap).
 */
#include "base/log.h"
#include "check/subject.h"
#include "op/tile.h"

#include <stdio.h>
#include <string.h>

qn_status __wrap_qn_emit_launch(struct qn_emit *emit, const struct qn_launch *launch);
qn_status __wrap_qn_emit_gemm(struct qn_emit *emit, const struct qn_gemm *gemm);

/* What is running: rank, name of the operator, variant and index of its setting. */
static const char *rank, *running, *running_variant;
static int running_setting;
static int launched; /* since the newest choice of these */

static int64_t items_of(const struct qn_launch *launch)
{
    int64_t items = 1;
    for (int i = 0; i < 3; i++)
        items *= launch->local[i] ? launch->local[i] : 1;
    return items;
}

qn_status __wrap_qn_emit_launch(struct qn_emit *emit, const struct qn_launch *launch)
{
    (void)emit;
    launched++;
    printf("%s %s %s %d %lld %s %s %s\n", rank, running, running_variant, running_setting,
           (long long)items_of(launch), launch->program, launch->kernel, launch->options);
    return QN_OK;
}

qn_status __wrap_qn_emit_gemm(struct qn_emit *emit, const struct qn_gemm *gemm)
{
    (void)emit;
    (void)gemm;
    launched++;
    return QN_OK;
}

static bool is_float(const struct qn_operand *operand)
{
    return operand->dtype == QN_F32 || operand->dtype == QN_F16 || operand->dtype == QN_BF16;
}

static void add_gradients(const struct qn_check_case *item, struct qn_call *call)
{
    for (int i = 0; i < call->op->n_in; i++) {
        if (!is_float(&call->in[i]) || (call->op->no_gradient & 1u << i))
            continue;
        call->din[i] = call->in[i];
        if (item->in[i].role == QN_ROLE_PARAMETER)
            call->din[i].dtype = QN_F32;
    }
    for (int i = 0; i < call->op->n_out; i++)
        if (is_float(&call->out[i]))
            call->dout[i] = call->out[i];
}

static qn_status emit_setting(const struct qn_variant *variant, int setting,
                              const struct qn_call *call)
{
    const char *why = "";
    struct qn_cost cost = {0};
    struct qn_call chosen = *call;
    if (!qn_call_fits(&chosen, variant, setting, &why))
        return QN_OK;
    running_variant = variant->name;
    running_setting = setting;
    variant->cost(&chosen, &cost);
    chosen.scratch = (struct qn_operand){.dtype = QN_F32, .shape = {1, {cost.scratch / 4}}};
    chosen.control = (struct qn_operand){.dtype = QN_I32, .shape = {1, {64}}};
    launched = 0;
    QN_TRY(variant->emit(NULL, &chosen));
    if (launched == cost.launches)
        return QN_OK;
    fprintf(stderr, "%s, %s, case %s: %d launches, and the cost says %d\n", running, variant->name,
            call->name, launched, cost.launches);
    return QN_ERR_INTERNAL;
}

static qn_status emit(const struct qn_variant *variant, const struct qn_call *call)
{
    for (int setting = 0; setting < qn_setting_count(variant); setting++)
        QN_TRY(emit_setting(variant, setting, call));
    return QN_OK;
}

static struct qn_call without(const struct qn_call *call, struct qn_ref ref)
{
    struct qn_call less = *call;
    *qn_call_operand(&less, ref) = (struct qn_operand){0};
    return less;
}

static bool evaluation_reads(const struct qn_op *op, struct qn_ref ref)
{
    for (const struct qn_group *g = op->groups; g < op->groups + QN_MAX_GROUPS && g->name; g++)
        for (int r = 0; (g->phase & QN_PHASE_EVAL) && r < QN_MAX_READS; r++)
            if (memcmp(&g->read[r].ref, &ref, sizeof ref) == 0)
                return true;
    return false;
}

/* Without what the forward pass of an evaluation lacks. */
static qn_status emit_evaluation(const struct qn_variant *variant, const struct qn_call *call)
{
    struct qn_call less = *call;
    memset(less.gather, 0, sizeof less.gather);
    for (uint8_t i = 0; i < QN_MAX_SAVED; i++)
        if (!evaluation_reads(call->op, (struct qn_ref)QN_SAVED(i)))
            less.saved[i] = (struct qn_operand){0};
    return emit(variant, &less);
}

/* A group none of whose results are there is never run. */
static bool is_run(const struct qn_group *group, const struct qn_call *call)
{
    struct qn_call copy = *call;
    bool any = group->write[0].ref.kind == QN_REF_NONE;
    for (int w = 0; w < QN_MAX_WRITES && group->write[w].ref.kind != QN_REF_NONE; w++)
        any = any || qn_present(qn_call_operand(&copy, group->write[w].ref));
    return any;
}

/* With everything there, then without either side of each alternative, and without each gradient of
 * those that the group makes together. */
static qn_status emit_choices(const struct qn_group *group, const struct qn_variant *variant,
                              const struct qn_call *call)
{
    QN_TRY(emit(variant, call));
    for (int r = 0; r < QN_MAX_READS && group->read[r].ref.kind != QN_REF_NONE; r++) {
        if (group->read[r].or_.kind == QN_REF_NONE)
            continue;
        struct qn_call first = without(call, group->read[r].or_);
        struct qn_call second = without(call, group->read[r].ref);
        QN_TRY(emit(variant, &first));
        QN_TRY(emit(variant, &second));
    }
    for (int w = 0; w < QN_MAX_WRITES && group->write[1].ref.kind != QN_REF_NONE; w++) {
        if (group->write[w].ref.kind != QN_REF_DIN)
            continue;
        struct qn_call less = without(call, group->write[w].ref);
        if (is_run(group, &less))
            QN_TRY(emit(variant, &less));
    }
    return group->phase & QN_PHASE_EVAL ? emit_evaluation(variant, call) : QN_OK;
}

static qn_status emit_case(const struct qn_check_op *check, const struct qn_check_case *item,
                           qn_dtype storage, bool parameters, const struct qn_facts *facts)
{
    char reason[160];
    struct qn_call call = {.op = check->op, .attr = item->attr, .name = item->name, .facts = facts};
    QN_TRY(qn_subject_shapes(check->op, item, storage, parameters, &call, reason));
    add_gradients(item, &call);
    for (const struct qn_group *g = check->op->groups;
         g < check->op->groups + QN_MAX_GROUPS && g->name; g++)
        for (const struct qn_variant *v = g->variant; v < g->variant + QN_MAX_VARIANTS && v->name;
             v++)
            if (is_run(g, &call))
                QN_TRY(emit_choices(g, v, &call));
    return QN_OK;
}

static qn_status emit_operator(const struct qn_check_op *check, const struct qn_facts *facts)
{
    static const qn_dtype types[] = {QN_F32, QN_F16, QN_BF16};
    running = check->op->name;
    for (const struct qn_check_case *item = check->cases; item->name; item++)
        for (int t = 0; t < 3; t++) {
            QN_TRY(emit_case(check, item, types[t], false, facts));
            QN_TRY(emit_case(check, item, types[t], true, facts));
        }
    return QN_OK;
}

static qn_status emit_all(const struct qn_facts *facts)
{
    for (const struct qn_check_op *const *check = qn_check_all(); *check; check++) {
        qn_status status = emit_operator(*check, facts);
        if (status != QN_OK) {
            fprintf(stderr, "%s: %s\n", (*check)->op->name, qn_status_text(status));
            return status;
        }
    }
    return QN_OK;
}

/* The operators cut their tiles by the width of vectors and by the local memory. */
int main(void)
{
    /* Of every GPU whose units have layout mma; heads of 64 are whole in it. */
    static const int64_t local_bytes_of_mma = 48 << 10;
    static const int widths[] = {4, 8, 16};
    static const int64_t local_bytes[] = {32 << 10, 128 << 10, 512 << 10};
    struct qn_facts facts;
    rank = "gpu";
    qn_facts_default(&facts, false);
    const int64_t least = facts.local_bytes;
    qn_status status = QN_OK;
    for (int layout = 1; layout <= QN_TILE_LAYOUTS && status == QN_OK; layout++) {
        facts.matrix_layout = layout;
        facts.local_bytes = layout == QN_MATRIX_MMA ? local_bytes_of_mma : least;
        facts.matrix_units = qn_tile_layout(layout)->types;
        if (layout >= QN_MATRIX_DPAS8)
            facts.max_work_group = 1024;
        status = emit_all(&facts);
    }
    facts.matrix_layout = QN_MATRIX_MMA;
    facts.local_bytes = local_bytes_of_mma;
    facts.matrix_units = qn_tile_layout(QN_MATRIX_MMA)->types & ~QN_MATRIX_COPIES;
    if (status == QN_OK)
        status = emit_all(&facts);
    rank = "cpu";
    qn_facts_default(&facts, true);
    facts.matrix_units = QN_MATRIX_BF16_TILES;
    if (status == QN_OK)
        status = emit_all(&facts);
    rank = "more";
    for (int i = 0; i < 9 && status == QN_OK; i++) {
        facts.vector_width = widths[i % 3];
        facts.local_bytes = local_bytes[i / 3];
        status = emit_all(&facts);
    }
    return status != QN_OK;
}
