/* SPDX-License-Identifier: MIT
 *
 * The random numbers of a sample: functions of (seed, epoch, sample), so that no cycle, micro-batch
 * or thread has a part in them.
 * Thread-safety: Safe.
 */
#ifndef QN_DATA_DRAW_H
#define QN_DATA_DRAW_H

#include "base/random.h"

#include <quern/data.h>

/* What is drawn for one purpose: its name in the upper 32 bits keeps it apart from all else of the
 * same seed; each sample has so many numbers of it. */
struct qn_stream {
    uint64_t name;
    int numbers;
};

static inline uint64_t qn_draw_bits(const struct qn_draw *draw, const struct qn_stream *stream,
                                    int which)
{
    return qn_random_bits(draw->seed, stream->name + (uint64_t)draw->epoch,
                          (uint64_t)draw->sample * (uint64_t)stream->numbers + (uint64_t)which);
}

/* In [least, most). */
static inline double qn_draw_within(const struct qn_draw *draw, const struct qn_stream *stream,
                                    int which, double least, double most)
{
    const uint64_t bits = qn_draw_bits(draw, stream, which);
    return least + (most - least) * ((double)(bits >> 11) * 0x1p-53);
}

/* In [0, most]: the remainder of 64 bits favours no number by more than 2^-32 of its share. */
static inline int qn_draw_upto(const struct qn_draw *draw, const struct qn_stream *stream,
                               int which, int most)
{
    return (int)(qn_draw_bits(draw, stream, which) % ((uint64_t)most + 1));
}

#endif
