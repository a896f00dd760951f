/* SPDX-License-Identifier: MIT */
#include "check/operand.h"

#include <stdio.h>

static const struct {
    int first;
    const char *name;
} kinds[QN_REF_KINDS + 1] = {
    [QN_REF_IN] = {0, "in"},
    [QN_REF_OUT] = {QN_MAX_IN, "out"},
    [QN_REF_DIN] = {QN_MAX_IN + QN_MAX_OUT, "gradient of in"},
    [QN_REF_DOUT] = {2 * QN_MAX_IN + QN_MAX_OUT, "gradient of out"},
    [QN_REF_SAVED] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT, "saved"},
    [QN_REF_TEMP] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED, "temp"},
    [QN_REF_STATE] = {2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP, "state"},
    [QN_REF_GATHER] = {QN_OPERANDS - QN_MAX_STATE, "gather"},
    [QN_REF_KINDS] = {QN_OPERANDS, NULL},
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

const char *qn_operand_name(int number, char text[32])
{
    struct qn_ref ref = qn_operand_ref(number);
    snprintf(text, 32, "%s %d", kinds[ref.kind].name, ref.index);
    return text;
}
