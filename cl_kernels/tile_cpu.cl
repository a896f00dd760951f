/* SPDX-License-Identifier: MIT
 *
 * One product in the tiles of a CPU's core, to find out whether they compute the right numbers, and
 * how long its dot products take.
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

#if QN_MATRIX_UNITS & DOTS_UNIT

enum { RATE_SUMS = 8, RATE_TURNS = 128, RATE_ROUNDS = 16 };

static inline ulong ticks(void)
{
    uint low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high));
    return (ulong)high << 32 | low;
}

/* A function: the least ticks that so many turns of an instruction took. */
#define LEAST_TICKS(name, instruction, turns)                                                      \
    static inline ulong name(void)                                                                 \
    {                                                                                              \
        float16 sum[RATE_SUMS], factor = 0.0f;                                                     \
        ulong least = ULONG_MAX;                                                                   \
        for (int e = 0; e < RATE_SUMS; e++)                                                        \
            sum[e] = 0.0f;                                                                         \
        for (int round = 0; round < RATE_ROUNDS; round++) {                                        \
            const ulong begin = ticks();                                                           \
            for (int turn = 0; turn < (turns); turn++)                                             \
                _Pragma("unroll") for (int e = 0; e < RATE_SUMS; e++)                              \
                    __asm__ volatile(instruction " %1, %1, %0" : "+v"(sum[e]) : "v"(factor));      \
            least = min(least, ticks() - begin);                                                   \
        }                                                                                          \
        return least;                                                                              \
    }
LEAST_TICKS(ticks_of_dots, "vdpbf16ps", RATE_TURNS)
LEAST_TICKS(ticks_of_f32, "vfmadd231ps", 2 * RATE_TURNS)

/* c (2): ticks that as many multiply-adds take, in dot products and in f32. */
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void dots_rate(__global float *c,
                                                                       ulong c_at)
{
    c[c_at] = (float)ticks_of_dots();
    c[c_at + 1] = (float)ticks_of_f32();
}

#endif
