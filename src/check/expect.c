/* SPDX-License-Identifier: MIT
 *
 * Comparing the operands after a pass with the truth, the results of the reference.
 */
#include "check/cell.h"

#include "check/number.h"
#include "check/stochastic.h"
#include "check/tolerance.h"
#include "op/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct qn_operand *operand_of(struct qn_bed *bed, int number)
{
    return qn_call_operand(&bed->call, qn_operand_ref(number));
}

double *qn_expect_values(struct qn_bed *bed, int number)
{
    const struct qn_operand *operand = operand_of(bed, number);
    int64_t count = qn_operand_count(operand);
    double *values = qn_arena_new(&bed->arena, double, (size_t)count + 1);
    if (values)
        qn_number_decode(operand->dtype, bed->contents[number].value, count, values);
    else
        qn_verdict_no_memory(bed->verdict, "the values");
    return values;
}

static bool expect(struct qn_bed *bed, int number, const double *want, qn_dtype precision,
                   bool gradient)
{
    char name[32];
    int64_t count = qn_operand_count(operand_of(bed, number));
    const double *got = qn_expect_values(bed, number);
    double tolerance =
        qn_tolerance(bed->subject->check->op->name, precision, qn_largest(want, count), gradient);
    return got &&
           qn_compare(bed->verdict, qn_operand_name(number, name), got, want, count, tolerance);
}

/* Output 0 in 16 bits, rounded stochastically. Rounding by a given word is monotone, so that what
 * the device stored lies between the results of the least and the largest f32 that it may have
 * rounded. */
static bool expect_drawn(struct qn_bed *bed, const double *want, const uint32_t *word)
{
    const int number = qn_operand_number((struct qn_ref)QN_OUT(0));
    const qn_dtype dtype = operand_of(bed, number)->dtype;
    const int64_t count = qn_operand_count(operand_of(bed, number));
    const double *got = qn_expect_values(bed, number);
    const double tolerance =
        qn_tolerance(bed->subject->check->op->name, QN_F32, qn_largest(want, count), false);
    bool same = got;
    for (int64_t i = 0; same && i < count; i++) {
        char name[64];
        const double least = qn_check_stochastic(dtype, want[i] - tolerance, word[i]),
                     most = qn_check_stochastic(dtype, want[i] + tolerance, word[i]),
                     middle = (least + most) / 2;
        snprintf(name, sizeof name, "out 0 at %lld, rounded by word %#x", (long long)i, word[i]);
        same = qn_compare(bed->verdict, name, got + i, &middle, 1, (most - least) / 2);
    }
    return same;
}

/* The state that corrects output 0; -1: none does. */
static int correction_of(const struct qn_bed *bed)
{
    const struct qn_op *op = bed->subject->check->op;
    return qn_optimizer_corrects(op, bed->call.out[0].dtype) ? op->correction : -1;
}

/* What rounding to 15 bits of fraction costs: half a unit, and a whole one where the code is the
 * first or the last, next to the middle between two bf16. */
static double cost_of_correction(double number, uint8_t code)
{
    const double unit = number == 0 ? 0 : ldexp(1, ilogb(number) - 15);
    return code == 1 || code == 255 ? unit : unit / 2;
}

/* Output 0 with what corrects it. */
static bool expect_corrected(struct qn_bed *bed, const double *want)
{
    const int number = qn_operand_number((struct qn_ref)QN_OUT(0)),
              correction = qn_operand_number((struct qn_ref)QN_STATE(correction_of(bed)));
    const uint8_t *stored = bed->contents[number].value, *code = bed->contents[correction].value;
    const int64_t count = qn_operand_count(operand_of(bed, number));
    const double tolerance =
        qn_tolerance(bed->subject->check->op->name, QN_F32, qn_largest(want, count), false);
    bool same = true;
    for (int64_t i = 0; same && i < count; i++) {
        char name[64];
        float joined;
        qn_number_join(stored + 2 * i, code + i, 1, &joined);
        const double got = (double)joined;
        snprintf(name, sizeof name, "out 0 at %lld, corrected", (long long)i);
        same = qn_compare(bed->verdict, name, &got, want + i, 1,
                          tolerance + cost_of_correction(want[i], code[i]));
    }
    return same;
}

bool qn_expect_outputs(struct qn_bed *bed, double *const *want)
{
    for (int i = 0; i < QN_MAX_OUT; i++) {
        int number = qn_operand_number((struct qn_ref)QN_OUT(i));
        const uint32_t *word = i == 0 ? bed->subject->truth.word : NULL;
        if (bed->contents[number].written &&
            !(word ? expect_drawn(bed, want[i], word)
                   : expect(bed, number, want[i], operand_of(bed, number)->dtype, false)))
            return false;
    }
    return correction_of(bed) < 0 || expect_corrected(bed, want[0]);
}

bool qn_expect_state(struct qn_bed *bed)
{
    for (int i = 0; i < QN_MAX_STATE; i++) {
        int number = qn_operand_number((struct qn_ref)QN_STATE(i));
        if (i != correction_of(bed) && bed->contents[number].written &&
            !expect(bed, number, bed->subject->truth.new_state[i], operand_of(bed, number)->dtype,
                    true))
            return false;
    }
    return true;
}

/* The coarsest of the gradient's type and the types of the outputs, saved results and temporaries
 * that backward groups read: a gradient is no more precise than that. */
static qn_dtype precision_of(struct qn_bed *bed, int number)
{
    qn_dtype coarsest = operand_of(bed, number)->dtype;
    for (const struct qn_group *g = bed->subject->check->op->groups; g->name; g++)
        for (int r = 0; r < QN_MAX_READS && (g->phase & QN_PHASE_BACKWARD); r++) {
            struct qn_ref ref = g->read[r].ref;
            if (!qn_group_reads(g, bed->call.attr, r) ||
                (ref.kind != QN_REF_OUT && ref.kind != QN_REF_SAVED && ref.kind != QN_REF_TEMP))
                continue;
            qn_dtype type = operand_of(bed, qn_operand_number(ref))->dtype;
            if (type == QN_BF16 || (type == QN_F16 && coarsest == QN_F32))
                coarsest = type;
        }
    return coarsest;
}

static bool expect_probes(struct qn_bed *bed, int input, const double *got, int64_t count,
                          double tolerance)
{
    char name[64];
    const struct qn_gradient *g = &bed->subject->truth.gradient[input];
    for (int k = 0; k < g->singles; k++) {
        snprintf(name, sizeof name, "gradient of in %d at %lld", input, (long long)g->index[k]);
        if (!qn_compare(bed->verdict, name, got + g->index[k], g->single + k, 1, tolerance))
            return false;
    }
    for (int p = 0; p < QN_PROBES; p++) {
        double dot = 0;
        for (int64_t i = 0; i < count; i++)
            dot += got[i] * g->probe[p].direction[i];
        snprintf(name, sizeof name, "gradient of in %d along direction %d", input, p);
        if (!qn_compare(bed->verdict, name, &dot, &g->probe[p].slope, 1,
                        qn_tolerance_of_direction(tolerance, count)))
            return false;
    }
    return true;
}

/* Compares (contents after) - beta * (contents before) with the gradient of the reference. */
static bool expect_gradient(struct qn_bed *bed, int input, float beta)
{
    char name[32];
    int number = qn_operand_number((struct qn_ref)QN_DIN(input));
    const double *initial = bed->subject->value[number];
    int64_t count = qn_operand_count(operand_of(bed, number));
    double *got = qn_expect_values(bed, number);
    if (!got || !qn_compare_finite(bed->verdict, qn_operand_name(number, name), got, count))
        return false;
    double scale = qn_largest(got, count);
    for (int64_t i = 0; beta != 0 && i < count; i++)
        got[i] -= (double)beta * initial[i];
    double tolerance = qn_tolerance(bed->subject->check->op->name, precision_of(bed, number),
                                    fmax(scale, qn_largest(got, count)), true);
    const struct qn_gradient *g = &bed->subject->truth.gradient[input];
    return g->full ? qn_compare(bed->verdict, name, got, g->full, count, tolerance)
                   : expect_probes(bed, input, got, count, tolerance);
}

bool qn_expect_gradients(struct qn_bed *bed, float beta)
{
    for (int i = 0; i < QN_MAX_IN; i++)
        if (bed->contents[qn_operand_number((struct qn_ref)QN_DIN(i))].written &&
            !expect_gradient(bed, i, beta))
            return false;
    return true;
}

bool qn_expect_gathered(struct qn_bed *bed, float beta, double *const *once)
{
    for (int i = 0; i < QN_MAX_STATE; i++) {
        int number = qn_operand_number((struct qn_ref)QN_GATHER(i));
        int64_t count = qn_operand_count(operand_of(bed, number));
        if (!bed->contents[number].written)
            continue;
        double *want = qn_arena_new(&bed->arena, double, (size_t)count + 1);
        if (!want)
            return qn_verdict_no_memory(bed->verdict, "the values");
        for (int64_t j = 0; j < count; j++)
            want[j] = once[i][j] + (double)beta * bed->subject->value[number][j];
        if (!expect(bed, number, want, operand_of(bed, number)->dtype, true))
            return false;
    }
    return true;
}

bool qn_expect_finite(struct qn_bed *bed)
{
    char name[32];
    for (int s = 0; s < QN_OPERANDS; s++) {
        const struct qn_operand *operand = operand_of(bed, s);
        struct qn_ref ref = qn_operand_ref(s);
        if (!bed->contents[s].written || !qn_number_is_float(operand->dtype) ||
            (ref.kind != QN_REF_SAVED && ref.kind != QN_REF_GATHER))
            continue;
        const double *got = qn_expect_values(bed, s);
        if (!got || !qn_compare_finite(bed->verdict, qn_operand_name(s, name), got,
                                       qn_operand_count(operand)))
            return false;
    }
    return true;
}

/* Whether a 32-bit word of the control block is an integer; the others are floats. */
static bool is_integer(size_t word)
{
    static const size_t at[] = {
        offsetof(struct qn_control, seed_lo), offsetof(struct qn_control, seed_hi),
        offsetof(struct qn_control, update),  offsetof(struct qn_control, sample),
        offsetof(struct qn_control, applied), offsetof(struct qn_control, good_updates),
        offsetof(struct qn_control, skip),    offsetof(struct qn_control, counted)};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (at[i] == 4 * word)
            return true;
    return 4 * word >= offsetof(struct qn_control, reserved);
}

bool qn_expect_control(struct qn_bed *bed, const struct qn_control *want)
{
    const uint8_t *got_bytes = (const uint8_t *)&bed->control;
    const uint8_t *want_bytes = (const uint8_t *)want;
    for (size_t word = 0; word < sizeof *want / 4; word++) {
        double got, wanted;
        char name[48];
        if (memcmp(got_bytes + 4 * word, want_bytes + 4 * word, 4) == 0)
            continue; /* the same bits, which may be infinite */
        qn_dtype type = is_integer(word) ? QN_I32 : QN_F32;
        qn_number_decode(type, got_bytes + 4 * word, 1, &got);
        qn_number_decode(type, want_bytes + 4 * word, 1, &wanted);
        snprintf(name, sizeof name, "word %zu of the control block", word);
        double tolerance = qn_tolerance(bed->subject->check->op->name, type, fabs(wanted), false);
        if (!qn_compare(bed->verdict, name, &got, &wanted, 1, tolerance))
            return false;
    }
    return true;
}
