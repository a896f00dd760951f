/* SPDX-License-Identifier: MIT
 *
 * Adds persistent values.
 */
#include "base/log.h"
#include "plan/lowering/persist.h"

#include <inttypes.h>

int qn_persist_add(struct qn_persist *persist, const struct qn_value *value)
{
    persist->values[persist->n_values] = *value;
    return persist->n_values++;
}

int qn_persist_add_array(struct qn_persist *persist, const char *name, qn_dtype dtype,
                         int64_t count, enum qn_tag tag, enum qn_life life)
{
    struct qn_value value = {.name = name, .tag = tag, .life = life, .block = -1};
    qn_shape_set(&value.operand, dtype, 1, &count);
    value.bytes = qn_operand_bytes(&value.operand);
    return qn_persist_add(persist, &value);
}

qn_status qn_persist_check_size(const struct qn_lowering *how, const char *name, int64_t bytes,
                                int64_t most)
{
    if (bytes < 0 || bytes > most)
        return qn_fail(how->log, QN_ERR_MEMORY,
                       "%s: %" PRId64 " bytes are more than the largest allocation, %" PRId64, name,
                       bytes, most);
    return QN_OK;
}
