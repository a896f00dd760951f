/* SPDX-License-Identifier: MIT */
#include "op/op.h"

#include "base/shape.h"
#include "op/list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DECLARE(name) extern const struct qn_op qn_op_##name;
QN_OP_LIST(DECLARE)
#undef DECLARE

/* The list, the operator that is lent or NULL, and the NULL that ends them. */
static const struct qn_op *operators[] = {
#define ENTRY(name) &qn_op_##name,
    QN_OP_LIST(ENTRY)
#undef ENTRY
        NULL,
    NULL,
};
enum { LENT = sizeof operators / sizeof *operators - 2 };

const struct qn_op *const *qn_op_all(void)
{
    return operators;
}

void qn_op_lend(const struct qn_op *op)
{
    operators[LENT] = op;
}

const struct qn_op *qn_op_find(const char *name)
{
    for (const struct qn_op *const *op = operators; *op; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

int64_t qn_operand_count(const struct qn_operand *operand)
{
    return qn_present(operand) ? qn_shape_count(&operand->shape) : 0;
}

int64_t qn_operand_bytes(const struct qn_operand *operand)
{
    return qn_mul(qn_operand_count(operand), qn_dtype_size(operand->dtype));
}

struct qn_operand *qn_call_operand(struct qn_call *call, struct qn_ref ref)
{
    struct qn_operand *const kinds[QN_REF_KINDS] = {
        [QN_REF_IN] = call->in,       [QN_REF_OUT] = call->out,       [QN_REF_DIN] = call->din,
        [QN_REF_DOUT] = call->dout,   [QN_REF_SAVED] = call->saved,   [QN_REF_TEMP] = call->temp,
        [QN_REF_STATE] = call->state, [QN_REF_GATHER] = call->gather,
    };
    return kinds[ref.kind] ? kinds[ref.kind] + ref.index : NULL;
}

qn_status qn_shape_error(struct qn_shape_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->reason, sizeof call->reason, format, args);
    va_end(args);
    return QN_ERR_SHAPE;
}

void qn_shape_set(struct qn_operand *operand, qn_dtype dtype, int rank, const int64_t *dim)
{
    operand->dtype = dtype;
    operand->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        operand->shape.dim[i] = dim[i];
}

void qn_call_choose(struct qn_call *call, const struct qn_variant *variant, int setting)
{
    call->setting = setting;
    call->cpu = variant->cpu;
}

bool qn_call_fits(struct qn_call *call, const struct qn_variant *variant, int setting,
                  const char **why)
{
    qn_call_choose(call, variant, setting);
    return !variant->fits || variant->fits(call, why);
}

const char *qn_setting_name(const struct qn_variant *variant, int setting)
{
    return variant->settings ? variant->settings[setting] : "";
}

int qn_setting_index(const struct qn_variant *variant, const char *name)
{
    if (!variant->settings)
        return *name ? -1 : 0;
    for (int i = 0; variant->settings[i]; i++)
        if (strcmp(variant->settings[i], name) == 0)
            return i;
    return -1;
}

int qn_setting_count(const struct qn_variant *variant)
{
    int count = 1;
    while (variant->settings && variant->settings[count])
        count++;
    return count;
}
