/* SPDX-License-Identifier: MIT */
#include "op/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void qn_launch_option(struct qn_launch *launch, const char *name, int64_t value)
{
    size_t used = strlen(launch->options);
    snprintf(launch->options + used, sizeof launch->options - used, " -D%s=%" PRId64, name, value);
}

void qn_launch_word(struct qn_launch *launch, const char *name, const char *word)
{
    size_t used = strlen(launch->options);
    snprintf(launch->options + used, sizeof launch->options - used, " -D%s=%s", name, word);
}

void qn_launch_type(struct qn_launch *launch, const char *name, const struct qn_operand *operand)
{
    size_t used = strlen(launch->options);
    const char *type = qn_present(operand) ? qn_dtype_name(operand->dtype) : "f32";
    snprintf(launch->options + used, sizeof launch->options - used, " -D%s_TYPE=%s", name, type);
}
