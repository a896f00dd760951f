/* SPDX-License-Identifier: MIT
 *
 * One tile whose strips the device copies by itself, to find out whether it does and loads
 * fragments from where they lie (lib/tile_copy.clh).
 *
 * Options: those of lib/tile.clh, with factors of 16 bits
 *          ALONG_K  1: rows of a and columns of b lie one after the other; 0: terms do
 */
#define GROUP TILE_LANES
#define STAGES 2
#define TILE_COPIED 1
#define TILE_EDGE_A TILE_M
#define TILE_EDGE_B TILE_N
#define TILE_ALONG_A ALONG_K
#define TILE_ALONG_B ALONG_K

#include "lib/tile_copy.clh"

#define LIKE_A ((strip){TILE_M, STRIP_TYPE(UNIT_TYPE), ALONG_K, false, true, false})
#define LIKE_B ((strip){TILE_N, STRIP_TYPE(UNIT_TYPE), ALONG_K, false, false, false})

/* c (TILE_M, TILE_N) = a * b, over TILE_DEPTH words. */
TILE_KERNEL __attribute__((reqd_work_group_size(TILE_LANES, 1, 1))) __kernel void
tile_copy(__global const uint *a, ulong a_at, __global const uint *b, ulong b_at, __global float *c,
          ulong c_at)
{
    __local uint4 strip_a[COPY_WORDS(TILE_M) / 4], strip_b[COPY_WORDS(TILE_N) / 4];
    __local uint *rows = (__local uint *)strip_a, *columns = (__local uint *)strip_b;
    const __global uchar *at_a[COPY_EACH(TILE_M)], *at_b[COPY_EACH(TILE_N)];
    const uint lane = get_local_id(0);
    copy_queue queue = {0};
    tile_c sum;
    copy_aim(at_a, LIKE_A, (strip_source){(const __global uchar *)(a + a_at), TILE_M, COPY_TERMS},
             0, 0);
    copy_aim(at_b, LIKE_B, (strip_source){(const __global uchar *)(b + b_at), TILE_N, COPY_TERMS},
             0, 0);
    copy_strip(&queue, rows, LIKE_A, copy_seat(LIKE_A), at_a, 0);
    copy_strip(&queue, columns, LIKE_B, copy_seat(LIKE_B), at_b, 0);
    copy_commit(&queue);
    copy_wait(&queue);
    barrier(CLK_LOCAL_MEM_FENCE);

    tile_clear(&sum, 1);
    tile_multiply(&sum, tile_load_a(rows + tile_seat_a(lane), lane),
                  tile_load_b(columns + tile_seat_b(lane), lane), lane);
    for (uint i = 0; i < TILE_EACH; i++)
        c[c_at + tile_row(lane, i) * TILE_N + tile_column(lane, i)] = sum.v[i];
}
