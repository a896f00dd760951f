/* SPDX-License-Identifier: MIT */
#include "check/subject.h"

#include "base/shape.h"
#include "base/text.h"
#include "check/number.h"

#include <string.h>

bool qn_subject_has(const struct qn_subject *subject, unsigned phase)
{
    for (const struct qn_group *g = subject->check->op->groups; g->name; g++)
        if (g->phase & phase)
            return true;
    return false;
}

uint64_t qn_subject_seed(uint64_t seed, const struct qn_check_op *check,
                         const struct qn_check_case *item)
{
    uint64_t hash = qn_hash(QN_HASH_START, &seed, sizeof seed);
    hash = qn_hash(hash, check->op->name, strlen(check->op->name) + 1);
    return qn_hash(hash, item->name, strlen(item->name));
}

static qn_dtype input_type(const struct qn_check_input *input, qn_dtype storage,
                           bool store_parameters)
{
    if (input->rank < 0)
        return QN_DTYPE_NONE;
    if (input->role == QN_ROLE_FIXED)
        return input->dtype;
    return input->role == QN_ROLE_ACTIVATION || store_parameters ? storage : QN_F32;
}

qn_status qn_subject_shapes(const struct qn_op *op, const struct qn_check_case *item,
                            qn_dtype storage, bool store_parameters, struct qn_call *call,
                            char reason[160])
{
    const struct qn_check_input *x = &item->in[0];
    call->batch = x->rank > 0 ? x->dim[0] / (item->rows_per_sample ? item->rows_per_sample : 1) : 1;
    struct qn_shape_call shapes = {.attr = item->attr, .storage = storage, .batch = call->batch};
    for (int i = 0; i < op->n_in; i++) {
        qn_dtype type = input_type(&item->in[i], storage, store_parameters);
        if (type != QN_DTYPE_NONE)
            qn_shape_set(&shapes.in[i], type, item->in[i].rank, item->in[i].dim);
    }
    qn_status status = op->shape(&shapes);
    memcpy(call->in, shapes.in, sizeof call->in);
    memcpy(call->out, shapes.out, sizeof call->out);
    memcpy(call->saved, shapes.saved, sizeof call->saved);
    memcpy(call->temp, shapes.temp, sizeof call->temp);
    memcpy(call->state, shapes.state, sizeof call->state);
    memcpy(call->gather, shapes.gather, sizeof call->gather);
    memcpy(reason, shapes.reason, sizeof shapes.reason);
    return status;
}

/* Whether the shape rule gives the outputs that check->outputs gives. */
static bool check_outputs(const struct qn_subject *s, struct qn_verdict *verdict)
{
    char got[96], wanted[96];
    struct qn_operand want[QN_MAX_OUT] = {{0}};
    if (s->check->op->n_out > 0)
        qn_shape_set(&want[0], s->storage, s->call.in[0].shape.rank, s->call.in[0].shape.dim);
    if (s->check->outputs)
        s->check->outputs(&s->call, want);
    for (int i = 0; i < QN_MAX_OUT; i++) {
        const struct qn_operand *out = &s->call.out[i];
        if (out->dtype != want[i].dtype || !qn_shape_equal(&out->shape, &want[i].shape))
            return qn_verdict_fail(
                verdict, "the shape rule says %s %s of out %d, wanted %s %s",
                qn_dtype_name(out->dtype), qn_shape_text(&out->shape, got, sizeof got), i,
                qn_dtype_name(want[i].dtype), qn_shape_text(&want[i].shape, wanted, sizeof wanted));
    }
    return true;
}

/* An operator has groups for training, and for evaluation too if it has outputs; or it has groups
 * for the update alone; or it is a view. */
static bool check_phases(const struct qn_subject *s, struct qn_verdict *verdict)
{
    const struct qn_op *op = s->check->op;
    bool train = qn_subject_has(s, QN_PHASE_TRAIN), eval = qn_subject_has(s, QN_PHASE_EVAL);
    bool whole = op->view || (train && (eval || !op->n_out)) ||
                 (!train && !eval && qn_subject_has(s, QN_PHASE_UPDATE));
    return whole || qn_verdict_fail(verdict, "its groups leave a phase out");
}

static bool is_used(const struct qn_op *op, bool write, struct qn_ref ref)
{
    for (const struct qn_group *g = op->groups; g->name; g++) {
        for (int i = 0; !write && i < QN_MAX_READS; i++)
            if (memcmp(&g->read[i].ref, &ref, sizeof ref) == 0)
                return true;
        for (int i = 0; write && i < QN_MAX_WRITES; i++)
            if (memcmp(&g->write[i].ref, &ref, sizeof ref) == 0)
                return true;
    }
    return false;
}

static bool add_gradients(struct qn_subject *s, struct qn_verdict *verdict)
{
    const struct qn_op *op = s->check->op;
    for (int i = 0; i < op->n_in; i++) {
        if (!qn_number_is_float(s->call.in[i].dtype) || (op->no_gradient & 1u << i))
            continue;
        if (!is_used(op, true, (struct qn_ref)QN_DIN(i)))
            return qn_verdict_fail(verdict, "no group writes the gradient of in %d", i);
        s->call.din[i] = s->call.in[i];
        if (s->item->in[i].role == QN_ROLE_PARAMETER)
            s->call.din[i].dtype = QN_F32;
    }
    for (int i = 0; i < op->n_out; i++)
        if (qn_number_is_float(s->call.out[i].dtype) &&
            is_used(op, false, (struct qn_ref)QN_DOUT(i)))
            s->call.dout[i] = s->call.out[i];
    return true;
}

/* How a tensor that is two inputs is filled: no kink, as sums and products with itself may have. */
static const struct qn_check_input kinkless = {.fill = QN_FILL_KINKLESS};

static bool is_twin(const struct qn_subject *s, struct qn_ref ref)
{
    return s->twin && ref.kind == QN_REF_IN && (ref.index == s->twin || ref.index == s->twin_of);
}

static bool fill_operand(struct qn_subject *s, int number)
{
    static const struct qn_check_input normal = {.fill = QN_FILL_NORMAL},
                                       positive = {.fill = QN_FILL_POSITIVE},
                                       codes = {.fill = QN_FILL_INTEGER, .a = 0, .b = 256};
    struct qn_ref ref = qn_operand_ref(number);
    const struct qn_operand *operand = qn_call_operand(&s->call, ref);
    const bool twin = is_twin(s, ref);
    const struct qn_check_input *how = twin                        ? &kinkless
                                       : ref.kind == QN_REF_IN     ? &s->item->in[ref.index]
                                       : ref.kind == QN_REF_DOUT   ? &normal
                                       : ref.kind == QN_REF_DIN    ? &normal
                                       : operand->dtype == QN_U8   ? &codes
                                       : ref.kind == QN_REF_STATE  ? &positive
                                       : ref.kind == QN_REF_GATHER ? &positive
                                                                   : NULL;
    if (!how || !qn_present(operand))
        return true;
    int64_t count = qn_operand_count(operand);
    s->value[number] = qn_arena_new(&s->arena, double, (size_t)count + 1);
    if (!s->value[number])
        return false;
    qn_number_fill(s->value[number], count, how, operand->dtype, s->seed,
                   qn_operand_stream(twin ? s->twin_of : number));
    return true;
}

static void fill_control(struct qn_subject *s)
{
    struct qn_control *c = &s->control;
    *c = (struct qn_control){.seed_lo = (uint32_t)s->seed,
                             .seed_hi = (uint32_t)(s->seed >> 32),
                             .update = 3,
                             .sample = 48,
                             .samples = (float)s->call.batch,
                             .lr = 0.0625f,
                             .clip = 1,
                             .weight_decay = 0.03125f,
                             .loss_scale = 4,
                             .good_updates = 2,
                             .applied = 4,
                             .grad_norm = 0.75f,
                             .grad_scale = 0.1875f,
                             .bias1 = 0.3439f,
                             .bias2 = 0.003994f,
                             .counted = 4};
    for (int i = 0; i < QN_MAX_LOSSES; i++) {
        c->loss_seed[i] = 0.015625f * (float)(i + 1);
        c->loss[i] = 0.5f * (float)(i + 1);
    }
    if (s->item->control)
        *c = *s->item->control;
}

static bool fill(struct qn_subject *s)
{
    for (int number = 0; number < QN_OPERANDS; number++)
        if (!fill_operand(s, number))
            return false;
    fill_control(s);
    return true;
}

bool qn_subject_describe(struct qn_subject *s, struct qn_verdict *verdict)
{
    char reason[160] = "";
    s->call.op = s->check->op;
    s->call.attr = s->item->attr;
    s->call.name = s->item->name;
    s->call.node = 17;
    qn_status status =
        qn_subject_shapes(s->check->op, s->item, s->storage, s->store_parameters, &s->call, reason);
    if (status != QN_OK)
        return qn_verdict_fail(verdict, "the shape rule refuses the case: %s", reason);
    return check_outputs(s, verdict) && check_phases(s, verdict) &&
           (!qn_subject_has(s, QN_PHASE_TRAIN) || add_gradients(s, verdict));
}

bool qn_subject_open(struct qn_subject *s, struct qn_verdict *verdict)
{
    if (!qn_subject_describe(s, verdict))
        return false;
    if (s->check->reference && (!fill(s) || !qn_truth_find(s)))
        return qn_verdict_no_memory(verdict, "the reference");
    return true;
}

void qn_subject_close(struct qn_subject *subject)
{
    qn_arena_free(&subject->arena);
}
