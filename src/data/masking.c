/* SPDX-License-Identifier: MIT */
#include "data/masking.h"
#include "base/random.h"

/* Keep these numbers apart from all others of the same seed. */
static const uint64_t CHOICE = UINT64_C(0x6d61736b00000000), PLACE = UINT64_C(0x66696c6c00000000);
/* Samples are below 2^32, positions below 2^31. */
enum { POSITION_BITS = 31 };
/* Of ten chosen tokens. */
enum { MASKED = 8, RANDOM = 1, CHOSEN = 10 };

/* In the place of a chosen token. The remainders of 32 bits favour no token by more than 2^-8 of
 * its share, in a vocabulary of 2^24; of ten ways none by more than 2^-28. */
static int32_t replace(const struct qn_masking *masking, int32_t token, uint64_t bits)
{
    const uint64_t way = (bits >> 32) % CHOSEN;
    if (way < MASKED)
        return (int32_t)masking->mask;
    return way < MASKED + RANDOM ? (int32_t)((bits & UINT32_MAX) % (uint64_t)masking->classes)
                                 : token;
}

void qn_masking_apply(const struct qn_masking *masking, const struct qn_draw *draw, int32_t *tokens,
                      int32_t *labels, int64_t count)
{
    const uint64_t sample = (uint64_t)draw->sample << POSITION_BITS, epoch = (uint64_t)draw->epoch;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t index = sample + (uint64_t)i;
        labels[i] = QN_IGNORED_LABEL;
        if (tokens[i] == masking->spared ||
            qn_random_uniform(draw->seed, CHOICE + epoch, index) >= masking->probability)
            continue;
        labels[i] = tokens[i];
        tokens[i] = replace(masking, tokens[i], qn_random_bits(draw->seed, PLACE + epoch, index));
    }
}
