/* SPDX-License-Identifier: MIT
 *
 * The image of the test bed's memory: it is painted and written before a group runs, and compared
 * with the memory afterwards.
 */
#include "check/bed.h"

#include <string.h>

/* 1.4 in f32 and bf16, 1.9 in f16: harmless to read and not likely to be written. */
static const uint32_t NUMBER_WORD = UINT32_C(0x3fb53fb5);

/* Paints bytes first .. last - 1. Byte `at` of the buffer gets byte at % 4 of the word, wherever
 * painting begins. */
static void paint(uint8_t *image, int64_t first, int64_t last, uint32_t word)
{
    uint8_t bytes[4];
    int64_t i = first;
    memcpy(bytes, &word, sizeof bytes);
    for (; i < last && (i & 3); i++)
        image[i] = bytes[i & 3];
    for (; i + 4 <= last; i += 4)
        memcpy(image + i, bytes, sizeof bytes);
    for (; i < last; i++)
        image[i] = bytes[i & 3];
}

static int64_t start_of(const struct qn_operand *operand)
{
    return operand->offset * qn_dtype_size(operand->dtype);
}

static const struct qn_operand *operand_of(const struct qn_call *call, int number)
{
    return qn_call_operand((struct qn_call *)(uintptr_t)call, qn_operand_ref(number));
}

static void paint_guards(struct qn_bed *bed, const struct qn_operand *operand, int64_t bytes)
{
    uint8_t *image = bed->image[operand->buffer];
    int64_t at = start_of(operand);
    paint(image, at - QN_GUARD, at, NUMBER_WORD);
    paint(image, at + bytes, at + bytes + QN_GUARD, NUMBER_WORD);
}

void qn_image_paint(struct qn_bed *bed, const struct qn_call *call, const unsigned use[QN_OPERANDS])
{
    for (int buffer = 0; buffer < QN_BED_BUFFERS; buffer++)
        paint(bed->image[buffer], 0, bed->size[buffer], QN_NAN_WORD);
    for (int s = 0; s < QN_OPERANDS; s++)
        if (use[s] & QN_USE_WRITE)
            paint_guards(bed, operand_of(call, s), bed->contents[s].bytes);
    for (int s = 0; s < QN_OPERANDS; s++) {
        const struct qn_operand *operand = operand_of(call, s);
        if (use[s] & QN_USE_READ)
            memcpy(bed->image[operand->buffer] + start_of(operand), bed->contents[s].value,
                   (size_t)bed->contents[s].bytes);
    }
}

/* Names the operand that byte `at` of a buffer belongs or is next to. */
static bool blame(struct qn_bed *bed, const struct qn_call *call, const char *group, int buffer,
                  int64_t at)
{
    char name[32];
    for (int s = 0; s < QN_OPERANDS; s++) {
        const struct qn_operand *operand = operand_of(call, s);
        int64_t first = start_of(operand), last = first + bed->contents[s].bytes;
        if (!qn_present(operand) || operand->buffer != buffer || operand->offset == 0)
            continue;
        if (at >= first && at < last)
            return qn_verdict_fail(bed->verdict, "%s: changes %s, byte %lld", group,
                                   qn_operand_name(s, name), (long long)(at - first));
        if (at >= last && at < last + QN_GUARD)
            return qn_verdict_fail(bed->verdict, "%s: writes %lld bytes behind the end of %s",
                                   group, (long long)(at - last), qn_operand_name(s, name));
        if (at < first && at >= first - QN_GUARD)
            return qn_verdict_fail(bed->verdict, "%s: writes %lld bytes before %s", group,
                                   (long long)(first - at), qn_operand_name(s, name));
    }
    return qn_verdict_fail(bed->verdict,
                           "%s: writes to memory that is not its own (buffer %d, byte %lld, "
                           "scratch is %d at %lld + %lld)",
                           group, buffer, (long long)at, call->scratch.buffer,
                           (long long)bed->scratch_at, (long long)qn_operand_bytes(&call->scratch));
}

static bool check_buffer(struct qn_bed *bed, const struct qn_call *call, const char *group,
                         int buffer)
{
    if (memcmp(bed->image[buffer], bed->result[buffer], (size_t)bed->size[buffer]) == 0)
        return true;
    int64_t at = 0;
    while (bed->image[buffer][at] == bed->result[buffer][at])
        at++;
    return blame(bed, call, group, buffer, at);
}

/* Copies the operand's bytes from the result into the image: the group may have written there. */
static void allow(struct qn_bed *bed, const struct qn_operand *operand, int64_t bytes)
{
    int64_t at = start_of(operand);
    memcpy(bed->image[operand->buffer] + at, bed->result[operand->buffer] + at, (size_t)bytes);
}

bool qn_image_check(struct qn_bed *bed, const struct qn_call *call, const unsigned use[QN_OPERANDS],
                    const char *group)
{
    if (qn_present(&call->scratch))
        allow(bed, &call->scratch, qn_operand_bytes(&call->scratch));
    for (int s = 0; s < QN_OPERANDS; s++) {
        const struct qn_operand *operand = operand_of(call, s);
        if (!(use[s] & QN_USE_WRITE))
            continue;
        allow(bed, operand, bed->contents[s].bytes);
        memcpy(bed->contents[s].value, bed->result[operand->buffer] + start_of(operand),
               (size_t)bed->contents[s].bytes);
        bed->contents[s].written = true;
    }
    for (int buffer = 0; buffer < QN_BED_BUFFERS; buffer++)
        if (!check_buffer(bed, call, group, buffer))
            return false;
    return true;
}
