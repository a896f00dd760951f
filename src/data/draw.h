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

static inline uint64_t qn_draw_index(const struct qn_draw *draw, const struct qn_stream *stream,
                                     int which)
{
    return (uint64_t)draw->sample * (uint64_t)stream->numbers + (uint64_t)which;
}

/* Number `which` of a stream: 64 bits; uniform in [least, most); from a symmetric beta
 * distribution. */
static inline uint64_t qn_draw_bits(const struct qn_draw *draw, const struct qn_stream *stream,
                                    int which)
{
    return qn_random_bits(draw->seed, stream->name + (uint64_t)draw->epoch,
                          qn_draw_index(draw, stream, which));
}

static inline double qn_draw_within(const struct qn_draw *draw, const struct qn_stream *stream,
                                    int which, double least, double most)
{
    return least + (most - least) * qn_random_uniform(draw->seed,
                                                      stream->name + (uint64_t)draw->epoch,
                                                      qn_draw_index(draw, stream, which));
}

static inline double qn_draw_beta(const struct qn_draw *draw, const struct qn_stream *stream,
                                  int which, double alpha)
{
    return qn_random_beta(draw->seed, stream->name + (uint64_t)draw->epoch,
                          qn_draw_index(draw, stream, which), alpha);
}

/* In [0, most]: the remainder of 64 bits favours no number by more than 2^-32 of its share. */
static inline int qn_draw_upto(const struct qn_draw *draw, const struct qn_stream *stream,
                               int which, int most)
{
    return (int)(qn_draw_bits(draw, stream, which) % ((uint64_t)most + 1));
}

#endif
