/* SPDX-License-Identifier: MIT
 *
 * The matrix product of matmul_cpu.cl in the tile registers of a CPU's core: same arguments, same
 * tiles of c and blocks of k, other packing. Operands are of bf16 or f32. One of f32 is the sum of
 * two factors of bf16 (lib/tile_factor.clh), each packed and multiplied; not both may be.
 *
 * Packing turns the operands into words (lib/tile_cpu.clh) in squares of QN_V lines by QN_V words,
 * where a line is a row of a or a column of b. Where memory has lines side by side but words are
 * wanted so, or the other way round, a square is transposed. What lies past an edge is 0.
 *
 * Options: A_TYPE, B_TYPE, BIAS_TYPE, C_TYPE; A_T, B_T, MC, NC, KC as in matmul_cpu.cl; QN_V is 16
 *          those of lib/finish_tile.clh
 */
#define UNIT_TYPE bf16
#include "lib/finish_tile.clh"
#include "lib/shuffle.clh"
#include "lib/tile_cpu.clh"
#include "lib/tile_factor.clh"

enum { SIDE = TILES_SIDE, WORDS = KC / 2, SQUARE = QN_V };

#define factors_f32 2
#define factors_bf16 1
#define FACTORS(X) QN_PASTE(factors_, X##_TYPE)

/* Words of whole tiles. */
static inline int words_of(int depth)
{
    return (depth + 2 * TILES_DEPTH - 1) / (2 * TILES_DEPTH) * TILES_DEPTH;
}

static inline int whole_sides(int lines)
{
    return (lines + SIDE - 1) / SIDE * SIDE;
}

/* The bits of factor `part` of each float, as unit_word and unit_rest make them. */
static inline uintv factor_of(floatv v, int part)
{
    const uintv bits = QN_PASTE(as_uint, QN_V)(v);
    if (part == 0)
        return bits >> 16;
    const floatv rest = v - QN_PASTE(as_float, QN_V)(bits & 0xffff0000u);
    return (QN_PASTE(as_uint, QN_V)(rest) + 0x8000u) >> 16;
}

static inline floatv words_along(floatv low, floatv high, int part)
{
    const ushort16 a = convert_ushort16(factor_of(low, part));
    const ushort16 b = convert_ushort16(factor_of(high, part));
    return as_float16((uint16)(as_uint8(a), as_uint8(b)));
}

static inline floatv words_across(floatv even, floatv odd, int part)
{
    return as_float16(factor_of(even, part) | factor_of(odd, part) << 16);
}

static inline uint word_of(float even, float odd, int part)
{
    const float v[2] = {even, odd};
    return part == 0 ? unit_word(v) : unit_rest(v);
}

/* Where a line of an operand lies: its words side by side in memory, or lines side by side. */
#define PLACE(across, pitch, line, term)                                                           \
    ((across) ? (term) * (pitch) + (line) : (line) * (pitch) + (term))

/* Packs rows i .. i + rows - 1 of a, elements l .. l + depth - 1 of each: rows of WORDS words. */
static inline void pack_a(__local uint *pack, __global const TYPE(A) * a, ulong pitch, ulong i,
                          int rows, ulong l, int depth, int part)
{
    const int lines = whole_sides(rows) / SQUARE, squares = lines * (words_of(depth) / SQUARE);
    for (int s = 0; s < squares; s++) { /* in the order of memory */
        const int row = (A_T ? s % lines : s / (squares / lines)) * SQUARE;
        const int word = (A_T ? s / lines : s % (squares / lines)) * SQUARE;
        __local uint *to = pack + row * WORDS + word;
        const int term = 2 * word;
        if (row + SQUARE <= rows && term + 2 * SQUARE <= depth) {
            floatv square[SQUARE];
#pragma unroll
            for (int e = 0; e < SQUARE; e++) {
#if A_T
                const ulong at = (l + term + 2 * e) * pitch + i + row;
                square[e] = words_across(LDV(A, a, at), LDV(A, a, at + pitch), part);
#else
                const ulong at = (i + row + e) * pitch + l + term;
                square[e] = words_along(LDV(A, a, at), LDV(A, a, at + QN_V), part);
#endif
            }
#if A_T
            qn_transpose(square);
#endif
#pragma unroll
            for (int e = 0; e < SQUARE; e++)
                QN_PASTE(vstore, QN_V)(QN_PASTE(as_uint, QN_V)(square[e]), 0, to + e * WORDS);
        } else {
            for (int e = 0; e < SQUARE; e++)
                for (int w = 0; w < SQUARE; w++) {
                    float v[2];
                    for (int h = 0; h < 2; h++) {
                        const int t = term + 2 * w + h;
                        const bool is = row + e < rows && t < depth;
                        v[h] = is ? LD(A, a, PLACE(A_T, pitch, i + row + e, l + t)) : 0.0f;
                    }
                    to[e * WORDS + w] = word_of(v[0], v[1], part);
                }
        }
    }
}

/* Packs a panel: elements l .. l + depth - 1 of SIDE columns of b, from j on, of which `columns`
 * exist: for each word a row of SIDE. */
static inline void pack_b(__local uint *pack, __global const TYPE(B) * b, ulong pitch, ulong j,
                          int columns, ulong l, int depth, int part)
{
    const int lines = SIDE / SQUARE, squares = lines * (words_of(depth) / SQUARE);
    for (int s = 0; s < squares; s++) { /* in the order of memory */
        const int column = (B_T ? s / (squares / lines) : s % lines) * SQUARE;
        const int word = (B_T ? s % (squares / lines) : s / lines) * SQUARE;
        __local uint *to = pack + word * SIDE + column;
        const int term = 2 * word;
        if (column + SQUARE <= columns && term + 2 * SQUARE <= depth) {
            floatv square[SQUARE];
#pragma unroll
            for (int e = 0; e < SQUARE; e++) {
#if B_T
                const ulong at = (j + column + e) * pitch + l + term;
                square[e] = words_along(LDV(B, b, at), LDV(B, b, at + QN_V), part);
#else
                const ulong at = (l + term + 2 * e) * pitch + j + column;
                square[e] = words_across(LDV(B, b, at), LDV(B, b, at + pitch), part);
#endif
            }
#if B_T
            qn_transpose(square);
#endif
#pragma unroll
            for (int e = 0; e < SQUARE; e++)
                QN_PASTE(vstore, QN_V)(QN_PASTE(as_uint, QN_V)(square[e]), 0, to + e * SIDE);
        } else {
            for (int w = 0; w < SQUARE; w++)
                for (int e = 0; e < SQUARE; e++) {
                    float v[2];
                    for (int h = 0; h < 2; h++) {
                        const int t = term + 2 * w + h;
                        const bool is = column + e < columns && t < depth;
                        v[h] = is ? LD(B, b, PLACE(!B_T, pitch, j + column + e, l + t)) : 0.0f;
                    }
                    to[w * SIDE + e] = word_of(v[0], v[1], part);
                }
        }
    }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
matmul_tiles_cpu(__global const TYPE(A) * a, ulong a_at, __global const TYPE(B) * b, ulong b_at,
                 __global const TYPE(BIAS) * bias, ulong bias_at,
                 __global const TYPE(RESIDUAL) * residual, ulong residual_at, __global TYPE(C) * c,
                 ulong c_at, ulong m, ulong n, ulong k, ulong tile_m, ulong tile_n, ulong part_k,
                 float beta, float slope)
{
    __local uint pack_of_a[FACTORS(A)][MC * WORDS];
    __local uint pack_of_b[FACTORS(B)][WORDS * SIDE];
    __local float sum[MC * NC];
    const ulong tiles_m = (m + tile_m - 1) / tile_m, batches = get_num_groups(1) / tiles_m;
    const ulong batch = get_group_id(1) / tiles_m;
    const epilogue how = {beta, slope};
    a += a_at + batch * m * k;
    b += b_at + batch * k * n;
    bias += bias_at;
    residual += residual_at + batch * m * n;
    c += c_at + (get_group_id(2) * batches + batch) * m * n;

    const ulong i = get_group_id(1) % tiles_m * tile_m, j = get_group_id(0) * tile_n;
    const int rows = (int)min(tile_m, m - i), columns = (int)min(tile_n, n - j);
    const ulong begin = get_group_id(2) * part_k, end = min(begin + part_k, k);

    tiles_begin();
    for (ulong l = begin; l < end; l += KC) {
        const int depth = (int)min((ulong)KC, end - l);
        for (int part = 0; part < FACTORS(A); part++)
            pack_a(pack_of_a[part], a, A_T ? m : k, i, rows, l, depth, part);
        for (int column = 0; column < columns; column += SIDE) {
            for (int part = 0; part < FACTORS(B); part++)
                pack_b(pack_of_b[part], b, B_T ? k : n, j + column, columns - column, l, depth,
                       part);
            for (int row = 0; row < rows; row += SIDE) {
                __local float *to = sum + row * NC + column;
                tiles sums;
                if (l == begin)
                    tiles_clear(&sums);
                else
                    tiles_load(&sums, to, NC);
                for (int part = 0; part < FACTORS(A) * FACTORS(B); part++)
                    tiles_multiply(&sums, pack_of_a[part % FACTORS(A)] + row * WORDS, WORDS,
                                   pack_of_b[part / FACTORS(A)], words_of(depth));
                tiles_store(&sums, to, NC);
            }
        }
    }
    tiles_end();

    const tile_place place = {i * n + j, n, rows, columns, j, begin == 0};
    finish_tile(c, residual, bias, place, how, sum, NC);
}
