/* SPDX-License-Identifier: MIT */
#include "check/cell.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALL_INPUTS = (1 << QN_MAX_IN) - 1 };

static struct qn_pass plain(unsigned phase, float beta)
{
    return (struct qn_pass){phase, beta, ALL_INPUTS, -1, -1, -1};
}

/* If !ok, puts the formatted text (what the check did) in front of the verdict's reason. */
static bool note(struct qn_verdict *verdict, bool ok, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool note(struct qn_verdict *verdict, bool ok, const char *format, ...)
{
    if (ok)
        return true;
    char doing[64], text[sizeof verdict->text];
    va_list args;
    va_start(args, format);
    vsnprintf(doing, sizeof doing, format, args);
    va_end(args);
    memcpy(text, verdict->text, sizeof text);
    snprintf(verdict->text, sizeof verdict->text, "%s: %.*s", doing,
             (int)(sizeof text - sizeof doing - 2), text);
    return false;
}

static void keep(struct qn_bed *bed)
{
    bed->kept_control = bed->control;
    for (int s = 0; s < QN_OPERANDS; s++)
        if (bed->contents[s].written)
            memcpy(bed->contents[s].kept, bed->contents[s].value, (size_t)bed->contents[s].bytes);
}

/* Whether every operand that the last pass wrote, and the control block, have the bits kept. */
static bool same(struct qn_bed *bed)
{
    char name[32];
    if (memcmp(&bed->kept_control, &bed->control, sizeof bed->control) != 0)
        return qn_verdict_fail(bed->verdict, "the control block: other bits");
    for (int s = 0; s < QN_OPERANDS; s++) {
        const struct qn_bed_contents *contents = &bed->contents[s];
        if (!contents->written ||
            memcmp(contents->kept, contents->value, (size_t)contents->bytes) == 0)
            continue;
        int64_t at = 0;
        while (contents->kept[at] == contents->value[at])
            at++;
        const struct qn_operand *operand = qn_call_operand(&bed->call, qn_operand_ref(s));
        return qn_verdict_fail(bed->verdict, "%s: other bits in element %lld",
                               qn_operand_name(s, name),
                               (long long)(at / qn_dtype_size(operand->dtype)));
    }
    return true;
}

static bool repeats(struct qn_bed *bed, const struct qn_pass *pass)
{
    return bed->subject->brief ||
           note(bed->verdict, qn_bed_run(bed, pass) && same(bed), "second run");
}

static const struct qn_group *group_of(const struct qn_bed *bed, int group)
{
    return &bed->subject->check->op->groups[group];
}

static bool there(const struct qn_bed *bed, struct qn_ref ref)
{
    return ref.kind != QN_REF_NONE && bed->contents[qn_operand_number(ref)].value;
}

static bool check_alternatives(struct qn_bed *bed, const struct qn_pass *base, int group)
{
    const struct qn_read *read = group_of(bed, group)->read;
    for (int r = 0; r < QN_MAX_READS && read[r].ref.kind != QN_REF_NONE; r++) {
        struct qn_pass pass = *base;
        pass.group = group;
        pass.alternative = r;
        if (!there(bed, read[r].ref) || !there(bed, read[r].or_))
            continue;
        if (!note(bed->verdict, qn_bed_run(bed, &pass) && same(bed), "alternative of read %d", r))
            return false;
    }
    return true;
}

/* Whether the write can share the bytes of write->in_place: both operands have one type and size,
 * and the group reads the one and writes the other in this pass. */
static bool may_share(const struct qn_bed *bed, const struct qn_pass *pass, int group,
                      const struct qn_write *write)
{
    unsigned use[QN_OPERANDS];
    if (!there(bed, write->ref) || !there(bed, write->in_place))
        return false;
    qn_bed_uses(bed, pass, group, use);
    int from = qn_operand_number(write->in_place), to = qn_operand_number(write->ref);
    struct qn_call call = bed->call;
    return (use[from] & QN_USE_READ) && (use[to] & QN_USE_WRITE) &&
           bed->contents[from].bytes == bed->contents[to].bytes &&
           qn_call_operand(&call, write->in_place)->dtype ==
               qn_call_operand(&call, write->ref)->dtype;
}

static bool check_in_place(struct qn_bed *bed, const struct qn_pass *base, int group)
{
    const struct qn_write *write = group_of(bed, group)->write;
    for (int w = 0; w < QN_MAX_WRITES && write[w].ref.kind != QN_REF_NONE; w++) {
        struct qn_pass pass = *base;
        pass.group = group;
        pass.in_place = w;
        if (may_share(bed, base, group, &write[w]) &&
            !note(bed->verdict, qn_bed_run(bed, &pass) && same(bed), "write %d in place", w))
            return false;
    }
    return true;
}

/* After a pass with beta 0: a second run, the alternatives and the in-place writes change no bit.
 */
static bool check_bits(struct qn_bed *bed, const struct qn_pass *pass)
{
    keep(bed);
    if (!repeats(bed, pass))
        return false;
    for (int g = 0; g < QN_MAX_GROUPS && group_of(bed, g)->name; g++)
        if ((group_of(bed, g)->phase & pass->phase) &&
            !(check_alternatives(bed, pass, g) && check_in_place(bed, pass, g)))
            return false;
    return true;
}

static bool check_eval(struct qn_bed *bed)
{
    const struct qn_truth *truth = &bed->subject->truth;
    struct qn_pass pass = plain(QN_PHASE_EVAL, 0);
    return qn_bed_run(bed, &pass) && qn_expect_outputs(bed, truth->eval_out) &&
           qn_expect_control(bed, &truth->eval_control) && check_bits(bed, &pass);
}

static bool gathers(const struct qn_bed *bed)
{
    for (int i = 0; i < QN_MAX_STATE; i++)
        if (there(bed, (struct qn_ref)QN_GATHER(i)))
            return true;
    return false;
}

static bool check_gathering(struct qn_bed *bed)
{
    static const float betas[] = {1, 0.5f, 0}; /* beta 0 last: check_update goes on with what it
                                                * leaves */
    double *once[QN_MAX_STATE] = {0};
    for (int i = 0; i < QN_MAX_STATE; i++)
        if (there(bed, (struct qn_ref)QN_GATHER(i)) &&
            !(once[i] = qn_expect_values(bed, qn_operand_number((struct qn_ref)QN_GATHER(i)))))
            return false;
    for (int i = bed->subject->brief; i < 3; i++) {
        struct qn_pass pass = plain(QN_PHASE_TRAIN, betas[i]);
        if (!note(bed->verdict, qn_bed_run(bed, &pass) && qn_expect_gathered(bed, betas[i], once),
                  "beta %g", (double)betas[i]))
            return false;
    }
    return true;
}

static bool check_train(struct qn_bed *bed)
{
    const struct qn_truth *truth = &bed->subject->truth;
    struct qn_pass pass = plain(QN_PHASE_TRAIN, 0);
    return qn_bed_run(bed, &pass) && qn_expect_outputs(bed, truth->out) && qn_expect_finite(bed) &&
           qn_expect_control(bed, &truth->control) && check_bits(bed, &pass) &&
           (!gathers(bed) || check_gathering(bed));
}

static bool check_beta(struct qn_bed *bed, float beta)
{
    struct qn_pass pass = plain(QN_PHASE_BACKWARD, beta);
    return note(bed->verdict,
                qn_bed_run(bed, &pass) && qn_expect_gradients(bed, beta) &&
                    qn_expect_control(bed, &bed->subject->control),
                "beta %g", (double)beta);
}

static bool makes_several(const struct qn_bed *bed, int group)
{
    const struct qn_write *write = group_of(bed, group)->write;
    int gradients = 0;
    for (int w = 0; w < QN_MAX_WRITES && write[w].ref.kind != QN_REF_NONE; w++)
        gradients += write[w].ref.kind == QN_REF_DIN && there(bed, write[w].ref);
    return gradients > 1;
}

/* Whether a group writes several gradients: its kernels may differ if only one is wanted. */
static bool any_makes_several(const struct qn_bed *bed)
{
    for (int g = 0; g < QN_MAX_GROUPS && group_of(bed, g)->name; g++)
        if (makes_several(bed, g))
            return true;
    return false;
}

/* Each gradient must have the same bits when it alone is wanted. */
static bool check_single_gradients(struct qn_bed *bed)
{
    if (bed->subject->brief && !any_makes_several(bed))
        return true;
    for (int i = 0; i < QN_MAX_IN; i++) {
        struct qn_pass pass = plain(QN_PHASE_BACKWARD, 0);
        pass.wanted = 1u << i;
        if (there(bed, (struct qn_ref)QN_DIN(i)) &&
            !note(bed->verdict, qn_bed_run(bed, &pass) && same(bed), "gradient of in %d alone", i))
            return false;
    }
    return true;
}

static bool check_backward(struct qn_bed *bed)
{
    struct qn_pass pass = plain(QN_PHASE_BACKWARD, 0);
    return check_beta(bed, 0) && check_bits(bed, &pass) && check_single_gradients(bed) &&
           (bed->subject->brief || check_beta(bed, 1)) && check_beta(bed, 0.5f);
}

static bool check_update(struct qn_bed *bed)
{
    const struct qn_truth *truth = &bed->subject->truth;
    bool alone = !qn_subject_has(bed->subject, QN_PHASE_TRAIN);
    struct qn_pass pass = plain(QN_PHASE_UPDATE, 0);
    return qn_bed_run(bed, &pass) && qn_expect_state(bed) &&
           (!alone || qn_expect_outputs(bed, truth->out)) &&
           qn_expect_control(bed, alone ? &truth->control : &bed->subject->control) &&
           check_bits(bed, &pass);
}

/* Evaluation first: the passes after the training pass read operands that it left. */
static const struct {
    enum qn_phase phase;
    const char *name;
    bool (*check)(struct qn_bed *bed);
} phases[] = {
    {QN_PHASE_EVAL, "eval", check_eval},
    {QN_PHASE_TRAIN, "train", check_train},
    {QN_PHASE_BACKWARD, "backward", check_backward},
    {QN_PHASE_UPDATE, "update", check_update},
};

void qn_cell_check(const struct qn_subject *subject, qn_device *device,
                   const struct qn_picks *picks, struct qn_verdict *verdict)
{
    struct qn_bed bed = {.subject = subject, .device = device, .picks = picks, .verdict = verdict};
    bool ok = qn_bed_open(&bed);
    for (size_t i = 0; ok && i < sizeof phases / sizeof *phases; i++)
        if (qn_subject_has(subject, phases[i].phase))
            ok = note(verdict, phases[i].check(&bed), "%s", phases[i].name);
    qn_bed_close(&bed);
}
