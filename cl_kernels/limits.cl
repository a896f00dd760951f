/* SPDX-License-Identifier: MIT
 *
 * What a device bears: as much local memory as a kernel declares, and long loops; and whether fma()
 * is an instruction.
 *
 * Options: WORDS of local memory, GROUP work-items, which divide WORDS
 */

/* c[i] = the sum of what the work-items that lie opposite wrote. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void local_words(__global uint *c,
                                                                             ulong c_at)
{
    __local uint words[WORDS];
    const uint id = get_local_id(0);
    uint sum = 0;
    for (uint i = id; i < WORDS; i += GROUP)
        words[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < WORDS; i += GROUP)
        sum += words[WORDS - 1 - i];
    c[c_at + id] = sum;
}

/* c[0] = x after `steps` steps of Marsaglia's xorshift, of which no compiler makes fewer. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void long_loop(__global uint *c, ulong c_at,
                                                                       uint x, uint steps)
{
    for (uint i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    c[c_at] = x;
}

/* c (8) = x + i, i = 0 .. 7, after `steps` steps to half and one, in bits. */
#define HALVE(name, half_and_one)                                                                  \
    __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void name(__global uint *c,            \
                                                                      ulong c_at, float x,         \
                                                                      uint steps)                  \
    {                                                                                              \
        const float8 half_ = (float8)(0.5f), one = (float8)(1.0f);                                 \
        float8 v = x + (float8)(0, 1, 2, 3, 4, 5, 6, 7);                                           \
        for (uint i = 0; i < steps; i++)                                                           \
            v = half_and_one;                                                                      \
        vstore8(as_uint8(v), 0, c + c_at);                                                         \
    }
HALVE(halve_fused, fma(v, half_, one))
HALVE(halve_apart, v * half_ + one)
