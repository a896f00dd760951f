/* SPDX-License-Identifier: MIT
 *
 * The reference's results, and its gradient by central differences.
 */
#include "check/subject.h"

#include "base/random.h"
#include "op/optimizer.h"

#include <string.h>

/* Arguments of one call of the reference, and its results. */
struct evaluation {
    double *in[QN_MAX_IN], *out[QN_MAX_OUT], *new_state[QN_MAX_STATE];
    struct qn_control control;
};

static double *new_values(struct qn_subject *s, const struct qn_operand *operand)
{
    return qn_present(operand)
               ? qn_arena_new(&s->arena, double, (size_t)qn_operand_count(operand) + 1)
               : NULL;
}

static bool open_evaluation(struct qn_subject *s, struct evaluation *e)
{
    bool ok = true;
    for (int i = 0; i < QN_MAX_IN; i++)
        e->in[i] = s->value[qn_operand_number((struct qn_ref)QN_IN(i))];
    for (int i = 0; i < QN_MAX_OUT; i++) {
        e->out[i] = new_values(s, &s->call.out[i]);
        ok = ok && (e->out[i] || !qn_present(&s->call.out[i]));
    }
    for (int i = 0; i < QN_MAX_STATE; i++) {
        e->new_state[i] = new_values(s, &s->call.state[i]);
        ok = ok && (e->new_state[i] || !qn_present(&s->call.state[i]));
    }
    return ok;
}

static struct qn_reference reference_of(const struct qn_subject *s, struct evaluation *e, bool eval)
{
    struct qn_reference r = {
        .call = &s->call, .eval = eval, .control = &s->control, .new_control = &e->control};
    memcpy(r.in, e->in, sizeof r.in);
    memcpy(r.out, e->out, sizeof r.out);
    memcpy(r.new_state, e->new_state, sizeof r.new_state);
    for (int i = 0; i < QN_MAX_STATE; i++)
        r.state[i] = s->value[qn_operand_number((struct qn_ref)QN_STATE(i))];
    return r;
}

static void evaluate(const struct qn_subject *s, struct evaluation *e, bool eval)
{
    const struct qn_reference r = reference_of(s, e, eval);
    e->control = s->control;
    s->check->reference(&r);
}

/* Central differences: two evaluations of the reference, one input moved by +step and -step. */
struct difference {
    struct qn_subject *subject;
    struct evaluation plus, minus;
    double step;
    int input;
    int64_t count;
    const double *base;
};

static bool open_difference(struct difference *d, struct qn_subject *s, int input)
{
    *d = (struct difference){.subject = s, .input = input};
    d->step = s->item->difference > 0 ? s->item->difference : 1e-5;
    d->count = qn_operand_count(&s->call.in[input]);
    if (!open_evaluation(s, &d->plus) || !open_evaluation(s, &d->minus))
        return false;
    d->base = d->plus.in[input];
    d->plus.in[input] = new_values(s, &s->call.in[input]);
    d->minus.in[input] = new_values(s, &s->call.in[input]);
    if (!d->plus.in[input] || !d->minus.in[input])
        return false;
    memcpy(d->plus.in[input], d->base, (size_t)d->count * sizeof(double));
    memcpy(d->minus.in[input], d->base, (size_t)d->count * sizeof(double));
    return true;
}

/* Sum over the losses of loss_seed * loss_scale, the gradient with which the backward pass begins,
 * times the difference of the loss. */
static double loss_difference(const struct difference *d)
{
    const struct qn_control *plus = &d->plus.control, *minus = &d->minus.control;
    double sum = 0;
    for (int i = 0; i < QN_MAX_LOSSES; i++)
        sum += (double)plus->loss_seed[i] * (double)plus->loss_scale *
               ((double)plus->loss[i] - (double)minus->loss[i]);
    return sum;
}

static double slope(struct difference *d)
{
    const struct qn_subject *s = d->subject;
    evaluate(s, &d->plus, false);
    evaluate(s, &d->minus, false);
    double sum = loss_difference(d);
    for (int o = 0; o < QN_MAX_OUT; o++) {
        const double *dout = s->value[qn_operand_number((struct qn_ref)QN_DOUT(o))];
        int64_t count = dout ? qn_operand_count(&s->call.out[o]) : 0;
        for (int64_t j = 0; j < count; j++)
            sum += dout[j] * (d->plus.out[o][j] - d->minus.out[o][j]);
    }
    return sum / (2 * d->step);
}

static double slope_of_element(struct difference *d, int64_t i)
{
    double *plus = d->plus.in[d->input], *minus = d->minus.in[d->input];
    plus[i] = d->base[i] + d->step;
    minus[i] = d->base[i] - d->step;
    double result = slope(d);
    plus[i] = minus[i] = d->base[i];
    return result;
}

static double slope_along(struct difference *d, const double *direction)
{
    double *plus = d->plus.in[d->input], *minus = d->minus.in[d->input];
    for (int64_t i = 0; i < d->count; i++) {
        double move = d->step * direction[i];
        plus[i] = d->base[i] + move;
        minus[i] = d->base[i] - move;
    }
    double result = slope(d);
    memcpy(plus, d->base, (size_t)d->count * sizeof(double));
    memcpy(minus, d->base, (size_t)d->count * sizeof(double));
    return result;
}

static bool find_full(struct difference *d, struct qn_gradient *g)
{
    g->full = qn_arena_new(&d->subject->arena, double, (size_t)d->count + 1);
    if (!g->full)
        return false;
    for (int64_t i = 0; i < d->count; i++)
        g->full[i] = slope_of_element(d, i);
    return true;
}

static bool is_costly(const struct difference *d)
{
    const struct qn_check_op *check = d->subject->check;
    const struct qn_call *call = &d->subject->call;
    int64_t outputs = 0;
    for (int o = 0; o < QN_MAX_OUT; o++)
        outputs += qn_operand_count(&call->out[o]);
    return (double)outputs * (double)d->count > QN_COSTLY ||
           (check->flops && check->flops(call, check->op->groups[0].name) > QN_COSTLY);
}

static bool find_along(struct difference *d, int number, struct qn_probe *probe)
{
    struct qn_subject *s = d->subject;
    const uint64_t stream = (uint64_t)(QN_DIRECTION_STREAMS + d->input * QN_PROBES + number);
    probe->direction = qn_arena_new(&s->arena, double, (size_t)d->count);
    if (!probe->direction)
        return false;
    for (int64_t i = 0; i < d->count; i++)
        probe->direction[i] = qn_random_normal(s->seed, stream, (uint64_t)i);
    probe->slope = slope_along(d, probe->direction);
    return true;
}

static bool find_probes(struct difference *d, struct qn_gradient *g)
{
    struct qn_subject *s = d->subject;
    uint64_t stream = (uint64_t)(QN_SINGLE_STREAMS + d->input);
    g->singles = is_costly(d) ? QN_FEW_SINGLES : QN_SINGLES;
    g->single = qn_arena_new(&s->arena, double, QN_SINGLES);
    g->index = qn_arena_new(&s->arena, int64_t, QN_SINGLES);
    if (!g->single || !g->index)
        return false;
    for (int p = 0; p < QN_PROBES; p++)
        if (!find_along(d, p, &g->probe[p]))
            return false;
    for (int k = 0; k < g->singles; k++) {
        uint64_t bits = qn_random_bits(s->seed, stream, (uint64_t)k);
        g->index[k] = (int64_t)(bits % (uint64_t)d->count);
        g->single[k] = slope_of_element(d, g->index[k]);
    }
    return true;
}

/* The gradient of input 0 by the function that the case gives. */
static bool find_told(struct qn_subject *s, struct qn_gradient *g)
{
    struct evaluation e;
    g->full = new_values(s, &s->call.in[0]);
    if (!g->full || !open_evaluation(s, &e))
        return false;
    const struct qn_reference r = reference_of(s, &e, false);
    s->item->gradient(&r, s->value[qn_operand_number((struct qn_ref)QN_DOUT(0))], g->full);
    return true;
}

static bool find_gradient(struct qn_subject *s, int input)
{
    struct difference d;
    struct qn_gradient *g = &s->truth.gradient[input];
    if (input == 0 && s->item->gradient)
        return find_told(s, g);
    if (!open_difference(&d, s, input))
        return false;
    return d.count <= QN_FULL_LIMIT ? find_full(&d, g) : find_probes(&d, g);
}

/* Not where a state keeps what rounding takes away. */
static bool is_stochastic(const struct qn_subject *s)
{
    const qn_dtype stored = s->call.out[0].dtype;
    return s->check->word && (stored == QN_F16 || stored == QN_BF16) &&
           !qn_optimizer_corrects(s->check->op, stored);
}

static bool find_words(struct qn_subject *s, const struct qn_reference *r)
{
    const int64_t count = qn_operand_count(&s->call.out[0]);
    if (!is_stochastic(s))
        return true;
    s->truth.word = qn_arena_new(&s->arena, uint32_t, (size_t)count);
    for (int64_t i = 0; s->truth.word && i < count; i++)
        s->truth.word[i] = s->check->word(r, i);
    return s->truth.word;
}

static bool find_results(struct qn_subject *s)
{
    struct evaluation train, eval;
    if (!open_evaluation(s, &train) || !open_evaluation(s, &eval))
        return false;
    evaluate(s, &train, false);
    evaluate(s, &eval, true);
    memcpy(s->truth.out, train.out, sizeof train.out);
    memcpy(s->truth.new_state, train.new_state, sizeof train.new_state);
    memcpy(s->truth.eval_out, eval.out, sizeof eval.out);
    s->truth.control = train.control;
    s->truth.eval_control = eval.control;
    const struct qn_reference r = reference_of(s, &train, false);
    return find_words(s, &r);
}

bool qn_truth_find(struct qn_subject *s)
{
    if (!find_results(s))
        return false;
    for (int i = 0; i < QN_MAX_IN; i++)
        if (qn_present(&s->call.din[i]) && !find_gradient(s, i))
            return false;
    return true;
}
