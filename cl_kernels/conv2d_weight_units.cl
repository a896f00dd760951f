/* SPDX-License-Identifier: MIT
 *
 * The gradient of the weights of a convolution by matrix units: a product of the gradient D of the
 * result and patches of the image S, summed over all pixels of the micro-batch.
 *
 * A work-group of TEAMS_M x TEAMS_N teams makes EDGE_M output channels x CHANNELS input channels
 * with all taps of these, from one part of the steps. A step is TALL lines of WIDE pixels, as many
 * as a strip has terms. It copies D to one strip, and for each tap of a row what that meets to a
 * strip of its own, of all lines that the taps of a column meet: so a tap's words are those of its
 * column's strip, so many lines further on. Lines are those of all images: line l is row l % period
 * of image l / period, and `period` is so large that what one image meets is no element of the next
 * (src/ops/conv2d_units.c).
 *
 * Options: S_TYPE, D_TYPE, W_TYPE; those of lib/tile.clh
 *   TEAMS_M, TEAMS_N, TILES_M, TEAM_RUNS  a team has so many runs of TILE_N input channels
 *   TALL, WIDE                            WIDE is 8, 16 or 32
 *   EACH_Y, CLASSES_Y                     lines of a class that a step meets, and classes
 *   PITCH_B                               words of a row of the strips of S
 *   TAPS_Y, TAPS_X, STRIDE, DILATION      those of the window, the latter along a line
 *   RUNS, RUNS_S                          1: D's lines, S's lines are whole runs of 8 pixels, which
 *                                         are aligned: they are loaded at once; of S, whose pixels
 *                                         are all met, those from PADDING elements of a piece on
 */
#define TILE_B_ROW PITCH_B
#include "lib/bits.clh"
#include "lib/conv2d.clh"
#include "lib/tile.clh"

#define TEAMS (TEAMS_M * TEAMS_N)
#define GROUP (TEAMS * TILE_LANES)
#define EDGE_M (TEAMS_M * TILES_M * TILE_M)
#define TAPS (TAPS_Y * TAPS_X)
#define TILES_N (TEAM_RUNS * TAPS)
#define CHANNELS (TEAMS_N * TEAM_RUNS * TILE_N)
#define LINES (CLASSES_Y * EACH_Y)
/* Pixels of a piece, and what it has of a line of S: the elements that all taps of these meet. */
#define RUN 8
#define LINE_RUNS (WIDE / RUN)
#define LINE_WORDS (WIDE / UNIT_PACK)
#define SPAN ((RUN - 1) * STRIDE + (TAPS_X - 1) * DILATION + 1)
/* Rows of D that lie word by word, side by side; pieces of both strips, and of a work-item. */
#define ROWS (1 + TILE_PAIRED)
#define PIECES_D (EDGE_M / ROWS * TALL * LINE_RUNS)
#define PIECES_S (CHANNELS * LINES * LINE_RUNS)
#define EACH_D ((PIECES_D + GROUP - 1) / GROUP)
#define EACH_S ((PIECES_S + GROUP - 1) / GROUP)

typedef struct {
#if RUNS
    uint4 row[ROWS];
#else
    BITS(D) row[ROWS][RUN];
#endif
} piece_d;

typedef struct {
#if RUNS_S
    uint4 run;
    BITS(S) beside[SPAN - RUN + 1]; /* before and behind the run; one more than there is */
#else
    BITS(S) v[SPAN];
#endif
} piece_s;

/* Where the pieces of a work-item lie whose step begins in column 0 of its lines, and so many
 * pixels from it to the end of the line, 0 and less of what is not there: the rows of a piece of D,
 * which has `rows` of them or fewer, have one of these each. */
typedef struct {
    const __global BITS(D) * from[EACH_D];
    int left[EACH_D][ROWS];
} aim_d;

/* The same of S, of which the first elements may lie before the line. */
typedef struct {
    const __global BITS(S) * from[EACH_S];
    int width[EACH_S];
} aim_s;

/* The first pixel of a step: row `row` of the lines of an image. */
typedef struct {
    int image, row, column;
} walk;

/* Rows of an image that are less than twice as many as it has are some of the next one's. */
TILE_INLINE void carry(int *row, int rows, int *image)
{
    const bool next = *row >= rows;
    *row -= next ? rows : 0;
    *image += next;
}

/* Row, line and first pixel in the line of piece n of D, and of S, whose row is a channel:
 * neighbours are neighbours in memory. */
TILE_INLINE uint3 place_of(uint n, uint lines)
{
    const uint id = get_local_id(0) + n * GROUP;
    return (uint3)(id / (lines * LINE_RUNS), id / LINE_RUNS % lines, id % LINE_RUNS * RUN);
}

TILE_INLINE bool has_piece(uint n, uint pieces)
{
    return pieces % GROUP == 0 || get_local_id(0) + n * GROUP < pieces;
}

/* `rows` channels of D, of dh x dw, from d on; an image has `image` elements. */
TILE_INLINE void aim_at_d(aim_d *to, const __global BITS(D) * d, walk at, int rows, int batch,
                          ulong image, int dh, int dw, int period)
{
#pragma unroll
    for (uint n = 0; n < EACH_D; n++) {
        const uint3 place = place_of(n, TALL);
        int y = at.row + (int)place.y, number = at.image;
        carry(&y, period, &number);
        const int row = place.x * ROWS;
        const bool exists = has_piece(n, PIECES_D) && number < batch && y < dh;
        to->from[n] = d + number * image + (ulong)row * ((ulong)dh * dw) + (y * dw + (int)place.z);
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            to->left[n][r] = exists && row + (int)r < rows ? dw - (int)place.z : 0;
    }
}

TILE_INLINE void load_d(piece_d held[EACH_D], const aim_d *at, int column, ulong plane)
{
#pragma unroll
    for (uint n = 0; n < EACH_D; n++) {
        const __global BITS(D) *from = at->from[n] + column;
#pragma unroll
        for (uint r = 0; r < ROWS; r++, from += plane) {
            const int left = at->left[n][r] - column;
#if RUNS
            held[n].row[r] = left > 0 ? *(const __global uint4 *)from : (uint4)(0);
#else
#pragma unroll
            for (uint i = 0; i < RUN; i++)
                held[n].row[r][i] = (int)i < left ? from[i] : 0;
#endif
        }
    }
}

/* The words of RUN neighbours. */
static inline uint4 words_of(const ushort *v)
{
    const uint4 low = {v[0], v[2], v[4], v[6]}, high = {v[1], v[3], v[5], v[7]};
    return low | high << 16;
}

TILE_INLINE void store_d(__local uint *strip, const piece_d held[EACH_D])
{
#pragma unroll
    for (uint n = 0; n < EACH_D; n++) {
        const uint3 place = place_of(n, TALL);
        const uint word = place.y * LINE_WORDS + place.z / UNIT_PACK;
        __local uint *to = strip + tile_a_at(place.x * ROWS, word);
        uint4 row[ROWS];
        if (!has_piece(n, PIECES_D))
            break;
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
#if RUNS
            row[r] = held[n].row[r];
#else
            row[r] = words_of(held[n].row[r]);
#endif
#if ROWS == 2
        *(__local uint4 *)to = (uint4)(row[0].x, row[1].x, row[0].y, row[1].y);
        *(__local uint4 *)(to + 4) = (uint4)(row[0].z, row[1].z, row[0].w, row[1].w);
#else
        *(__local uint4 *)to = row[0];
#endif
    }
}

/* `channels` channels of S, of sh x sw, from s on; the first tap of pixel 0 meets element -padding.
 */
TILE_INLINE void aim_at_s(aim_s *to, const __global BITS(S) * s, walk at, int channels, int batch,
                          ulong image, int sh, int sw, int period, int stride_y, int padding_y)
{
#pragma unroll
    for (uint n = 0; n < EACH_S; n++) {
        const uint3 place = place_of(n, LINES);
        int y = (at.row + (int)(place.y % EACH_Y)) * stride_y + (int)(place.y / EACH_Y);
        int number = at.image;
        carry(&y, period * stride_y, &number);
        y -= padding_y;
        const bool exists =
            has_piece(n, PIECES_S) && (int)place.x < channels && number < batch && y >= 0 && y < sh;
        to->from[n] = s + number * image + (ulong)place.x * ((ulong)sh * sw) + y * sw;
        to->width[n] = exists ? sw : 0;
    }
}

TILE_INLINE void load_s(piece_s held[EACH_S], const aim_s *at, int column, int padding)
{
#pragma unroll
    for (uint n = 0; n < EACH_S; n++) {
        const int x = (column + (int)place_of(n, LINES).z) * STRIDE - padding;
        const __global BITS(S) *from = at->from[n] + x;
        const uint width = at->width[n];
#if RUNS_S
        held[n].run =
            (uint)(x + PADDING) < width ? *(const __global uint4 *)(from + PADDING) : (uint4)(0);
#pragma unroll
        for (uint i = 0; i < SPAN - RUN; i++) {
            const uint at_i = i < PADDING ? i : i + RUN;
            held[n].beside[i] = (uint)(x + (int)at_i) < width ? from[at_i] : 0;
        }
#else
#pragma unroll
        for (uint i = 0; i < SPAN; i++)
            held[n].v[i] = (uint)(x + (int)i) < width ? from[i] : 0;
#endif
    }
}

/* Element i of what a piece has of its line. */
TILE_INLINE ushort element_of(const piece_s *held, uint i)
{
#if RUNS_S
    if (i < PADDING)
        return held->beside[i];
    if (i >= PADDING + RUN)
        return held->beside[i - RUN];
    const uint place = i - PADDING, word = place / 2;
    const uint v = word < 2 ? (word == 0 ? held->run.x : held->run.y)
                            : (word == 2 ? held->run.z : held->run.w);
    return place % 2 ? v >> 16 : v & 0xffffu;
#else
    return held->v[i];
#endif
}

TILE_INLINE void store_s(__local uint *strips, const piece_s held[EACH_S])
{
#pragma unroll
    for (uint n = 0; n < EACH_S; n++) {
        const uint3 place = place_of(n, LINES);
        __local uint *to = strips + tile_b_at(place.x, place.y * LINE_WORDS + place.z / UNIT_PACK);
        if (!has_piece(n, PIECES_S))
            break;
#pragma unroll
        for (uint tap = 0; tap < TAPS_X; tap++) {
            ushort v[RUN];
#pragma unroll
            for (uint i = 0; i < RUN; i++)
                v[i] = element_of(&held[n], i * STRIDE + tap * DILATION);
            *(__local uint4 *)(to + tile_b_at(tap * CHANNELS, 0)) = words_of(v);
        }
    }
}

/* From the strips' first word to the first of tile q of a team: its run of channels, its tap.
 * `down` is how many rows of S a tap of a column is further on. */
TILE_INLINE uint tile_at(uint q, uint stride_y, uint down)
{
    const uint tap = q % TAPS, ahead = tap / TAPS_X * down;
    const uint line = ahead % stride_y * EACH_Y + ahead / stride_y;
    return tile_b_at(tap % TAPS_X * CHANNELS + q / TAPS * TILE_N, line * LINE_WORDS);
}

TILE_INLINE void multiply(tile_c sum[TILES_M][TILES_N], const __local uint *rows,
                          const __local uint *columns, uint lane, uint stride_y, uint down)
{
    tile_a a[TILES_M];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
        a[r] = tile_load_a(rows + r * TILE_M * TILE_PITCH_A, lane);
#pragma unroll TILE_UNROLL
    for (uint q = 0; q < TILES_N; q++) {
        const tile_b b = tile_load_b(columns + tile_at(q, stride_y, down), lane);
#pragma unroll TILE_UNROLL
        for (uint r = 0; r < TILES_M; r++)
            tile_multiply(&sum[r][q], a[r], b, lane);
    }
}

/* Work-groups: (tiles of input channels, tiles of output channels x channel group, parts). Part p
 * of the steps goes to copy p of the weights, from w on. The image has `depth` of the weights'
 * `inputs` channels, those from input0 on. */
TILE_KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void
conv2d_weight(__global const TYPE(S) * s, ulong s_at, __global const TYPE(D) * d, ulong d_at,
              __global TYPE(W) * w, ulong w_at, float beta, int batch, int groups, int depth,
              int channels, int sh, int sw, int dh, int dw, int kh, int kw, int stride_y,
              int stride_x, int padding_y, int padding_x, int dilation_y, int dilation_x,
              ulong part_steps, int inputs, int input0, int period, ulong steps)
{
    __local uint4 strip_d[EDGE_M * TILE_PITCH_A / 4], strip_s[TAPS_X * CHANNELS * PITCH_B / 4];
#ifdef QN_TAPS
    stride_y = QN_STRIDE;
    dilation_y = QN_DILATION;
#endif
    const int tiles = (channels + EDGE_M - 1) / EDGE_M, group = get_group_id(1) / tiles;
    const int row0 = (get_group_id(1) - group * tiles) * EDGE_M, input = get_group_id(0) * CHANNELS;
    const uint team = get_local_id(0) / TILE_LANES, lane = get_local_id(0) % TILE_LANES;
    const uint row = team / TEAMS_N * TILES_M * TILE_M,
               column = team % TEAMS_N * TEAM_RUNS * TILE_N;
    const __local uint *rows = (const __local uint *)strip_d + row * TILE_PITCH_A;
    const __local uint *columns = (const __local uint *)strip_s + tile_b_at(column, 0);
    const ulong plane_s = (ulong)sh * sw, plane_d = (ulong)dh * dw;
    const ulong image_s = (ulong)groups * depth * plane_s;
    const ulong image_d = (ulong)groups * channels * plane_d;
    const __global BITS(S) *from_s =
        (const __global BITS(S) *)(s + s_at) + ((ulong)group * depth + input) * plane_s;
    const __global BITS(D) *from_d =
        (const __global BITS(D) *)(d + d_at) + ((ulong)group * channels + row0) * plane_d;
    const bool has_tiles = row0 + (int)row < channels && input + (int)column < depth;
    tile_c sum[TILES_M][TILES_N];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
        tile_clear(sum[r], TILES_N);

    const ulong begin = get_group_id(2) * part_steps, end = min(begin + part_steps, steps);
    const uint across = (dw + WIDE - 1) / WIDE;
    const ulong line = begin / across * TALL;
    walk at = {(int)(line / period), (int)(line % period), (int)(begin % across) * WIDE};
    aim_d aimed_d;
    aim_s aimed_s;
    piece_d held_d[EACH_D];
    piece_s held_s[EACH_S];
    bool is_new = true;
    /* A turn multiplies what the turn before loaded. */
    for (ulong step = begin; step <= end; step++) {
        if (step > begin) {
            barrier(CLK_LOCAL_MEM_FENCE);
            store_d((__local uint *)strip_d, held_d);
            store_s((__local uint *)strip_s, held_s);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (is_new) {
            aim_at_d(&aimed_d, from_d, at, channels - row0, batch, image_d, dh, dw, period);
            aim_at_s(&aimed_s, from_s, at, depth - input, batch, image_s, sh, sw, period, stride_y,
                     padding_y);
        }
        if (step < end) {
            load_d(held_d, &aimed_d, at.column, plane_d);
            load_s(held_s, &aimed_s, at.column, padding_x);
        }
        at.column += WIDE;
        is_new = at.column >= dw;
        if (is_new) {
            at.column = 0;
            at.row += TALL;
            carry(&at.row, period, &at.image);
        }
        if (step > begin && has_tiles)
            multiply(sum, rows, columns, lane, stride_y, dilation_y);
    }

    w += w_at + (get_group_id(2) * (ulong)groups + group) * channels * inputs * TAPS;
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++) {
                const int to_row = row0 + (int)(row + r * TILE_M + tile_row(lane, e));
                const int to = input + (int)(column + q / TAPS * TILE_N + tile_column(lane, e));
                if (to_row >= channels || to >= depth)
                    continue;
                ACC(W, w, ((ulong)to_row * inputs + input0 + to) * TAPS + q % TAPS, beta,
                    sum[r][q].v[e]);
            }
}
