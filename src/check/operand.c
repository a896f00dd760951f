/* SPDX-License-Identifier: MIT */
#include "check/operand.h"

#include <stdio.h>

static const struct {
    int first, stream;
    const char *name;
} kinds[QN_REF_KINDS + 1] = {
    [QN_REF_IN] = {0, 0, "in"},
    [QN_REF_OUT] = {QN_MAX_IN, 6, "out"},
    [QN_REF_DIN] = {QN_MAX_IN + QN_MAX_OUT, 9, "gradient of in"},
    [QN_REF_DOUT] = {2 * QN_MAX_IN + QN_MAX_OUT, 15, "gradient of out"},
    [QN_REF_SAVED] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT, 18, "saved"},
    [QN_REF_TEMP] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED, 20, "temp"},
    [QN_REF_STATE] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP, 23, "state"},
    [QN_REF_GATHER] = {QN_OPERANDS - QN_MAX_STATE, 28, "gather"},
    [QN_REF_KINDS] = {QN_OPERANDS, 0, NULL},
};

int qn_operand_number(struct qn_ref ref)
{
    return kinds[ref.kind].first + ref.index;
}

struct qn_ref qn_operand_ref(int number)
{
    int kind = QN_REF_IN;
    while (number >= kinds[kind + 1].first)
        kind++;
    return (struct qn_ref){(uint8_t)kind, (uint8_t)(number - kinds[kind].first)};
}

uint64_t qn_operand_stream(int number)
{
    const struct qn_ref ref = qn_operand_ref(number);
    const bool later =
        (ref.kind == QN_REF_IN || ref.kind == QN_REF_DIN) && ref.index >= QN_STREAM_INPUTS;
    return (uint64_t)(later ? QN_LATER_STREAMS + number : kinds[ref.kind].stream + ref.index);
}

const char *qn_operand_name(int number, char text[32])
{
    struct qn_ref ref = qn_operand_ref(number);
    snprintf(text, 32, "%s %d", kinds[ref.kind].name, ref.index);
    return text;
}
