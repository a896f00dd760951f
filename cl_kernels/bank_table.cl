/* SPDX-License-Identifier: MIT
 *
 * What the samples of a bank know of each other (src/op/info_nce.h says how the table is laid out).
 * The bank is a ring: a micro-step's `fresh` samples are in it, the first at the row that the
 * control block says, going round at its end.
 *
 * A block of scores (m, n) has QN_ROW_EACH rows for each sample that looks, of which the first
 * counts, and QN_COLUMN_EACH columns for each sample that is looked at.
 */
#define X_TYPE f32
#ifndef V_TYPE
#define V_TYPE f32
#endif
#include "lib/control.clh"
#include "lib/row.clh"

#ifndef QN_ROW_EACH
#define QN_ROW_EACH 1
#endif
#ifndef QN_COLUMN_EACH
#define QN_COLUMN_EACH 1
#endif
#ifndef QN_TILE
#define QN_TILE 64
#endif

/* Which samples a list has: those of the bank in turn, the fresh ones, or those of the tiles that
 * have fresh ones. */
#define ALL 0
#define FRESH 1
#define TOUCHED 2

/* Scores of what does not count. */
#define NOTHING -3e38f
#define COUNTS(score) ((score) > -1e38f)

#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

typedef struct {
    ulong samples, fresh, start;
} ring;

static inline ring ring_of(__global const uint *control, ulong control_at, int slot, ulong samples,
                           ulong fresh)
{
    const ring bank = {samples, fresh,
                       QN_CONTROL_READ(control, control_at)->position[slot] % samples};
    return bank;
}

static inline ulong tiles_of(ring bank)
{
    return (bank.samples + QN_TILE - 1) / QN_TILE;
}

/* Tiles that have fresh samples; they follow each other, round the end of the ring. */
static inline ulong touched_tiles(ring bank)
{
    const ulong last = bank.start + bank.fresh - 1, first = bank.start / QN_TILE;
    const ulong count = last < bank.samples
                            ? last / QN_TILE - first + 1
                            : tiles_of(bank) - first + (last - bank.samples) / QN_TILE + 1;
    return min(count, tiles_of(bank));
}

/* Entry i of a list; not below the bank's samples: nothing is there. */
static inline ulong sample_at(ring bank, int list, ulong i)
{
    if (list == FRESH)
        return (bank.start + i) % bank.samples;
    if (list == TOUCHED)
        return (bank.start / QN_TILE + i / QN_TILE) % tiles_of(bank) * QN_TILE + i % QN_TILE;
    return i;
}

/* The first `take` of each sample's `each` vectors, of the samples of a list from `first` on; zeros
 * where nothing is there. */
__kernel void gather(__global const TYPE(V) *vectors, ulong vectors_at, __global TYPE(V) *to,
                     ulong to_at, __global const uint *control, ulong control_at, ulong samples,
                     ulong fresh, ulong rows, ulong d, ulong take, ulong each, ulong first,
                     int list, int slot)
{
    const ulong k = get_global_id(0);
    if (k >= d)
        return;
    const ring bank = ring_of(control, control_at, slot, samples, fresh);
    for (ulong r = get_global_id(1); r < rows; r += get_global_size(1)) {
        const ulong sample = sample_at(bank, list, first + r / take);
        const bool there = sample < samples;
        const ulong from = vectors_at + ((there ? sample : 0) * each + r % take) * d + k;
        ST(V, to, to_at + r * d + k, there ? LD(V, vectors, from) : 0.0f);
    }
}

static inline bool is_left_out(__global const int *ids, ring bank, ulong looks, ulong sample,
                               ulong within, int duplicates)
{
    if (sample >= bank.samples || ids[sample] < 0 || ids[looks] < 0)
        return true;
    return duplicates && within == 0 && sample != looks && ids[sample] == ids[looks];
}

/* Products of vectors become scores, in their place. */
__kernel void scores(__global float *x, ulong x_at, __global const int *ids, ulong ids_at,
                     __global const uint *control, ulong control_at, ulong samples, ulong fresh,
                     ulong m, ulong n, ulong first_row, ulong first_column, int rows, int columns,
                     float scale, int duplicates, int slot)
{
    const ulong c = get_global_id(0);
    if (c >= n)
        return;
    const ring bank = ring_of(control, control_at, slot, samples, fresh);
    const ulong sample = sample_at(bank, columns, first_column + c / QN_COLUMN_EACH);
    for (ulong r = get_global_id(1); r * QN_ROW_EACH < m; r += get_global_size(1)) {
        const ulong looks = sample_at(bank, rows, first_row + r);
        const ulong i = x_at + r * QN_ROW_EACH * n + c;
        const bool out = is_left_out(ids + ids_at, bank, looks, sample, c % QN_COLUMN_EACH,
                                     duplicates);
        x[i] = out ? NOTHING : x[i] * scale;
    }
}

/* A work-group per sample that looks and tile of those that are looked at; the first of these is
 * entry first_column of its list. The table's row of the first tile's largest scores is `row`. */
ROW_KERNEL learn(__global const float *x, ulong x_at, __global float *table, ulong table_at,
                 __global const uint *control, ulong control_at, ulong samples, ulong fresh,
                 ulong n, ulong first_row, ulong first_column, ulong row, int rows, int columns,
                 int own_too, int slot)
{
    __local float part[QN_WG];
    const ring bank = ring_of(control, control_at, slot, samples, fresh);
    const ulong blocks = (n + QN_TILE * QN_COLUMN_EACH - 1) / (QN_TILE * QN_COLUMN_EACH);
    const ulong r = get_group_id(0) / blocks, block = get_group_id(0) % blocks;
    const ulong entry = first_column + block * QN_TILE;
    const bool stays = columns == TOUCHED && entry / QN_TILE >= touched_tiles(bank);
    const ulong looks = sample_at(bank, rows, first_row + r);
    const ulong first = sample_at(bank, columns, entry);
    const ulong at = block * QN_TILE * QN_COLUMN_EACH;
    x += x_at + r * QN_ROW_EACH * n + at;
    table += table_at;
    const ulong count = min(n - at, (ulong)QN_TILE * QN_COLUMN_EACH);
    const row_exp sums = row_exp_sum(x, stays ? 0 : count, part);
    if (stays || get_local_id(0) > 0)
        return;
    const ulong top = row + first / QN_TILE * 2;
    const bool any = COUNTS(sums.top);
    table[top * samples + looks] = any ? sums.top : 0.0f;
    table[(top + 1) * samples + looks] = any ? sums.sum : 0.0f;
    if (own_too && looks >= first && looks < first + QN_TILE) {
        const float own = x[(looks - first) * QN_COLUMN_EACH];
        table[looks] = COUNTS(own) ? own : 0.0f;
    }
}

/* Nothing where a table is made in the place of what it was. */
__kernel void copy(__global const float *from, ulong from_at, __global float *to, ulong to_at,
                   ulong n)
{
    const ulong i = get_global_id(0);
    if (i < n)
        to[to_at + i] = from[from_at + i];
}
