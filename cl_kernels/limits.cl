/* SPDX-License-Identifier: MIT
 *
 * What a device bears: as much local memory as a kernel declares, and long loops.
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
