/* SPDX-License-Identifier: MIT
 *
 * One tile by itself, to find out whether a device's matrix units compute the right numbers; and
 * factors by themselves.
 *
 * Options: those of lib/tile.clh
 */
#include "lib/tile.clh"

enum { PITCH = TILE_WORDS + 1 };

static inline void copy(__local uint *to, __global const uint *from, uint rows)
{
    for (uint w = get_local_id(0); w < rows * TILE_WORDS; w += TILE_LANES)
        to[w / TILE_WORDS * PITCH + w % TILE_WORDS] = from[w];
}

/* c (TILE_M, TILE_N) = a * b, where a has TILE_M rows of words and b TILE_N columns of words. In
 * `held` each lane leaves what it holds, or would hold: words of a, words of b, elements of c. */
__attribute__((reqd_work_group_size(TILE_LANES, 1, 1))) __kernel void
tile(__global const uint *a, ulong a_at, __global const uint *b, ulong b_at, __global float *c,
     ulong c_at, __global uint *held, ulong held_at)
{
    __local uint strip_a[TILE_M * PITCH], strip_b[TILE_N * PITCH];
    const uint lane = get_local_id(0);
    copy(strip_a, a + a_at, TILE_M);
    copy(strip_b, b + b_at, TILE_N);
    barrier(CLK_LOCAL_MEM_FENCE);

    tile_c sum = {{0.0f, 0.0f, 0.0f, 0.0f}};
    tile_multiply(&sum, tile_load_a(strip_a, PITCH, lane), tile_load_b(strip_b, PITCH, lane), lane);

    for (uint i = 0; i < TILE_EACH; i++)
        c[c_at + tile_row(lane, i) * TILE_N + tile_column(lane, i)] = sum.v[i];
    const fragment_a mine_a = fragment_load_a(strip_a, PITCH, lane);
    const fragment_b mine_b = fragment_load_b(strip_b, PITCH, lane);
    held += held_at + lane * (4 + 2 + TILE_EACH);
    for (uint i = 0; i < 4; i++)
        held[i] = mine_a.v[i];
    for (uint i = 0; i < 2; i++)
        held[4 + i] = mine_b.v[i];
    for (uint i = 0; i < TILE_EACH; i++)
        held[4 + 2 + i] = as_uint(sum.v[i]);
}

#if QN_PASTE(unit_splits_, UNIT_TYPE)
/* Each UNIT_PACK of the floats v as one word and one of what it leaves. */
__kernel void split(__global const float *v, ulong v_at, __global uint *words, ulong words_at,
                    __global uint *rests, ulong rests_at)
{
    const uint i = get_global_id(0);
    float mine[UNIT_PACK];
    for (uint e = 0; e < UNIT_PACK; e++)
        mine[e] = v[v_at + i * UNIT_PACK + e];
    words[words_at + i] = unit_word(mine);
    rests[rests_at + i] = unit_rest(mine);
}
#endif
