/* SPDX-License-Identifier: MIT
 *
 * Running the groups of an operator on a test bed.
 */
#include "check/bed.h"

#include "base/shape.h"
#include "check/number.h"
#include "cl/device.h"
#include "cl/recording.h"

#include <math.h>
#include <string.h>

enum { CONTROL = QN_BED_BUFFERS, BLAS };
enum { GUARD_BYTE = 0x7f }; /* around the control block */

/* Upper bounds of a cost: flops over elements of the largest operand; bytes over the bytes of all
 * operands. */
static const double MOST_FLOPS = 64, MOST_MOVES = 4;

static const struct qn_group *group_of(const struct qn_bed *bed, int group)
{
    return &bed->subject->check->op->groups[group];
}

static bool is_present(const struct qn_bed *bed, struct qn_ref ref)
{
    return ref.kind != QN_REF_NONE && bed->contents[qn_operand_number(ref)].value;
}

static bool phase_reads(const struct qn_bed *bed, unsigned phase, struct qn_ref ref)
{
    for (int g = 0; g < QN_MAX_GROUPS && group_of(bed, g)->name; g++)
        for (int r = 0; r < QN_MAX_READS && (group_of(bed, g)->phase & phase); r++)
            if (memcmp(&group_of(bed, g)->read[r].ref, &ref, sizeof ref) == 0)
                return true;
    return false;
}

/* Whether a pass has the operand: a gradient if it is in pass->wanted; in evaluation neither GATHER
 * nor a SAVED that no group of evaluations reads. */
static bool is_wanted(const struct qn_bed *bed, const struct qn_pass *pass, struct qn_ref ref)
{
    if (ref.kind == QN_REF_DIN)
        return pass->wanted & 1u << ref.index;
    if (ref.kind == QN_REF_GATHER)
        return pass->phase != QN_PHASE_EVAL;
    if (ref.kind == QN_REF_SAVED && pass->phase == QN_PHASE_EVAL)
        return phase_reads(bed, pass->phase, ref);
    return true;
}

static void use_read(const struct qn_bed *bed, const struct qn_read *read, bool alternative,
                     unsigned use[QN_OPERANDS])
{
    bool both = is_present(bed, read->ref) && is_present(bed, read->or_);
    bool second = is_present(bed, read->or_) && (alternative || !is_present(bed, read->ref));
    struct qn_ref chosen = second ? read->or_ : read->ref;
    if (is_present(bed, chosen))
        use[qn_operand_number(chosen)] |= QN_USE_READ;
    if (both)
        use[qn_operand_number(second ? read->ref : read->or_)] |= QN_USE_ABSENT;
}

void qn_bed_uses(const struct qn_bed *bed, const struct qn_pass *pass, int group,
                 unsigned use[QN_OPERANDS])
{
    const struct qn_group *g = group_of(bed, group);
    memset(use, 0, QN_OPERANDS * sizeof *use);
    for (int r = 0; r < QN_MAX_READS && g->read[r].ref.kind != QN_REF_NONE; r++)
        if (qn_group_reads(g, bed->call.attr, r))
            use_read(bed, &g->read[r], pass->group == group && pass->alternative == r, use);
        else
            use[qn_operand_number(g->read[r].ref)] |= QN_USE_ABSENT;
    for (int w = 0; w < QN_MAX_WRITES && g->write[w].ref.kind != QN_REF_NONE; w++)
        if (is_present(bed, g->write[w].ref))
            use[qn_operand_number(g->write[w].ref)] |=
                is_wanted(bed, pass, g->write[w].ref) ? QN_USE_WRITE : QN_USE_ABSENT;
}

/* The call of the group: operands that the pass lacks are absent, undeclared ones are NaN. */
static void bind(const struct qn_bed *bed, const unsigned use[QN_OPERANDS], struct qn_call *call)
{
    *call = bed->call;
    for (int s = 0; s < QN_OPERANDS; s++) {
        struct qn_operand *operand = qn_call_operand(call, qn_operand_ref(s));
        if (!qn_present(operand) || (use[s] & (QN_USE_READ | QN_USE_WRITE)))
            continue;
        if (use[s] & QN_USE_ABSENT) {
            *operand = (struct qn_operand){0};
        } else {
            operand->buffer = 0;
            operand->offset = bed->poison_at / qn_dtype_size(operand->dtype);
        }
    }
}

static void move_in_place(const struct qn_group *group, int write, struct qn_call *call)
{
    struct qn_operand *moved = qn_call_operand(call, group->write[write].ref);
    const struct qn_operand *place = qn_call_operand(call, group->write[write].in_place);
    moved->buffer = place->buffer;
    moved->offset = place->offset;
}

static void set_betas(const struct qn_bed *bed, const struct qn_pass *pass, struct qn_call *call)
{
    for (int i = 0; i < QN_MAX_IN; i++)
        call->beta_in[i] =
            bed->contents[qn_operand_number((struct qn_ref)QN_DIN(i))].written ? 1 : pass->beta;
    for (int i = 0; i < QN_MAX_STATE; i++)
        call->beta_gather[i] =
            bed->contents[qn_operand_number((struct qn_ref)QN_GATHER(i))].written ? 1 : pass->beta;
}

/* A write keeps the contents from before if it accumulates, goes to a state, or is not the first
 * one in its pass: then it counts as a read too. */
static void keep_contents(const struct qn_bed *bed, const struct qn_pass *pass,
                          unsigned use[QN_OPERANDS])
{
    for (int s = 0; s < QN_OPERANDS; s++) {
        struct qn_ref ref = qn_operand_ref(s);
        bool accumulates = ref.kind == QN_REF_DIN || ref.kind == QN_REF_GATHER;
        if ((use[s] & QN_USE_WRITE) && (bed->contents[s].written || ref.kind == QN_REF_STATE ||
                                        (accumulates && pass->beta != 0)))
            use[s] |= QN_USE_READ;
    }
}

/* Bytes of all operands of a group, elements of the largest one. */
struct load {
    double bytes, elements;
};

static struct load load_of(const struct qn_bed *bed, const unsigned use[QN_OPERANDS])
{
    struct load load = {0, 0};
    struct qn_call call = bed->call;
    for (int s = 0; s < QN_OPERANDS; s++) {
        if (!(use[s] & (QN_USE_READ | QN_USE_WRITE)))
            continue;
        double count = (double)qn_operand_count(qn_call_operand(&call, qn_operand_ref(s)));
        load.bytes += (double)bed->contents[s].bytes;
        load.elements = count > load.elements ? count : load.elements;
    }
    return load;
}

static bool check_flops(struct qn_bed *bed, const struct qn_call *call, const char *group,
                        double flops, double elements)
{
    const struct qn_check_op *check = bed->subject->check;
    double least = elements / 2, most = MOST_FLOPS * elements;
    if (check->flops)
        least = most = check->flops(call, group);
    if (!(flops >= least && flops <= most))
        return qn_verdict_fail(bed->verdict, "%s: cost: %g operations, wanted %g to %g", group,
                               flops, least, most);
    return true;
}

static bool check_cost(struct qn_bed *bed, const struct qn_call *call,
                       const unsigned use[QN_OPERANDS], const char *group,
                       const struct qn_cost *cost)
{
    const struct load load = load_of(bed, use);
    /* Scratch may be filled anew by every launch. */
    const double moves = cost->launches > MOST_MOVES ? cost->launches : MOST_MOVES;
    double most = MOST_MOVES * load.bytes + moves * (double)cost->scratch;
    if (cost->scratch < 0 || cost->scratch > bed->scratch_bytes)
        return qn_verdict_fail(bed->verdict,
                               "%s: cost: %lld bytes of scratch, but %lld with all operands", group,
                               (long long)cost->scratch, (long long)bed->scratch_bytes);
    double least = load.bytes;
    if (bed->subject->check->bytes)
        least = most = bed->subject->check->bytes(call);
    if (!(cost->bytes >= least && cost->bytes <= most))
        return qn_verdict_fail(bed->verdict, "%s: cost: %.0f bytes, wanted %.0f to %.0f", group,
                               cost->bytes, least, most);
    return check_flops(bed, call, group, cost->flops, load.elements);
}

/* Launches and CLBlast product of a recorded group, to compare with its cost. */
static void count_launches(const struct qn_recording *recording, struct qn_cost *done)
{
    done->launches = qn_recording_count(recording);
    for (int i = 0; i < done->launches; i++)
        qn_recording_product(recording, i, done->blas);
}

static void move_far(const struct qn_bed *bed, struct qn_operand *operand)
{
    if (qn_present(operand) && operand->buffer < QN_BED_BUFFERS)
        operand->offset += bed->subject->far / qn_dtype_size(operand->dtype);
}

/* The call with every operand's offset moved by subject->far bytes, which stay unused. */
static struct qn_call moved_far(const struct qn_bed *bed, const struct qn_call *call)
{
    struct qn_call moved = *call;
    for (int s = 0; s < QN_OPERANDS; s++)
        move_far(bed, qn_call_operand(&moved, qn_operand_ref(s)));
    move_far(bed, &moved.scratch);
    return moved;
}

static qn_status launch(struct qn_bed *bed, const struct qn_variant *variant,
                        const struct qn_call *call, struct qn_cost *done)
{
    struct qn_recording *recording = NULL;
    const struct qn_call moved = moved_far(bed, call);
    qn_status status = qn_recording_open(&recording, bed->slab);
    if (status != QN_OK)
        return status;
    qn_recording_set_blas_buffer(recording, BLAS);
    status = variant->emit(qn_recording_emit(recording, call->name), &moved);
    count_launches(recording, done);
    if (status == QN_OK)
        status = qn_recording_run(recording, 0, -1);
    if (status == QN_OK)
        status = qn_device_finish(bed->device);
    qn_recording_close(&recording);
    return status;
}

static qn_status write_memory(struct qn_bed *bed)
{
    const int64_t far = bed->subject->far;
    uint8_t block[QN_CONTROL_BYTES];
    memset(block, GUARD_BYTE, sizeof block);
    memcpy(block + QN_CONTROL_AT, &bed->control, sizeof bed->control);
    for (int buffer = 0; buffer < QN_BED_BUFFERS; buffer++) {
        qn_status status =
            qn_slab_write(bed->slab, buffer, far, bed->image[buffer], bed->size[buffer], NULL);
        if (status != QN_OK)
            return status;
    }
    return qn_slab_write(bed->slab, CONTROL, 0, block, sizeof block, NULL);
}

static qn_status read_memory(struct qn_bed *bed, bool *guarded)
{
    const int64_t far = bed->subject->far;
    uint8_t block[QN_CONTROL_BYTES];
    for (int buffer = 0; buffer < QN_BED_BUFFERS; buffer++) {
        qn_status status =
            qn_slab_read(bed->slab, buffer, far, bed->result[buffer], bed->size[buffer], NULL);
        if (status != QN_OK)
            return status;
    }
    qn_status status = qn_slab_read(bed->slab, CONTROL, 0, block, sizeof block, NULL);
    memcpy(&bed->control, block + QN_CONTROL_AT, sizeof bed->control);
    memset(block + QN_CONTROL_AT, GUARD_BYTE, sizeof bed->control);
    *guarded = true;
    for (size_t i = 0; i < sizeof block; i++)
        *guarded = *guarded && block[i] == GUARD_BYTE;
    return status;
}

static bool execute(struct qn_bed *bed, const char *name, const struct qn_variant *variant,
                    const struct qn_call *call, const struct qn_cost *cost)
{
    struct qn_cost done = {0};
    bool guarded = true;
    qn_status status = write_memory(bed);
    if (status == QN_OK)
        status = launch(bed, variant, call, &done);
    if (status == QN_OK)
        status = read_memory(bed, &guarded);
    if (status != QN_OK)
        return qn_verdict_stop(bed->verdict, status, name);
    if (!guarded)
        return qn_verdict_fail(bed->verdict, "%s: writes beside the control block", name);
    if (done.launches != cost->launches)
        return qn_verdict_fail(bed->verdict, "%s: cost: %d launches, but there are %d", name,
                               cost->launches, done.launches);
    if (memcmp(done.blas, cost->blas, sizeof done.blas) != 0)
        return qn_verdict_fail(bed->verdict, "%s: cost: another CLBlast product than there is",
                               name);
    return true;
}

bool qn_bed_run_group(struct qn_bed *bed, const struct qn_pass *pass, int group)
{
    const struct qn_group *g = group_of(bed, group);
    const struct qn_variant *variant = bed->picks->group[group].variant;
    unsigned use[QN_OPERANDS];
    struct qn_call call;
    struct qn_cost cost = {0};
    qn_bed_uses(bed, pass, group, use);
    bind(bed, use, &call);
    set_betas(bed, pass, &call);
    qn_call_choose(&call, variant, bed->picks->group[group].setting);
    variant->cost(&call, &cost);
    if (!check_cost(bed, &call, use, g->name, &cost))
        return false;
    if (cost.scratch > 0)
        call.scratch = (struct qn_operand){.dtype = QN_F32,
                                           .shape = {1, {qn_div_up(cost.scratch, 4)}},
                                           .buffer = 1,
                                           .offset = bed->scratch_at / 4};
    if (pass->group == group && pass->in_place >= 0)
        move_in_place(g, pass->in_place, &call);
    keep_contents(bed, pass, use);
    qn_image_paint(bed, &call, use);
    return execute(bed, g->name, variant, &call, &cost) && qn_image_check(bed, &call, use, g->name);
}

static void poison(struct qn_bed_contents *contents)
{
    uint32_t word = QN_NAN_WORD;
    for (int64_t i = 0; i < contents->bytes; i++)
        contents->value[i] = ((const uint8_t *)&word)[i & 3];
}

static void start(struct qn_bed *bed, const struct qn_pass *pass)
{
    bed->control = bed->subject->control;
    for (int s = 0; s < QN_OPERANDS; s++) {
        struct qn_ref ref = qn_operand_ref(s);
        struct qn_bed_contents *contents = &bed->contents[s];
        bool gradient = ref.kind == QN_REF_DIN && pass->phase == QN_PHASE_BACKWARD;
        bool gather = ref.kind == QN_REF_GATHER && pass->phase == QN_PHASE_TRAIN;
        contents->written = false;
        if (!contents->value)
            continue;
        const struct qn_operand *operand = qn_call_operand(&bed->call, ref);
        if (gradient || gather || ref.kind == QN_REF_STATE)
            qn_number_encode(operand->dtype, bed->subject->value[s], qn_operand_count(operand),
                             contents->value);
        if (ref.kind == QN_REF_TEMP)
            poison(contents);
    }
}

/* Whether the pass runs the group: it writes an operand that the pass wants, writes none at all, or
 * has an effect besides its writes (`once`). The planner leaves out the same groups. */
static bool is_needed(const struct qn_bed *bed, const struct qn_pass *pass, int group)
{
    const struct qn_group *g = group_of(bed, group);
    bool any = g->write[0].ref.kind == QN_REF_NONE;
    for (int w = 0; w < QN_MAX_WRITES && g->write[w].ref.kind != QN_REF_NONE; w++)
        any = any || (is_present(bed, g->write[w].ref) && is_wanted(bed, pass, g->write[w].ref));
    return any || g->once;
}

bool qn_bed_run(struct qn_bed *bed, const struct qn_pass *pass)
{
    start(bed, pass);
    for (int g = 0; g < QN_MAX_GROUPS && group_of(bed, g)->name; g++)
        if ((group_of(bed, g)->phase & pass->phase) && is_needed(bed, pass, g) &&
            !qn_bed_run_group(bed, pass, g))
            return false;
    return true;
}
