/* SPDX-License-Identifier: MIT */
#include "check/bed.h"

#include "base/shape.h"
#include "check/number.h"
#include "cl/device.h"
#include "op/blas.h"

#include <math.h>
#include <string.h>

enum { ALIGNMENT = 512 };

static int64_t place(struct qn_bed *bed, int buffer, int64_t bytes)
{
    int64_t at = qn_round_up(bed->size[buffer] + QN_GUARD, ALIGNMENT);
    bed->size[buffer] = qn_round_up(at + bytes + QN_GUARD, ALIGNMENT);
    return at;
}

static int64_t place_operands(struct qn_bed *bed)
{
    const struct qn_ref twin = QN_IN((uint8_t)bed->subject->twin);
    int64_t largest = 0;
    int buffer = 0;
    for (int s = 0; s < QN_OPERANDS; s++) {
        struct qn_operand *operand = qn_call_operand(&bed->call, qn_operand_ref(s));
        if (!qn_present(operand))
            continue;
        int64_t bytes = bed->contents[s].bytes = qn_operand_bytes(operand);
        if (bed->subject->twin && s == qn_operand_number(twin)) {
            operand->buffer = bed->call.in[bed->subject->twin_of].buffer;
            operand->offset = bed->call.in[bed->subject->twin_of].offset;
            continue;
        }
        operand->buffer = buffer++ % QN_BED_BUFFERS;
        operand->offset = place(bed, operand->buffer, bytes) / qn_dtype_size(operand->dtype);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static struct qn_cost cost_of(const struct qn_bed *bed, int group)
{
    const struct qn_pick *pick = &bed->picks->group[group];
    struct qn_call call = bed->call;
    struct qn_cost cost = {0};
    if (!pick->variant)
        return cost;
    qn_call_choose(&call, pick->variant, pick->setting);
    pick->variant->cost(&call, &cost);
    return cost;
}

static int64_t most_scratch(const struct qn_bed *bed)
{
    int64_t most = 0;
    for (int g = 0; g < QN_MAX_GROUPS; g++) {
        const struct qn_cost cost = cost_of(bed, g);
        most = cost.scratch > most ? cost.scratch : most;
    }
    return most;
}

static void lay_out(struct qn_bed *bed)
{
    bed->poison_at = place(bed, 0, place_operands(bed));
    bed->scratch_bytes = most_scratch(bed);
    bed->scratch_at = place(bed, 1, bed->scratch_bytes);
    bed->call.control = (struct qn_operand){.dtype = QN_I32,
                                            .shape = {1, {sizeof(struct qn_control) / 4}},
                                            .buffer = QN_BED_BUFFERS,
                                            .offset = QN_CONTROL_AT / 4};
}

static bool fill_contents(struct qn_bed *bed)
{
    for (int s = 0; s < QN_OPERANDS; s++) {
        struct qn_bed_contents *contents = &bed->contents[s];
        const struct qn_operand *operand = qn_call_operand(&bed->call, qn_operand_ref(s));
        if (!qn_present(operand))
            continue;
        contents->value = qn_arena_alloc(&bed->arena, (size_t)contents->bytes + 1, 1);
        contents->kept = qn_arena_alloc(&bed->arena, (size_t)contents->bytes + 1, 1);
        if (!contents->value || !contents->kept)
            return false;
        if (bed->subject->value[s])
            qn_number_encode(operand->dtype, bed->subject->value[s], qn_operand_count(operand),
                             contents->value);
    }
    for (int buffer = 0; buffer < QN_BED_BUFFERS; buffer++) {
        bed->image[buffer] = qn_arena_alloc(&bed->arena, (size_t)bed->size[buffer], 1);
        bed->result[buffer] = qn_arena_alloc(&bed->arena, (size_t)bed->size[buffer], 1);
        if (!bed->image[buffer] || !bed->result[buffer])
            return false;
    }
    return true;
}

/* Bytes of CLBlast's temporary buffer for the products that the costs declare. The bed gives no
 * more, so that emit fails for a product that needs more. */
static int64_t blas_bytes(const struct qn_bed *bed)
{
    int64_t most = 0;
    for (int g = 0; g < QN_MAX_GROUPS; g++) {
        const struct qn_cost cost = cost_of(bed, g);
        if (!cost.blas[0])
            continue;
        int64_t bytes = qn_blas_bytes(bed->call.facts, cost.blas[0], cost.blas[1], cost.blas[2]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool qn_bed_open(struct qn_bed *bed)
{
    bed->call = bed->subject->call;
    bed->call.facts = bed->picks->facts;
    lay_out(bed);
    if (!fill_contents(bed))
        return qn_verdict_no_memory(bed->verdict, "the bed");
    const int64_t far = bed->subject->far;
    int64_t bytes[QN_BED_BUFFERS + 2] = {far + bed->size[0], far + bed->size[1], QN_CONTROL_BYTES,
                                         blas_bytes(bed)};
    qn_status status =
        far ? qn_slab_open_untouched(&bed->slab, bed->device, bytes, QN_BED_BUFFERS + 2)
            : qn_slab_open(&bed->slab, bed->device, bytes, QN_BED_BUFFERS + 2);
    if (status != QN_OK)
        return qn_verdict_stop(bed->verdict, status, "device memory");
    return true;
}

void qn_bed_close(struct qn_bed *bed)
{
    if (bed->slab)
        qn_slab_close(&bed->slab);
    qn_arena_free(&bed->arena);
}
