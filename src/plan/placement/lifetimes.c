/* SPDX-License-Identifier: MIT
 *
 * The public form of placement: any buffers with lifetimes, without a plan.
 */
#include "base/log.h"
#include "plan/placement/pack.h"

#include <inttypes.h>

static qn_status check(const qn_lifetime *buffers, int count, const qn_log *log)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        const qn_lifetime *b = &buffers[i];
        if (b->lower >= b->upper || b->lower < 0 || b->size < 0)
            return qn_fail(log, QN_ERR_ARGUMENT,
                           "buffer %d: lives from %" PRId64 " to %" PRId64 " with %" PRId64
                           " bytes",
                           i, b->lower, b->upper, b->size);
        if (b->size > INT64_MAX - sum)
            return qn_fail(log, QN_ERR_ARGUMENT, "buffer %d: the sizes so far have no sum", i);
        sum += b->size;
    }
    return QN_OK;
}

static qn_status place(qn_lifetime *buffers, int count, const qn_place_params *params,
                       int64_t *bound, struct qn_arena *arena)
{
    const int64_t nodes = params->nodes ? params->nodes : INT64_C(1) << 28;
    *bound = qn_pack_bound(buffers, count, arena);
    const int64_t capacity = params->capacity ? params->capacity : *bound;
    const enum qn_packing done =
        *bound < 0 ? QN_PACK_NO_MEMORY : qn_pack(buffers, count, capacity, nodes, arena);
    if (done == QN_PACK_IMPOSSIBLE)
        return qn_fail(&params->log, QN_ERR_BUDGET,
                       "no offsets fit %" PRId64 " bytes; %" PRId64 " live at the same time",
                       capacity, *bound);
    if (done == QN_PACK_GAVE_UP)
        return qn_fail(&params->log, QN_ERR_BUDGET,
                       "no offsets within %" PRId64 " bytes were found in %" PRId64
                       " steps; %" PRId64 " live at the same time",
                       capacity, nodes, *bound);
    return done == QN_PACKED
               ? QN_OK
               : qn_fail(&params->log, QN_ERR_MEMORY,
                         "placement: out of host memory, or too many buffers live together");
}

qn_status qn_place(qn_lifetime *buffers, int count, const qn_place_params *params, int64_t *bound)
{
    const qn_place_params none = {0};
    struct qn_arena arena = {0};
    int64_t own;
    params = params ? params : &none;
    QN_REQUIRE(&params->log, buffers && count >= 0 && params->capacity >= 0 && params->nodes >= 0);
    QN_TRY(check(buffers, count, &params->log));
    const qn_status status = place(buffers, count, params, bound ? bound : &own, &arena);
    qn_arena_free(&arena);
    return status;
}
