/* SPDX-License-Identifier: MIT
 *
 * One tile by itself, to find out whether a device's matrix units compute the right numbers, and
 * whether the lanes of a row meet; factors by themselves, and tiles that turn into a strip.
 *
 * Options: those of lib/tile.clh
 */
#include "lib/tile_rows.clh"

#if ROWS_TOGETHER && UNIT_PACK == 2
/* Makes c wrong if it does not lie in `rows` as factors. */
static inline void check_put(tile_c *c, const __local uint *rows, uint lane)
{
    for (uint i = 0; i < TILE_EACH; i++) {
        const float v[UNIT_PACK] = {c->v[i], 0.0f};
        const uint at = tile_a_at(tile_row(lane, i), tile_column(lane, i) / UNIT_PACK);
        const uint part = tile_column(lane, i) % UNIT_PACK;
        if (((const __local ushort *)rows)[at * UNIT_PACK + part] != (ushort)unit_near(v))
            c->v[i] = NAN;
    }
}
#endif

/* The largest of the lane's own elements of each row, and their sum. */
static inline void own_numbers(const tile_c *c, float most[TILE_ROWS], float all[TILE_ROWS])
{
    for (uint i = 0; i < TILE_EACH; i++) {
        const uint r = i / TILE_SIDE;
        const bool first = i % TILE_SIDE == 0;
        most[r] = first ? c->v[i] : fmax(most[r], c->v[i]);
        all[r] = first ? c->v[i] : all[r] + c->v[i];
    }
}

/* c (TILE_M, TILE_N) = a * b, where a has TILE_M rows of words and b TILE_N columns of words; after
 * it the largest number of each row, and the sum of each. */
TILE_KERNEL __attribute__((reqd_work_group_size(TILE_LANES, 1, 1))) __kernel void
tile(__global const uint *a, ulong a_at, __global const uint *b, ulong b_at, __global float *c,
     ulong c_at)
{
    __local uint4 strip_a[TILE_M * TILE_PITCH_A / 4], strip_b[TILE_N * TILE_PITCH_B / 4];
    __local uint *rows = (__local uint *)strip_a, *columns = (__local uint *)strip_b;
    __local uint4 meeting[(TILE_M * ROWS_PITCH + 3) / 4];
    const meeting_rows meet = {(__local uint *)meeting, 0, 0};
    const uint lane = get_local_id(0);
    for (uint w = lane; w < TILE_M * TILE_DEPTH; w += TILE_LANES)
        rows[tile_a_at(w / TILE_DEPTH, w % TILE_DEPTH)] = a[a_at + w];
    for (uint w = lane; w < TILE_N * TILE_DEPTH; w += TILE_LANES)
        columns[tile_b_at(w / TILE_DEPTH, w % TILE_DEPTH)] = b[b_at + w];
    barrier(CLK_LOCAL_MEM_FENCE);

    tile_c sum;
    for (uint i = 0; i < TILE_EACH; i++)
        sum.v[i] = 0.0f;
    tile_multiply(&sum, tile_load_a(rows, lane), tile_load_b(columns, lane), lane);
#if ROWS_TOGETHER && UNIT_PACK == 2
    barrier(CLK_LOCAL_MEM_FENCE);
    dpas_put(rows, &sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    check_put(&sum, rows, lane);
#endif
    for (uint i = 0; i < TILE_EACH; i++)
        c[c_at + tile_row(lane, i) * TILE_N + tile_column(lane, i)] = sum.v[i];

    float most[TILE_ROWS], all[TILE_ROWS];
    own_numbers(&sum, most, all);
    rows_put(meet, most, lane, rows_maximum);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = 0; r < TILE_ROWS; r++)
        c[c_at + TILE_M * TILE_N + tile_row(lane, r * TILE_SIDE)] =
            row_maximum(most[r], meet, lane, r);
    barrier(CLK_LOCAL_MEM_FENCE);
    rows_put(meet, all, lane, rows_sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = 0; r < TILE_ROWS; r++)
        c[c_at + TILE_M * (TILE_N + 1) + tile_row(lane, r * TILE_SIDE)] =
            row_sum(all[r], meet, lane, r);
}

#if QN_PASTE(unit_splits_, UNIT_TYPE)
/* Each UNIT_PACK of the floats v as one word and one of what it leaves. */
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
split(__global const float *v, ulong v_at, __global uint *words, ulong words_at,
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

#if TILE_TURNS
#define TERMS (TILE_DEPTH * UNIT_PACK)
/* c (TILE_M, TILE_N) = x (TILE_M, TERMS) * b, where tiles of x turn into a strip and b has TILE_N
 * columns of words. */
TILE_KERNEL __attribute__((reqd_work_group_size(TILE_LANES, 1, 1))) __kernel void
turn(__global const float *x, ulong x_at, __global const uint *b, ulong b_at, __global float *c,
     ulong c_at)
{
    __local uint4 strip_b[TILE_N * TILE_PITCH_B / 4];
    __local uint *columns = (__local uint *)strip_b;
    const uint lane = get_local_id(0);
    tile_c tiles[TERMS / TILE_N], sum;
    for (uint i = 0; i < TERMS / TILE_N * TILE_EACH; i++) {
        const uint q = i / TILE_EACH, e = i % TILE_EACH;
        const uint term = tile_turned(q * TILE_N + tile_column(lane, e));
        tiles[q].v[e] = x[x_at + tile_row(lane, e) * TERMS + term];
    }
    for (uint w = lane; w < TILE_N * TILE_DEPTH; w += TILE_LANES)
        columns[tile_b_at(w / TILE_DEPTH, w % TILE_DEPTH)] = b[b_at + w];
#if TILE_UNITS
    const tile_a a = fragment_turn(tiles);
#else
    __local uint4 strip_a[TILE_M * TILE_PITCH_A / 4];
    fragment_store_a((__local uint *)strip_a, fragment_turn(tiles), lane);
    const tile_a a = tile_load_a((const __local uint *)strip_a, lane);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    tile_clear(&sum, 1);
    tile_multiply(&sum, a, tile_load_b(columns, lane), lane);
    for (uint i = 0; i < TILE_EACH; i++)
        c[c_at + tile_row(lane, i) * TILE_N + tile_column(lane, i)] = sum.v[i];
}
#endif
