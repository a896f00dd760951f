/* SPDX-License-Identifier: MIT */
#include "data/order.h"
#include "base/log.h"
#include "base/random.h"

#include <stdlib.h>

/* Keeps these numbers apart from all others of the same seed. */
static const uint64_t STREAM = UINT64_C(0x6f72646572000000);

qn_status qn_order_make(struct qn_order *order, uint64_t seed, int64_t count, bool sequential,
                        const struct qn_log *log)
{
    QN_REQUIRE(log, count >= 1 && count <= UINT32_MAX);
    *order = (struct qn_order){
        .seed = seed, .count = count, .sequential = sequential, .epoch = {-1, -1}};
    for (int i = 0; i < 2 && !sequential; i++) {
        order->index[i] = calloc((size_t)count, sizeof *order->index[i]);
        if (!order->index[i]) {
            qn_order_free(order);
            return qn_fail(log, QN_ERR_MEMORY, "order of %lld samples: out of memory",
                           (long long)count);
        }
    }
    return QN_OK;
}

void qn_order_free(struct qn_order *order)
{
    free(order->index[0]);
    free(order->index[1]);
    *order = (struct qn_order){0};
}

/* Fisher and Yates. The remainder of 64 bits favours no sample by more than 2^-32. */
static void shuffle(uint32_t *index, int64_t count, uint64_t seed, int64_t epoch)
{
    for (int64_t i = 0; i < count; i++)
        index[i] = (uint32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint64_t bits = qn_random_bits(seed, STREAM + (uint64_t)epoch, (uint64_t)i);
        int64_t other = (int64_t)(bits % (uint64_t)(i + 1));
        uint32_t kept = index[i];
        index[i] = index[other];
        index[other] = kept;
    }
}

int64_t qn_order_at(struct qn_order *order, int64_t position)
{
    int64_t epoch = position / order->count, at = position % order->count;
    if (order->sequential)
        return at;
    int half = (int)(epoch % 2);
    if (order->epoch[half] != epoch) {
        shuffle(order->index[half], order->count, order->seed, epoch);
        order->epoch[half] = epoch;
    }
    return order->index[half][at];
}
