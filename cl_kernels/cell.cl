/* SPDX-License-Identifier: MIT
 *
 * Rows into a cell and out of it. Bits are moved as they are, in words of QN_BYTES, the size of an
 * element.
 */
#include "lib/control.clh"

#if QN_BYTES == 2
typedef ushort word;
#else
typedef uint word;
#endif

/* The cell's row that row 0 of the repetition is. */
static inline ulong first_row(__global const uint *control, ulong control_at, int slot)
{
    return QN_CONTROL_READ(control, control_at)->position[slot];
}

/* cell[(first + i / row) % capacity][i % row] = rows[i], but for what is padding: `each` rows a
 * sample. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
store(__global const word *rows, ulong rows_at, __global const uint *control, ulong control_at,
      __global word *cell, ulong cell_at, ulong n, ulong row, ulong capacity, int slot, ulong each)
{
    const ulong i = get_global_id(0);
    const ulong padding = QN_CONTROL_READ(control, control_at)->padding;
    if (i >= n || i / row + padding * each >= n / row)
        return;
    const ulong at = (first_row(control, control_at, slot) + i / row) % capacity;
    cell[cell_at + at * row + i % row] = rows[rows_at + i];
}

/* rows[i] = cell[(first + i / row) % capacity][i % row] */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
load(__global const word *cell, ulong cell_at, __global const uint *control, ulong control_at,
     __global word *rows, ulong rows_at, ulong n, ulong row, ulong capacity, int slot, ulong each)
{
    const ulong i = get_global_id(0);
    if (i >= n)
        return;
    const ulong at = (first_row(control, control_at, slot) + i / row) % capacity;
    rows[rows_at + i] = cell[cell_at + at * row + i % row];
}
