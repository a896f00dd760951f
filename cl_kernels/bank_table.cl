/* SPDX-License-Identifier: MIT
 *
 * What the samples of a bank know of each other (src/op/info_nce.h says how the table is laid out).
 * Those that look are the queries of the bank, or their own passages; what is looked at are
 * passages, or queries. Both are rings: a micro-step's `fresh` samples are in them, the first at
 * the place that the control block says, going round at the end.
 *
 * A block of scores (m, n) has a row for each that looks, and QN_COLUMN_EACH columns for each
 * sample or query that is looked at.
 */
#define X_TYPE f32
#ifndef V_TYPE
#define V_TYPE f32
#endif
#include "lib/banks.clh"
#include "lib/control.clh"
#include "lib/row.clh"

#ifndef QN_EACH
#define QN_EACH 1
#endif
#ifndef QN_COLUMN_EACH
#define QN_COLUMN_EACH 1
#endif
#ifndef QN_TILE
#define QN_TILE 64
#endif

/* Which entries of a ring a list has: all in turn, the fresh ones, or those of the tiles that have
 * fresh ones. */
#define ALL 0
#define FRESH 1
#define TOUCHED 2

/* Which vectors: passages of samples, queries, or own passages of queries. */
#define PASSAGES 0
#define QUERIES 1
#define OWN 2

/* Scores of what does not count. */
#define NOTHING -3e38f
#define COUNTS(score) ((score) > -1e38f)

#define ELEMENT_KERNEL __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* `start` is the entry of the first fresh one. */
typedef struct {
    uint count, start, fresh;
} ring;

typedef struct {
    ring samples, queries;
    next_of next; /* where the rings take what comes after the fresh ones */
} bank_of;

static inline bank_of bank_in(__global const uint *control, ulong control_at, int slot,
                              ulong samples, ulong queries, ulong fresh)
{
    __global const uint *position = QN_CONTROL_READ(control, control_at)->position;
    const next_of next = {(position[QN_ROW_SLOT] + (uint)fresh) % QN_BANK_ROWS,
                          (position[QN_SAMPLE_SLOT] / QN_EACH + (uint)fresh) % QN_BANK_SAMPLES};
    const uint start = position[slot] % (uint)samples, row = row_of(start, next);
    /* Those whose queries are gone come before the oldest that is there. */
    const bank_of bank = {{(uint)samples, start, (uint)fresh},
                          {(uint)queries, row < (uint)queries ? row : next.row, (uint)fresh},
                          next};
    return bank;
}

static inline uint tiles_of(ring r)
{
    return (r.count + QN_TILE - 1) / QN_TILE;
}

/* Tiles that have fresh entries; they follow each other, round the end of the ring. */
static inline uint touched_tiles(ring r)
{
    const uint last = r.start + r.fresh - 1, first = r.start / QN_TILE;
    const uint count = last < r.count ? last / QN_TILE - first + 1
                                      : tiles_of(r) - first + (last - r.count) / QN_TILE + 1;
    return min(count, tiles_of(r));
}

/* Number i of a list; not below the ring's count: nothing is there. */
static inline uint entry_at(ring r, int list, uint i)
{
    if (list == FRESH)
        return (r.start + i) % r.count;
    if (list == TOUCHED)
        return (r.start / QN_TILE + i / QN_TILE) % tiles_of(r) * QN_TILE + i % QN_TILE;
    return i;
}

/* The first `take` of each entry's `each` vectors, of the entries of a list from `first` on; zeros
 * where nothing is there. */
ELEMENT_KERNEL gather(__global const TYPE(V) *vectors, ulong vectors_at, __global TYPE(V) *to,
                      ulong to_at, __global const uint *control, ulong control_at, ulong samples,
                      ulong queries, ulong fresh, ulong rows, ulong d, ulong take, ulong each,
                      ulong first, int list, int what, int slot)
{
    const ulong k = get_global_id(0);
    if (k >= d)
        return;
    const bank_of bank = bank_in(control, control_at, slot, samples, queries, fresh);
    const ring of = what == PASSAGES ? bank.samples : bank.queries;
    for (ulong r = get_global_id(1); r < rows; r += get_global_size(1)) {
        const uint entry = entry_at(of, list, (uint)(first + r / take));
        const bool there = entry < of.count;
        const ulong place = what == OWN ? stored_at(there ? entry : 0, bank.next) : entry;
        const ulong from = vectors_at + ((there ? place : 0) * each + r % take) * d + k;
        ST(V, to, to_at + r * d + k, there ? LD(V, vectors, from) : 0.0f);
    }
}

static inline bool is_left_out(__global const int *ids, uint looks, uint seen, ulong within,
                               int duplicates)
{
    if (ids[seen] < 0 || ids[looks] < 0)
        return true;
    return duplicates && within == 0 && seen != looks && ids[seen] == ids[looks];
}

/* Products of vectors become scores, in their place; `back`: queries are looked at. */
ELEMENT_KERNEL scores(__global float *x, ulong x_at, __global const int *ids, ulong ids_at,
                      __global const uint *control, ulong control_at, ulong samples, ulong queries,
                      ulong fresh, ulong m, ulong n, ulong first_row, ulong first_column, int rows,
                      int columns, float scale, int duplicates, int back, int slot)
{
    const ulong c = get_global_id(0);
    if (c >= n)
        return;
    const bank_of bank = bank_in(control, control_at, slot, samples, queries, fresh);
    const ring of = back ? bank.queries : bank.samples;
    const uint entry = entry_at(of, columns, (uint)(first_column + c / QN_COLUMN_EACH));
    const bool there = entry < of.count;
    const uint seen = there && back ? stored_at(entry, bank.next) : entry;
    for (ulong r = get_global_id(1); r < m; r += get_global_size(1)) {
        const uint row = entry_at(bank.queries, rows, (uint)(first_row + r));
        const bool out = !there || is_left_out(ids + ids_at, stored_at(row, bank.next), seen,
                                               c % QN_COLUMN_EACH, duplicates);
        const ulong i = x_at + r * n + c;
        x[i] = out ? NOTHING : x[i] * scale;
    }
}

/* A work-group per query that looks, itself or by its own passage, and tile of what is looked at;
 * the first of these is entry first_column of its list. The table's row of the first tile's largest
 * scores is `row`. */
ROW_KERNEL learn(__global const float *x, ulong x_at, __global float *table, ulong table_at,
                 __global const uint *control, ulong control_at, ulong samples, ulong queries,
                 ulong fresh, ulong n, ulong first_row, ulong first_column, ulong row, int rows,
                 int columns, int back, int slot)
{
    __local float part[QN_WG];
    const bank_of bank = bank_in(control, control_at, slot, samples, queries, fresh);
    const ring of = back ? bank.queries : bank.samples;
    const ulong blocks = (n + QN_TILE * QN_COLUMN_EACH - 1) / (QN_TILE * QN_COLUMN_EACH);
    const ulong r = get_group_id(0) / blocks, block = get_group_id(0) % blocks;
    const uint entry = (uint)(first_column + block * QN_TILE);
    const bool stays = columns == TOUCHED && entry / QN_TILE >= touched_tiles(of);
    const uint looks = entry_at(bank.queries, rows, (uint)(first_row + r));
    const uint first = entry_at(of, columns, entry);
    const ulong at = block * QN_TILE * QN_COLUMN_EACH;
    x += x_at + r * n + at;
    table += table_at;
    const ulong count = min(n - at, (ulong)QN_TILE * QN_COLUMN_EACH);
    const row_exp sums = row_exp_sum(x, stays ? 0 : count, part);
    if (stays || get_local_id(0) > 0)
        return;
    const ulong top = row + first / QN_TILE * 2;
    const bool any = COUNTS(sums.top);
    table[top * queries + looks] = any ? sums.top : 0.0f;
    table[(top + 1) * queries + looks] = any ? sums.sum : 0.0f;
    const uint own = stored_at(looks, bank.next);
    if (!back && own >= first && own < first + QN_TILE) {
        const float score = x[(own - first) * QN_COLUMN_EACH];
        table[looks] = COUNTS(score) ? score : 0.0f;
    }
}

/* Nothing where a table is made in the place of what it was. */
ELEMENT_KERNEL copy(__global const float *from, ulong from_at, __global float *to, ulong to_at,
                    ulong n)
{
    const ulong i = get_global_id(0);
    if (i < n)
        to[to_at + i] = from[from_at + i];
}
