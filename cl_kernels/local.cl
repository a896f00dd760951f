/* SPDX-License-Identifier: MIT
 *
 * Whether a work-group has as much local memory as a kernel declares.
 *
 * Options: WORDS of it, GROUP work-items, which divide WORDS
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
