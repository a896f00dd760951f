/* SPDX-License-Identifier: MIT */
#include "check/draw.h"

struct qn_philox qn_check_draw(const struct qn_reference *r, uint32_t update, uint32_t number,
                               uint32_t node, int64_t draw)
{
    const uint32_t key[2] = {r->control->seed_lo, r->control->seed_hi};
    const uint32_t counter[4] = {update, number, node, (uint32_t)draw};
    return qn_philox(counter, key);
}

uint32_t qn_check_word(const struct qn_reference *r, int64_t number, uint32_t node, int64_t element)
{
    return qn_check_draw(r, r->control->update, (uint32_t)number, node, element / 4)
        .word[element % 4];
}

bool qn_check_keeps(const struct qn_reference *r, int64_t sample, int64_t element, float rate)
{
    const uint32_t word = qn_check_word(r, r->control->sample + sample, r->call->node, element);
    return (float)(word >> 8) * 0x1p-24f >= rate;
}
