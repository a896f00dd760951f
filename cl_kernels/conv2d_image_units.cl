/* SPDX-License-Identifier: MIT
 *
 * Convolution by matrix units: the result (source S the image), or with QN_GRADIENT the gradient of
 * the image (S the gradient of the result). The weights come from conv2d_pack.cl.
 *
 * A work-group of TEAMS_M x TEAMS_N teams makes EDGE_M channels of TALL lines of WIDE pixels. For
 * each strip of 2 * TILE_DEPTH source channels it copies the region of the source that the pixels
 * meet to local memory once, as words of two channels of a pixel, with zeros for the padding; then
 * it takes tap after tap: a tap's weights are copied, and its patches are the region, shifted by
 * as many pixels for all lanes. So nothing is looked up or compared in between. The next weights,
 * and the next region where registers hold it, are loaded meanwhile.
 *
 * Lines are those of all images: line l is row l % period of image l / period, and `period` is so
 * large that what one image meets is no element of the next (src/ops/conv2d_units.c). Where
 * neighbouring pixels meet every step-th element, the region has those of one residue side by side:
 * they are `EACH` elements of each of `CLASSES` classes, both ways.
 *
 * Options: S_TYPE, B_TYPE, D_TYPE; QN_GRADIENT; those of lib/tile.clh
 *   SPLIT                           1: weights are followed by their rests
 *   SCALED                          1: they follow scales of rows, by which sums are multiplied
 *   TEAMS_M, TEAMS_N, TILES_M, TILES_N
 *   TALL, WIDE                      WIDE is a multiple of TILE_N, both are powers of 2
 *   EACH_Y, EACH_X, CLASSES_Y, CLASSES_X
 *   RUN                             pixels that are aligned and loaded at once, where the window is
 *                                   one element: 8 or 4; otherwise 1
 *   QN_TAPS, QN_STRIDE, QN_DILATION those of the window, if they are the same both ways and known
 */
/* A window may begin at any pixel. */
#define TILE_B_APART

#include "lib/bits.clh"
#include "lib/conv2d.clh"
#include "lib/tile.clh"

#define TEAMS (TEAMS_M * TEAMS_N)
#define GROUP (TEAMS * TILE_LANES)
#define EDGE_M (TEAMS_M * TILES_M * TILE_M)
#define EDGE_N (TEAMS_N * TILES_N * TILE_N)
#define STRIP_CHANNELS (TILE_DEPTH * UNIT_PACK)
#define STRIP (EDGE_M * TILE_PITCH_A)
/* Vectors of the weights' strip, of a line of rows that lie word by word, of a work-item. */
#define VECTORS (EDGE_M * TILE_DEPTH / 4)
#define LINE_ROWS (1 + TILE_PAIRED)
#define LINE_VECTORS (LINE_ROWS * TILE_DEPTH / 4)
#define VECTORS_EACH (VECTORS * (1 + SPLIT) / GROUP)
/* Pixels of a line of the region and of all of it; pieces of it and those of a work-item. */
#define LINE (CLASSES_X * EACH_X)
#define REGION (CLASSES_Y * EACH_Y * LINE)
#define PIECES (REGION * STRIP_CHANNELS / (RUN * PIECE_CHANNELS))
#define PIECES_EACH ((PIECES + GROUP - 1) / GROUP)
/* Whether registers hold the pieces of a work-item. */
#define HELD (PIECES_EACH <= (TILE_LAYOUT_NUMBER == tile_layout_wmma ? 2 : 4))
/* Channels of a piece of RUN pixels, which has one load for each; words of a pixel of it, which are
 * stored at once; pieces of a pixel. `piece_elements`: those of a load, one by one. */
#if RUN == 8
#define PIECE_CHANNELS 2
typedef ushort8 piece_load;
typedef uint piece_words;
#define piece_elements(to, v) vstore8(v, 0, to)
#define as_piece_words(w) ((w)[0])
#elif RUN == 4
#define PIECE_CHANNELS 4
typedef ushort4 piece_load;
typedef uint2 piece_words;
#define piece_elements(to, v) vstore4(v, 0, to)
#define as_piece_words(w) ((uint2)((w)[0], (w)[1]))
#else
#define PIECE_CHANNELS 8
typedef ushort piece_load;
typedef uint4 piece_words;
#define piece_elements(to, v) ((to)[0] = (v))
#define as_piece_words(w) ((uint4)((w)[0], (w)[1], (w)[2], (w)[3]))
#endif
#define PIECE_WORDS (PIECE_CHANNELS / UNIT_PACK)
#define PIXEL_PIECES (TILE_DEPTH / PIECE_WORDS)
typedef struct {
    piece_load v[PIECE_CHANNELS];
} piece;

/* Where a strip of a source begins: channel 0 of its first image that the tile meets; elements of a
 * channel. */
typedef struct {
    const __global BITS(S) * from;
    ulong plane;
} source_strip;

static inline conv_axis axis_of(int size, int residue, int taps, int stride, int padding,
                                int dilation)
{
    return QN_GRADIENT ? conv_gradient_axis(size, residue, taps, stride, padding, dilation)
                       : conv_forward_axis(size, taps, stride, padding, dilation);
}

/* The least of move * tap: elements of the region before those that tap 0 meets. */
static inline int conv_before(conv_axis axis)
{
    return min(axis.move * (axis.taps - 1), 0);
}

/* First pixel and word of piece n of this work-item. Runs: neighbours have neighbouring words of
 * the same pixels. Otherwise they have two pieces of each of neighbouring pixels, which are
 * neighbours in memory, as the two are in local memory. */
TILE_INLINE uint2 piece_place(uint n)
{
    const uint id = get_local_id(0) + n * GROUP, half_id = id % (2 * REGION);
    return RUN > 1 ? (uint2)(id / PIXEL_PIECES * RUN, id % PIXEL_PIECES * PIECE_WORDS)
                   : (uint2)(half_id / 2, (id / (2 * REGION) * 2 + half_id % 2) * 4);
}

TILE_INLINE bool has_piece(uint n)
{
    return PIECES % GROUP == 0 || get_local_id(0) + n * GROUP < PIECES;
}

/* Source elements from that of class 0 of a region's first line or column. */
static inline int region_ahead(uint at, uint each, int step)
{
    return (int)(at % each) * step + (int)(at / each);
}

/* Elements from channel 0 of the tile's first image to each pixel of its region, -1 in the padding:
 * the region begins so many rows below the lowest that the first image meets, and in column x;
 * `image` elements are an image's own. */
static inline void aim(__local int offset[REGION], conv_axis v, conv_axis h, int below, int x,
                       int lowest, int period, int images, int image, int sh, int sw)
{
    for (uint pixel = get_local_id(0); pixel < REGION; pixel += GROUP) {
        const int row = below + region_ahead(pixel / LINE, EACH_Y, v.step);
        const int column = x + region_ahead(pixel % LINE, EACH_X, h.step);
        const int number = row / (period * v.step);
        const int own = row - number * (period * v.step) + lowest;
        const bool exists = number < images && own >= 0 && own < sh && column >= 0 && column < sw;
        offset[pixel] = exists ? number * image + own * sw + column : -1;
    }
}

/* Where the pixels of piece n are, as `offset` says. */
TILE_INLINE int piece_at(const __local int *offset, uint n)
{
    return has_piece(n) ? offset[piece_place(n).x] : -1;
}

/* Loads piece n, which is there, of a strip of the `left` channels that the source still has. */
TILE_INLINE void load_piece(piece *held, int at, source_strip source, uint n, int left)
{
    const uint channel = piece_place(n).y * UNIT_PACK;
    const int there = at < 0 ? 0 : left - (int)channel;
    const __global BITS(S) *from = source.from + at + channel * source.plane;
#pragma unroll
    for (uint c = 0; c < PIECE_CHANNELS; c++, from += source.plane)
        held->v[c] = (int)c < there ? *(const __global piece_load *)from : (piece_load)(0);
}

TILE_INLINE void store_piece(__local uint *region, uint n, const piece *held)
{
    const uint2 place = piece_place(n);
    __local uint *to = region + tile_b_at(place.x, place.y);
    ushort v[PIECE_CHANNELS][RUN];
    if (!has_piece(n))
        return;
#pragma unroll
    for (uint c = 0; c < PIECE_CHANNELS; c++)
        piece_elements(v[c], held->v[c]);
#pragma unroll
    for (uint i = 0; i < RUN; i++) {
        uint words[PIECE_WORDS];
#pragma unroll
        for (uint w = 0; w < PIECE_WORDS; w++)
            words[w] = as_uint((ushort2)(v[2 * w][i], v[2 * w + 1][i]));
        *(__local piece_words *)(to + tile_b_at(i, 0)) = as_piece_words(words);
    }
}

TILE_INLINE void load_region(piece held[PIECES_EACH], const int at[PIECES_EACH],
                             source_strip source, int left)
{
#if HELD
#pragma unroll
    for (uint n = 0; n < PIECES_EACH; n++)
        load_piece(&held[n], at[n], source, n, left);
#endif
}

TILE_INLINE void store_region(__local uint *region, piece held[PIECES_EACH],
                              const __local int *offset, source_strip source, int left)
{
#if HELD
#pragma unroll
    for (uint n = 0; n < PIECES_EACH; n++)
        store_piece(region, n, &held[n]);
#else
#pragma unroll 2
    for (uint n = 0; n < PIECES_EACH; n++) {
        piece now;
        load_piece(&now, piece_at(offset, n), source, n, left);
        store_piece(region, n, &now);
    }
#endif
}

/* Of the strip's words and then of its rests, which lie `vectors` further on. */
TILE_INLINE void load_weights(uint4 held[VECTORS_EACH], const __global uint4 *from, ulong vectors)
{
#pragma unroll
    for (uint n = 0; n < VECTORS_EACH; n++) {
        const uint id = get_local_id(0) + n * GROUP;
        held[n] = from[id % VECTORS + (SPLIT && id >= VECTORS ? vectors : 0)];
    }
}

TILE_INLINE void store_weights(__local uint *strip, const uint4 held[VECTORS_EACH])
{
#pragma unroll
    for (uint n = 0; n < VECTORS_EACH; n++) {
        const uint id = get_local_id(0) + n * GROUP, vector = id % VECTORS;
        const uint at =
            tile_a_at(vector / LINE_VECTORS * LINE_ROWS, vector % LINE_VECTORS * 4 / LINE_ROWS);
        *(__local uint4 *)(strip + (id >= VECTORS ? STRIP : 0) + at) = held[n];
    }
}

/* Pixels of the region from the team's first run of TILE_N neighbours to run q. */
#define RUN_AT(q) ((q)*TILE_N / WIDE * LINE + (q)*TILE_N % WIDE)

/* sum += the product of the team's rows of the weights and the pixels of the region from `pixels`
 * on. */
TILE_INLINE void multiply(tile_c sum[TILES_M][TILES_N], const __local uint *rows,
                          const __local uint *pixels, uint lane)
{
    tile_b b[TILES_N];
#pragma unroll TILE_UNROLL
    for (uint q = 0; q < TILES_N; q++)
        b[q] = tile_load_b(pixels + tile_b_at(RUN_AT(q), 0), lane);
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++) {
#if SPLIT
        const tile_a rest = tile_load_a(rows + STRIP + r * TILE_M * TILE_PITCH_A, lane);
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
            tile_multiply(&sum[r][q], rest, b[q], lane);
#endif
        const tile_a a = tile_load_a(rows + r * TILE_M * TILE_PITCH_A, lane);
#pragma unroll TILE_UNROLL
        for (uint q = 0; q < TILES_N; q++)
            tile_multiply(&sum[r][q], a, b[q], lane);
    }
}

/* How far the region is shifted for a tap. */
static inline uint shift_of(conv_axis axis, int tap, uint each)
{
    const uint ahead = axis.move * tap - conv_before(axis), step = axis.step;
    return ahead % step * each + ahead / step;
}

/* Where the weights of taps are, in vectors: from tap to tap of a row, to the next row's first, to
 * the next strip's first; and the rests of a strip. */
typedef struct {
    long column, row, strip;
    ulong rests;
} weight_steps;

/* The team's part of the tile: its first row and pixel, and whether any channel is there. */
struct team {
    uint row, pixel, lane;
    bool has_rows;
};

/* Adds the products of all taps of the strip whose region is in local memory and whose first
 * weights are held; the last tap loads the weights that come next, if there is a next strip. */
TILE_INLINE const __global uint4 *add_strip(tile_c sum[TILES_M][TILES_N], __local uint *strip,
                                            const __local uint *region, const struct team *team,
                                            uint4 held[VECTORS_EACH], bool is_last,
                                            const __global uint4 *weights, conv_axis v, conv_axis h,
                                            weight_steps step)
{
    const __local uint *rows = strip + team->row * TILE_PITCH_A;
    const __local uint *pixels =
        region + tile_b_at(team->pixel / WIDE * LINE + team->pixel % WIDE, 0);
    int row = 0, column = 0;
    for (int tap = v.taps * h.taps; tap > 0; tap--) {
        const uint shift = shift_of(v, row, EACH_Y) * LINE + shift_of(h, column, EACH_X);
        const bool row_ends = ++column == h.taps;
        store_weights(strip, held);
        barrier(CLK_LOCAL_MEM_FENCE);
        weights += tap == 1 ? step.strip : row_ends ? step.row : step.column;
        if (tap > 1 || !is_last)
            load_weights(held, weights, step.rests);
        if (team->has_rows)
            multiply(sum, rows, pixels + tile_b_at(shift, 0), team->lane);
        column = row_ends ? 0 : column;
        row += row_ends;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return weights;
}

/* Adds the products of all taps of the `left` channels of one source; gives where the weights of
 * the channels behind these begin. */
TILE_INLINE const __global uint4 *add_source(tile_c sum[TILES_M][TILES_N], __local uint *strip,
                                             __local uint *region, const struct team *team,
                                             const __local int *offset, source_strip source,
                                             int left, const __global uint4 *weights, conv_axis v,
                                             conv_axis h, weight_steps step)
{
    piece held[PIECES_EACH];
    uint4 held_w[VECTORS_EACH];
    int at[PIECES_EACH];
#if HELD
#pragma unroll
    for (uint n = 0; n < PIECES_EACH; n++)
        at[n] = piece_at(offset, n);
#endif
    load_weights(held_w, weights, step.rests);
    load_region(held, at, source, left);
    for (; left > 0; left -= STRIP_CHANNELS) {
        const bool is_last = left <= STRIP_CHANNELS;
        store_region(region, held, offset, source, left);
        source.from += STRIP_CHANNELS * source.plane;
        if (!is_last)
            load_region(held, at, source, left - STRIP_CHANNELS);
        weights = add_strip(sum, strip, region, team, held_w, is_last, weights, v, h, step);
    }
    return weights;
}

/* `batch` images of `groups` x `depth` source channels of sh x sw become `groups` x `channels`
 * channels of dh x dw. The first `front` source channels are in s, the others in t. Lines of all
 * images meet rows from `lowest` on. Work-groups: (tiles of lines x tiles of columns, tiles of
 * channels, residue x channel group). */
TILE_KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void
conv2d_image(__global const TYPE(S) * s, ulong s_at, __global const float *w, ulong w_at,
             __global const TYPE(B) * b, ulong b_at, __global TYPE(D) * d, ulong d_at, int has_bias,
             float beta, int batch, int groups, int depth, int channels, int sh, int sw, int dh,
             int dw, int kh, int kw, int stride_y, int stride_x, int padding_y, int padding_x,
             int dilation_y, int dilation_x, __global const TYPE(S) * t, ulong t_at, int front,
             int period, int lowest, int across)
{
    __local uint4 strip[STRIP * (1 + SPLIT) / 4], region[REGION * TILE_PITCH_B / 4];
    __local int offset[REGION];
    const int residue = get_group_id(2) / groups, group = get_group_id(2) - residue * groups;
#ifdef QN_TAPS
    kh = kw = QN_TAPS;
    stride_y = stride_x = QN_STRIDE;
    dilation_y = dilation_x = QN_DILATION;
#endif
    const int residues = QN_GRADIENT ? min(stride_x, dw) : 1;
    const int down = residue / residues, right = residue - down * residues;
    const conv_axis v = axis_of(dh, down, kh, stride_y, padding_y, dilation_y);
    const conv_axis h = axis_of(dw, right, kw, stride_x, padding_x, dilation_x);
    const int tile = get_group_id(0) / across;
    const int line0 = tile * TALL, column0 = (get_group_id(0) - tile * across) * WIDE;
    const int row0 = get_group_id(1) * EDGE_M, taps = kh * kw;
    const uint team = tile_team(get_local_id(0));
    const struct team at = {team / TEAMS_N * TILES_M * TILE_M, team % TEAMS_N * TILES_N * TILE_N,
                            get_local_id(0) % TILE_LANES,
                            row0 + (int)(team / TEAMS_N * TILES_M * TILE_M) < channels};
    tile_c sum[TILES_M][TILES_N];
#pragma unroll TILE_UNROLL
    for (uint r = 0; r < TILES_M; r++)
        tile_clear(sum[r], TILES_N);

    const ulong plane = (ulong)sh * sw, tap = get_num_groups(1) * (VECTORS * (1 + SPLIT));
    const weight_steps step = {
        h.tap_step * tap, (v.tap_step * kw - (h.taps - 1) * h.tap_step) * (long)tap,
        (taps - (v.taps - 1) * v.tap_step * kw - (h.taps - 1) * h.tap_step) * (long)tap,
        get_num_groups(1) * VECTORS};
    const int strips = (front + STRIP_CHANNELS - 1) / STRIP_CHANNELS +
                       (depth - front + STRIP_CHANNELS - 1) / STRIP_CHANNELS;
    const ulong pitch = get_num_groups(1) * EDGE_M;
    const __global float *scales = w + w_at + group * pitch;
    const __global uint4 *weights =
        (const __global uint4 *)(w + w_at + (SCALED ? groups * pitch : 0)) +
        ((ulong)group * strips * taps + v.tap0 * kw + h.tap0) * tap + get_group_id(1) * VECTORS;
    const int images = v.taps * h.taps == 0 ? 0 : front < depth ? 2 : 1;
    const int image0 = line0 / period, below = (line0 - image0 * period) * v.step;
    for (int n = 0; n < images; n++) {
        const int own = n ? depth - front : front;
        const ulong image = (ulong)groups * own * plane;
        const source_strip source = {(const __global BITS(S) *)(n ? t + t_at : s + s_at) +
                                         image0 * image + (ulong)group * own * plane,
                                     plane};
        aim(offset, v, h, below + v.start + conv_before(v) - lowest,
            h.start + conv_before(h) + h.step * column0, lowest, period, batch - image0, (int)image,
            sh, sw);
        barrier(CLK_LOCAL_MEM_FENCE);
        weights = add_source(sum, (__local uint *)strip, (__local uint *)region, &at, offset,
                             source, own, weights, v, h, step);
    }

    const ulong made = (ulong)dh * dw;
    b += b_at + group * channels;
    d += d_at;
#pragma unroll TILE_UNROLL
    for (uint q = 0; q < TILES_N; q++) {
        const int pixel = at.pixel + q * TILE_N, line = line0 + pixel / WIDE;
        const int image = line / period, y = line - image * period;
        const int rows = image < batch && y < v.count ? channels : 0;
#pragma unroll TILE_UNROLL
        for (uint r = 0; r < TILES_M; r++)
#pragma unroll
            for (uint e = 0; e < TILE_EACH; e++) {
                const int row = row0 + at.row + r * TILE_M + tile_row(at.lane, e);
                const int x = column0 + pixel % WIDE + tile_column(at.lane, e);
                if (row >= rows || x >= h.count)
                    continue;
                const ulong to = ((ulong)(image * groups + group) * channels + row) * made +
                                 (v.at + (ulong)y * v.at_step) * dw + h.at + (ulong)x * h.at_step;
                const float bias = has_bias ? LD(B, b, row) : 0.0f;
                const float scale = SCALED ? scales[row] : 1.0f;
                ACC(D, d, to, beta, sum[r][q].v[e] * scale + bias);
            }
    }
}
