/* SPDX-License-Identifier: MIT
 *
 * One product in the tile registers of a CPU's core, to find out whether they compute the right
 * numbers.
 *
 * Options: those of lib/tile_cpu.clh
 */
#include "lib/tile_cpu.clh"

/* c (TILES_SIDE, TILES_SIDE) = a * b, where a has TILES_SIDE rows of words and b as many columns.
 */
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
tile_cpu(__global const uint *a, ulong a_at, __global const uint *b, ulong b_at, __global float *c,
         ulong c_at)
{
    __local uint rows[TILES_SIDE * TILES_DEPTH], columns[TILES_DEPTH * TILES_SIDE];
    __local float sum[TILES_SIDE * TILES_SIDE];
    for (int i = 0; i < TILES_SIDE; i++)
        for (int w = 0; w < TILES_DEPTH; w++) {
            rows[i * TILES_DEPTH + w] = a[a_at + i * TILES_DEPTH + w];
            columns[w * TILES_SIDE + i] = b[b_at + i * TILES_DEPTH + w];
        }
    tiles sums;
    tiles_begin();
    tiles_clear(&sums);
    tiles_multiply(&sums, rows, TILES_DEPTH, columns, TILES_DEPTH);
    tiles_store(&sums, sum, TILES_SIDE);
    tiles_end();
    for (int i = 0; i < TILES_SIDE * TILES_SIDE; i++)
        c[c_at + i] = sum[i];
}
