/* SPDX-License-Identifier: MIT
 *
 * The weights of a convolution as words of factors for matrix units, so that conv2d_image_units.cl
 * copies 128 bits at a time, whatever their type and order: for each channel group, strip of
 * 2 * TILE_DEPTH source channels and tap the words of all rows (channels made) in the order in
 * which local memory has them (lib/tile_fragment.clh), but for its gaps; then their rests, where
 * weights are split. What is no weight is 0: rows past the last, channels past those of a source.
 *
 * Factors of f16 have fewer exponents than weights of f32, and lose what is below 2^-24. So each
 * row has a scale, which is found first: a power of 2 by which weights are divided, so that the
 * largest is 2^14 or more and below 2^15, and by which the row's sums are multiplied.
 *
 * Options: W_TYPE; QN_WG, the work-items of a group; those of lib/tile.clh
 *   SPLIT   1: weights have more bits than a factor
 *   SCALED  1: the scales of all channel groups lie in front of the words
 */
#include "lib/reduce.clh"
#include "lib/tile.clh"

/* Rows that lie word by word, side by side; factors of a vector of words. */
#define ROWS (1 + TILE_PAIRED)
#define FACTORS (4 * UNIT_PACK)
#define STRIP_CHANNELS (TILE_DEPTH * UNIT_PACK)

/* Factor e of UNIT_PACK of word `word` of a row is a channel of the source: the first `front` of
 * `depth` channels have strips of their own. -1: of none. */
static inline int channel_of(uint strip, uint word, uint e, int front, int depth)
{
    const int strips = (front + STRIP_CHANNELS - 1) / STRIP_CHANNELS;
    const bool second = (int)strip >= strips;
    const int own = ((int)strip - (second ? strips : 0)) * STRIP_CHANNELS + word * UNIT_PACK + e;
    return own < (second ? depth - front : front) ? own + (second ? front : 0) : -1;
}

/* Scales: 2^-14 of the largest power of 2 that is not above any weight of the row. */
static inline float scale_of(float largest)
{
    return as_float((uint)max((int)(as_uint(largest) >> 23) - 14, 1) << 23);
}

/* 1 / scale, exactly. */
static inline float unscale(float scale)
{
    return as_float(0x7f000000u - as_uint(scale));
}

/* Work-groups: (rows, channel groups), of which `pitch` have room. Weight (row, channel, tap) as
 * below. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
conv2d_scales(__global const TYPE(W) * w, ulong w_at, __global float *to, ulong to_at, int pitch,
              int depth, int taps, ulong first, ulong group_step, ulong row_step, ulong term_step)
{
    __local float part[QN_WG];
    const uint row = get_group_id(0), group = get_group_id(1), terms = (uint)depth * taps;
    w += w_at + first + group * group_step + row * row_step;
    float most = 0.0f;
    for (uint i = get_local_id(0); i < terms; i += QN_WG) {
        const uint channel = i / taps;
        most = fmax(most, fabs(LD(W, w, channel * term_step + (i - channel * taps))));
    }
    most = qn_group_max(most, part);
    if (get_local_id(0) == 0)
        to[to_at + group * (uint)pitch + row] = scale_of(most);
}

/* Work-items: (vectors of a strip's rows, strips x taps, channel groups). Weight (row, channel,
 * tap) of a group is first + group * group_step + row * row_step + channel * term_step + tap. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
conv2d_pack(__global const TYPE(W) * w, ulong w_at, __global float *to, ulong to_at, int rows,
            int depth, int front, int taps, ulong first, ulong group_step, ulong row_step,
            ulong term_step)
{
    const uint vector = get_global_id(0), vectors = get_global_size(0);
    const uint strip = get_global_id(1) / taps, tap = get_global_id(1) - strip * taps;
    const uint line = vector / (4 * ROWS), place = vector % (4 * ROWS) * 4;
    const ulong at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * (1 + SPLIT);
    const uint pitch = vectors / 4;
    const __global float *scales = to + to_at + get_global_id(2) * pitch;
    __global uint4 *words =
        (__global uint4 *)(to + to_at + (SCALED ? get_global_size(2) * pitch : 0)) + at * vectors +
        vector;
    uint word[4], rest[4];
    w += w_at + first + get_global_id(2) * group_step + tap;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        const int row = line * ROWS + (place + i) % ROWS;
        const float unit = SCALED && row < rows ? unscale(scales[row]) : 1.0f;
        float v[UNIT_PACK];
#pragma unroll
        for (uint e = 0; e < UNIT_PACK; e++) {
            const int channel = channel_of(strip, (place + i) / ROWS, e, front, depth);
            v[e] = row < rows && channel >= 0
                       ? LD(W, w, row * row_step + channel * term_step) * unit
                       : 0.0f;
        }
        word[i] = unit_word(v);
        rest[i] = 0;
#if SPLIT
        rest[i] = unit_rest(v);
#endif
    }
    words[0] = vload4(0, word);
    if (SPLIT)
        words[vectors] = vload4(0, rest);
}
