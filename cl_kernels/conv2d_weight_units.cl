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
 * Steps go down the lines of all images and then to the next columns, or along a line and then to
 * the next lines: whichever are more in a row, for which a work-item carries on where its pieces
 * lie. These are in one line, from one column on, of several channels.
 *
 * Options: S_TYPE, D_TYPE, both of 16 bits; W_TYPE; those of lib/tile.clh
 *   TEAMS_M, TEAMS_N, TILES_M, TEAM_RUNS  a team has so many runs of TILE_N input channels
 *   WALK                                  0: steps go along, 1: down, 2: down images of one line
 *   TALL, WIDE                            WIDE is 8, 16 or 32
 *   EACH_Y, CLASSES_Y                     lines of a class that a step meets, and classes
 *   PITCH_B                               words of a row of the strips of S
 *   TAPS_Y, TAPS_X                        those of the window
 *   STRIDE, DILATION, PADDING             along a line
 *   VECTOR_D, VECTOR_S                    neighbours of a line that are aligned, 8, 4, 2 or 1, and
 *                                         so are loaded at once; of S more than 1 where taps meet
 *                                         all elements from PADDING of a piece on
 */
#define TILE_B_ROW PITCH_B
#include "lib/conv2d.clh"
#include "lib/tile.clh"

#define TEAMS (TEAMS_M * TEAMS_N)
#define GROUP (TEAMS * TILE_LANES)
#define EDGE_M (TEAMS_M * TILES_M * TILE_M)
#define TAPS (TAPS_Y * TAPS_X)
#define TILES_N (TEAM_RUNS * TAPS)
#define CHANNELS (TEAMS_N * TEAM_RUNS * TILE_N)
#define LINES (CLASSES_Y * EACH_Y)
/* Pixels of a piece, and what it has of a line of S: the elements that all taps of these meet. They
 * are some that may lie before the line, those that are loaded as vectors, and others. */
#define RUN 8
#define LINE_RUNS (WIDE / RUN)
#define LINE_WORDS (WIDE / UNIT_PACK)
#define SPAN ((RUN - 1) * STRIDE + (TAPS_X - 1) * DILATION + 1)
#define BEFORE (PADDING < SPAN ? PADDING : SPAN)
#define INSIDE (VECTOR_S > 1 ? RUN * STRIDE : SPAN - BEFORE)
#define BEHIND (BEFORE + INSIDE < SPAN ? SPAN - BEFORE - INSIDE : 0)
/* Rows of D that lie word by word, side by side; seats, which are the pieces of such rows and of a
 * channel of S; rows and channels that the group copies at once, and how often it does. */
#define ROWS (1 + TILE_PAIRED)
#define SEATS_D (TALL * LINE_RUNS)
#define SEATS_S (LINES * LINE_RUNS)
#define ONCE_D (GROUP / SEATS_D)
#define ONCE_S (GROUP / SEATS_S)
#define EACH_D ((EDGE_M / ROWS + ONCE_D - 1) / ONCE_D)
#define EACH_S ((CHANNELS + ONCE_S - 1) / ONCE_S)
/* Runs of neighbours are held as words or, of vector 1, as elements: only what uses them waits for
 * them. The layouts of dpas leave no registers for that. */
#define HAS_SINGLES (TILE_LAYOUT_NUMBER < tile_layout_dpas8)
#if VECTOR_D > 1 || !HAS_SINGLES
typedef uint run_d[RUN / 2];
#define load_run_d(run, from, left) load_words(run, from, left, RUN, VECTOR_D)
#define element_d(run, i) word_element(run, i)
#else
typedef uint run_d[RUN];
#define load_run_d(run, from, left) load_singles(run, from, left, RUN)
#define element_d(run, i) (as_ushort2((run)[i]).x)
#endif
#if VECTOR_S > 1 || !HAS_SINGLES
typedef uint run_s[INSIDE / 2 + 1];
#define load_run_s(run, from, left) load_words(run, from, left, INSIDE, VECTOR_S)
#define element_s(run, i) word_element(run, i)
#else
typedef uint run_s[INSIDE + 1];
#define load_run_s(run, from, left) load_singles(run, from, left, INSIDE)
#define element_s(run, i) (as_ushort2((run)[i]).x)
#endif

typedef struct {
    run_d row[ROWS];
} piece_d;

typedef struct {
    uint before[BEFORE + 1], behind[BEHIND + 1];
    run_s inside;
} piece_s;

/* Planes of an operand: elements of an image; its lines, and elements of a line; lines from an
 * image's first to the next one's, of which the first `above` are none of the plane; those of all
 * images; lines, or elements of a line, from a step to the next. */
typedef struct {
    ulong image;
    int height, width, period, above, lines, move;
} planes;

/* Where pieces lie: from element x of line y of an image on, which is `first` elements behind
 * `from`. Of the steps in a row those from number `end` on have none. */
typedef struct {
    const __global ushort *from;
    int first, x, y, end;
} aim;

/* Line l of those of all images, for so many steps in a row. */
TILE_INLINE aim aim_at(const __global ushort *from, planes of, int x, int l, int steps)
{
    const int image = l / of.period, y = l - image * of.period - of.above;
    const int down = (of.lines - l + of.move - 1) / of.move, along = l < of.lines ? steps : 0;
    const aim at = {from + image * of.image + x, y * of.width, x, y,
                    WALK > 0 ? min(down, steps) : along};
    return at;
}

TILE_INLINE void advance(aim *at, planes of)
{
#if WALK == 0
    at->x += of.move;
    at->first += of.move;
#else
    const bool next = WALK == 2 || at->y + of.move >= of.period - of.above;
    at->y += of.move - (next ? of.period : 0);
    at->from += next ? of.image : 0;
    at->first = at->y * of.width;
#endif
}

/* Elements from x on that the line has; 0 where there is no such line. */
TILE_INLINE int left_of(aim at, planes of, int step)
{
    return (uint)at.y < (uint)of.height && step < at.end ? of.width - at.x : 0;
}

/* What the aim has of a row or channel that begins so many elements behind the first. Along a line
 * `first` moves, and the sum with `begin` is no constant: the bytes of the latter are. */
TILE_INLINE const __global ushort *row_of(aim at, int begin)
{
#if WALK == 0
    const __global uchar *first = (const __global uchar *)(at.from + at.first);
    return (const __global ushort *)(first + 2 * (uint)begin);
#else
    return at.from + (at.first + begin);
#endif
}

/* Where a seat is in a step: line, first pixel in it, and word of a row of the strip. */
TILE_INLINE int line_of(uint seat)
{
    return seat / LINE_RUNS;
}

TILE_INLINE int pixel_of(uint seat)
{
    return seat % LINE_RUNS * RUN;
}

TILE_INLINE uint word_of(uint seat)
{
    return line_of(seat) * LINE_WORDS + pixel_of(seat) / UNIT_PACK;
}

/* Where the rows or channels of a work-item begin, `each` in all and `once` x `rows` apart, of
 * planes of `plane` elements. Past the last one of `count` it is that: nobody keeps its sums. */
TILE_INLINE void begin_rows(int *begins, uint first, uint each, uint once, uint rows, int count,
                            int plane)
{
#pragma unroll
    for (uint n = 0; n < each; n++)
#pragma unroll
        for (uint r = 0; r < rows; r++)
            begins[n * rows + r] = min((int)((first + n * once) * rows + r), count - 1) * plane;
}

/* `count` neighbours, zeros from `left` on; so many at once. */
TILE_INLINE void load_singles(uint *held, const __global ushort *from, int left, uint count)
{
#pragma unroll
    for (uint i = 0; i < count; i++)
        held[i] = (int)i < left ? from[i] : 0;
}

TILE_INLINE void load_words(uint *held, const __global ushort *from, int left, uint count,
                            uint vector)
{
#pragma unroll
    for (uint i = 0; i < count; i += vector > 1 ? vector : 2) {
        const __global ushort *p = from + i;
        const bool exists = (int)i < left;
        if (vector == 8) {
            const uint4 v = exists ? *(const __global uint4 *)p : (uint4)(0);
            held[i / 2] = v.x;
            held[i / 2 + 1] = v.y;
            held[i / 2 + 2] = v.z;
            held[i / 2 + 3] = v.w;
        } else if (vector == 4) {
            const uint2 v = exists ? *(const __global uint2 *)p : (uint2)(0);
            held[i / 2] = v.x;
            held[i / 2 + 1] = v.y;
        } else if (vector == 2) {
            held[i / 2] = exists ? *(const __global uint *)p : 0;
        } else {
            const bool next = i + 1 < count && (int)i + 1 < left;
            held[i / 2] = (exists ? p[0] : 0) | (uint)(next ? p[1] : 0) << 16;
        }
    }
}

/* Element i of neighbours in words. */
TILE_INLINE ushort word_element(const uint *held, uint i)
{
    const ushort2 word = as_ushort2(held[i / 2]);
    return i % 2 ? word.y : word.x;
}

TILE_INLINE void load_d(piece_d held[EACH_D], aim at, planes of, const int *begins, int step)
{
    const int left = left_of(at, of, step);
#pragma unroll
    for (uint n = 0; n < EACH_D; n++)
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            load_run_d(held[n].row[r], row_of(at, begins[n * ROWS + r]), left);
}

TILE_INLINE void store_d(__local uint *strip, const piece_d held[EACH_D])
{
    const uint first = get_local_id(0) / SEATS_D, seat = get_local_id(0) % SEATS_D;
    __local uint *to = strip + tile_a_at(first * ROWS, word_of(seat));
#pragma unroll
    for (uint n = 0; n < EACH_D; n++, to += tile_a_at(ONCE_D * ROWS, 0)) {
        uint v[ROWS][4];
        if (EDGE_M / ROWS % ONCE_D != 0 && first + n * ONCE_D >= EDGE_M / ROWS)
            break;
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
#pragma unroll
            for (uint i = 0; i < 4; i++)
                v[r][i] = as_uint((ushort2)(element_d(held[n].row[r], 2 * i),
                                            element_d(held[n].row[r], 2 * i + 1)));
#if ROWS == 2
        *(__local uint4 *)to = (uint4)(v[0][0], v[1][0], v[0][1], v[1][1]);
        *(__local uint4 *)(to + 4) = (uint4)(v[0][2], v[1][2], v[0][3], v[1][3]);
#else
        *(__local uint4 *)to = (uint4)(v[0][0], v[0][1], v[0][2], v[0][3]);
#endif
    }
}

TILE_INLINE void load_s(piece_s held[EACH_S], aim at, planes of, const int *begins, int step)
{
    const int left = left_of(at, of, step);
#pragma unroll
    for (uint n = 0; n < EACH_S; n++) {
        const __global ushort *from = row_of(at, begins[n]);
#pragma unroll
        for (int i = 0; i < BEFORE; i++)
            held[n].before[i] = i + at.x >= 0 && i < left ? from[i] : 0;
        load_run_s(held[n].inside, from + BEFORE, left - BEFORE);
        load_singles(held[n].behind, from + BEFORE + INSIDE, left - BEFORE - INSIDE, BEHIND);
    }
}

/* Element i of what a piece has of its line. */
TILE_INLINE ushort element_of(const piece_s *held, uint i)
{
    if (i < BEFORE)
        return as_ushort2(held->before[i]).x;
    return i < BEFORE + INSIDE ? element_s(held->inside, i - BEFORE)
                               : as_ushort2(held->behind[i - BEFORE - INSIDE]).x;
}

TILE_INLINE void store_s(__local uint *strips, const piece_s held[EACH_S])
{
    const uint first = get_local_id(0) / SEATS_S, seat = get_local_id(0) % SEATS_S;
    __local uint *to = strips + tile_b_at(first, word_of(seat));
#pragma unroll
    for (uint n = 0; n < EACH_S; n++, to += tile_b_at(ONCE_S, 0)) {
        if (GROUP % SEATS_S != 0 && first >= ONCE_S)
            break;
        if (CHANNELS % ONCE_S != 0 && first + n * ONCE_S >= CHANNELS)
            break;
#pragma unroll
        for (uint tap = 0; tap < TAPS_X; tap++) {
            uint v[4];
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                const uint at = 2 * i * STRIDE + tap * DILATION;
                v[i] =
                    as_uint((ushort2)(element_of(&held[n], at), element_of(&held[n], at + STRIDE)));
            }
            *(__local uint4 *)(to + tile_b_at(tap * CHANNELS, 0)) = (uint4)(v[0], v[1], v[2], v[3]);
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

/* A team's sums, of output channels from `row` and input channels from `column` on; those that
 * there are not, from `channels` and `depth` on, are left out. */
TILE_INLINE void put_sums(__global TYPE(W) * w, const tile_c sum[TILES_M][TILES_N], int row,
                          int channels, int column, int depth, int inputs, float beta)
{
    const uint lane = get_local_id(0) % TILE_LANES;
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++) {
                const int output = row + (int)(r * TILE_M + tile_row(lane, e));
                const int input = column + (int)(q / TAPS * TILE_N + tile_column(lane, e));
                if (output >= channels || input >= depth)
                    continue;
                ACC(W, w, ((ulong)output * inputs + input) * TAPS + q % TAPS, beta, sum[r][q].v[e]);
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
    const __global ushort *from_s =
        (const __global ushort *)(s + s_at) + ((ulong)group * depth + input) * plane_s;
    const __global ushort *from_d =
        (const __global ushort *)(d + d_at) + ((ulong)group * channels + row0) * plane_d;
    const bool has_tiles = row0 + (int)row < channels && input + (int)column < depth;
    tile_c sum[TILES_M][TILES_N];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
        tile_clear(sum[r], TILES_N);

    const uint begin = get_group_id(2) * part_steps, end = min(begin + part_steps, steps);
    const uint across = (dw + WIDE - 1) / WIDE, in_row = WALK > 0 ? (uint)steps / across : across;
    const uint id = get_local_id(0), seat_d = id % SEATS_D, seat_s = id % SEATS_S;
    const planes of_d = {image_d, dh, dw, period, 0, batch * period, WALK > 0 ? TALL : WIDE};
    const planes of_s = {image_s,
                         sh,
                         sw,
                         period * stride_y,
                         padding_y,
                         batch * period * stride_y,
                         WALK > 0 ? TALL * stride_y : WIDE * STRIDE};
    int begins_d[EACH_D * ROWS], begins_s[EACH_S];
    piece_d held_d[EACH_D];
    piece_s held_s[EACH_S];
    begin_rows(begins_d, id / SEATS_D, EACH_D, ONCE_D, ROWS, channels - row0, dh * dw);
    begin_rows(begins_s, id / SEATS_S, EACH_S, ONCE_S, 1, depth - input, sh * sw);
    for (uint step = begin; step < end;) {
        const uint row_of_steps = step / in_row, first = step - row_of_steps * in_row;
        const int count = min(end - step, in_row - first);
        const int line = (WALK > 0 ? first : row_of_steps) * TALL;
        const int x = (WALK > 0 ? row_of_steps : first) * WIDE;
        aim at_d = aim_at(from_d, of_d, x + pixel_of(seat_d), line + line_of(seat_d),
                          id / SEATS_D < EDGE_M / ROWS ? count : 0);
        aim at_s = aim_at(from_s, of_s, (x + pixel_of(seat_s)) * STRIDE - PADDING,
                          (line + line_of(seat_s) % EACH_Y) * stride_y + line_of(seat_s) / EACH_Y,
                          id / SEATS_S < (ONCE_S < CHANNELS ? ONCE_S : CHANNELS) ? count : 0);
        load_d(held_d, at_d, of_d, begins_d, 0);
        load_s(held_s, at_s, of_s, begins_s, 0);
        /* A turn multiplies what the turn before loaded. */
        for (int turn = 1; turn <= count; turn++) {
            barrier(CLK_LOCAL_MEM_FENCE);
            store_d((__local uint *)strip_d, held_d);
            store_s((__local uint *)strip_s, held_s);
            barrier(CLK_LOCAL_MEM_FENCE);
            advance(&at_d, of_d);
            advance(&at_s, of_s);
            load_d(held_d, at_d, of_d, begins_d, turn);
            load_s(held_s, at_s, of_s, begins_s, turn);
            if (has_tiles)
                multiply(sum, rows, columns, lane, stride_y, dilation_y);
        }
        step += count;
    }

    w += w_at + (get_group_id(2) * (ulong)groups + group) * channels * inputs * TAPS;
    const int to_row = row0 + (int)row, to_input = input + (int)column;
    put_sums(w + (ulong)input0 * TAPS, sum, to_row, channels, to_input, depth, inputs, beta);
}
