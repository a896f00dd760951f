/* SPDX-License-Identifier: MIT
 *
 * Fills memory with a 32-bit word. A work-group of 64 fills 2048 neighbouring words; the `tail`
 * bytes (0 to 3) after the last whole word take the low bytes of the word.
 */
#define QN_GROUP_WORDS 2048

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
fill(__global uint *x, ulong x_at, ulong n, uint tail, uint word)
{
    x += x_at;
    const ulong first = (ulong)get_group_id(0) * QN_GROUP_WORDS + get_local_id(0) * 4;
    for (uint j = 0; j < QN_GROUP_WORDS; j += 256) {
        const ulong i = first + j;
        if (i + 4 <= n)
            vstore4((uint4)(word), 0, x + i);
        else
            for (ulong k = i; k < n; k++)
                x[k] = word;
    }
    if (get_global_id(0) == 0)
        for (uint k = 0; k < tail; k++)
            ((__global uchar *)(x + n))[k] = (uchar)(word >> (8 * k));
}
